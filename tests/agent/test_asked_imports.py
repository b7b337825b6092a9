"""Imports that the program's own lines ask for are noted until stacks are sampled, and are as without us."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.agent.conftest import Armed

from stepscope.agent import asked_imports, bootstrap
from stepscope.model.log.program import ImportAsked

MAIN = """
import importlib.util, threading
import slow
importlib.util.find_spec("other")
thread = threading.Thread(target=__import__, args=("mailbox",))
thread.start(), thread.join()
def late():
    return importlib.import_module("other")
late()
import torch
"""
SLOW = "import time\ntime.sleep(0.01)\nimport xml.dom.minidom\ntime.sleep(0.01)\n"


def program(armed: Armed, main: str = MAIN, **modules: str) -> Path:
    """A script, its modules, and a framework without content."""
    for name, text in {"main": main, "slow": SLOW, "other": "", "torch": "", **modules}.items():
        (armed.folder / f"{name}.py").write_text(text)
    return armed.folder / "main.py"


def test_who_asks_for_what(armed: Armed) -> None:
    """Each import by own code has the lines that led to it; questions, other threads and libraries' imports none."""
    script = program(armed)
    result = armed.start(script)
    assert (result.stdout, result.stderr) == ("", "")
    (process,) = armed.processes()
    lines = [line for line in process.of(ImportAsked) if line.name != "importlib"]
    said = [(line.name, [(Path(file).name, number) for file, _, number in line.stack]) for line in lines]
    assert ("slow", [("main.py", 3)]) in said
    assert ("xml", [("main.py", 3), ("slow.py", 3)]) in said
    assert ("other", [("main.py", 9), ("main.py", 8)]) in said
    assert said[-1] == ("", [("main.py", 10)])
    assert "mailbox" not in {name for name, _ in said}
    assert [line.at for line in lines] == sorted(line.at for line in lines)
    slow = next(line for line in lines if line.name == "slow")
    assert (slow.file, lines[-1].file) == (str(armed.folder / "slow.py"), "")
    assert 0 < slow.cpu < lines[-1].cpu


def test_an_import_that_raises_says_the_same(armed: Armed) -> None:
    """Traceback, output and exit code of a module that fails in its body or does not exist are those without us."""
    main = "try:\n    import nowhere\nexcept ImportError as error:\n    print(repr(error))\nimport slow\n"
    script = program(armed, main, slow="import other", other="1/0")
    alone = subprocess.run([armed.python, script], capture_output=True, text=True, timeout=60, check=False)
    under = armed.start(script)
    assert (under.returncode, under.stdout, under.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert "ZeroDivisionError" in under.stderr


def test_the_notes_are_bounded(armed: Armed) -> None:
    """A program with thousands of modules has the first ones noted."""
    most = bootstrap.MOST_NOTES
    body = f"""
import sys
from stepscope.agent import asked_imports, bootstrap
for number in range({most + 50}):
    try: __import__("nowhere%d" % number)
    except ImportError: pass
print(len(bootstrap.HOOK.asked), bootstrap.HOOK.notes)
"""
    assert armed.start(program(armed, body)).stdout.split() == [str(most), "False"]


def test_file_systems_over_a_network() -> None:
    """The innermost mount around a path counts, by its type."""
    mounts = "\n".join(
        f"36 35 98:0 / {point} rw,noatime - {kind} source rw"
        for point, kind in (("/", "ext4"), ("/home", "nfs4"), ("/home/me/local", "xfs"), ("/data", "fuse.gcsfuse"))
    )
    paths = ("/usr/lib/os.py", "/home/me/train.py", "/home/me/local/env", "/database", "/home/x", "/data")
    assert asked_imports.over_network(mounts, paths) == [("nfs4", "/home"), ("fuse.gcsfuse", "/data")]
