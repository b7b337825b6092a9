"""Threads that die of an exception nobody catches: told, and the job is as without us."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from stepscope.model.log.program import ThreadDied

from .conftest import Armed

DIES = """
    import stepscope, threading
    stepscope.step()
    def load(index):
        raise ValueError("a secret %d" % index)
    def fill():
        load(1)
    thread = threading.Thread(target=fill, name="filler")
    thread.start(); thread.join(); print("on")
"""
OWN_HOOK = """
    import stepscope, sys, threading
    threading.excepthook = lambda args: print("mine", args.exc_type.__name__, args.thread.name, args.exc_value)
    stepscope.step()
    thread = threading.Thread(target=lambda: 1 / 0, name="divider")
    thread.start(); thread.join()
"""
HOOK_RAISES = """
    import stepscope, sys, threading
    def mine(args):
        raise KeyError("hook")
    threading.excepthook = mine
    stepscope.step()
    thread = threading.Thread(target=lambda: 1 / 0, name="divider")
    thread.start(); thread.join()
"""


def plain(program: str) -> subprocess.CompletedProcess[str]:
    """The program without an agent; ``stepscope`` is a stub, as it is under the agent."""
    stub = "import sys, types; sys.modules['stepscope'] = m = types.ModuleType('stepscope'); m.step = lambda: None\n"
    code = stub + textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


def without_lines(stderr: str) -> str:
    """Numbers of lines differ, as the stub is in front of the program."""
    return re.sub(r"line \d+", "line", stderr)


def test_who_died_of_what_and_where_is_told(armed: Armed, tmp_path: Path) -> None:
    """Thread, class of the exception and the innermost user line; the message stays out of the log."""
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(DIES))
    result = armed.start(script)
    assert result.returncode == 0
    (process,) = armed.processes()
    (died,) = process.of(ThreadDied)
    assert (died.name, died.error, died.file, died.function, died.line) == (
        "filler",
        "ValueError",
        str(script),
        "load",
        5,
    )
    assert [(frame[1], frame[2]) for frame in died.stack] == [("fill", 7), ("load", 5)]
    assert b"secret" not in b"".join(p.read_bytes() for p in process.folder.iterdir() if p.is_file())


@pytest.mark.parametrize("program", [DIES, OWN_HOOK, HOOK_RAISES], ids=["default", "own-hook", "hook-that-raises"])
def test_the_job_says_what_it_says_without_us(armed: Armed, program: str) -> None:
    """Same output and exit code; a hook of the user's is called with what happened, and may raise."""
    result, expected = armed.start(program), plain(program)
    assert (result.stdout, result.returncode) == (expected.stdout, expected.returncode)
    assert without_lines(result.stderr) == without_lines(expected.stderr)
    (died,) = armed.processes()[0].of(ThreadDied)
    assert died.name in {"filler", "divider"}


def test_a_thread_that_ends_itself_has_not_died(armed: Armed) -> None:
    """``sys.exit`` in a thread is its end, not its death; neither is an exception that a future keeps."""
    armed.start("""
        import concurrent.futures, stepscope, sys, threading
        stepscope.step()
        thread = threading.Thread(target=sys.exit); thread.start(); thread.join()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            pool.submit(lambda: 1 / 0)
    """)
    assert armed.processes()[0].of(ThreadDied) == []


def test_deaths_are_told_so_often_only(armed: Armed) -> None:
    """A server that loses a thread with each request fills no log."""
    result = armed.start("""
        import stepscope, threading
        threading.excepthook = lambda args: None
        stepscope.step()
        for _ in range(300):
            thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()
    """)
    assert (result.stdout, result.stderr) == ("", "")
    assert len(armed.processes()[0].of(ThreadDied)) == 100
