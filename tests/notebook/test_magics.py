"""``%%stepscope`` in real kernels: what is shown, what stays, what a user's error and a killed kernel leave."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.notebook.kernels import Kernel, kernel, wait_for

from stepscope.model.session.session import CELL
from stepscope.sessions.bundle import open_session
from stepscope.store.manifests import read_manifest
from stepscope.use_cases.opened_session import OpenedSession

DEFINES = """
import pathlib, time
import stepscope

def prepare(size):
    total = 0
    for number in range(size):
        total += number * number
    return total

class Thing:
    pass
"""
STEPS = """%%stepscope

thing = Thing()
for step in range(40):
    prepare(400_000)
    stepscope.step()
"number " + str(step)
"""
MADE = 100
ENDLESS = f"""%%stepscope
for step in range(100_000):
    prepare(20_000)
    stepscope.step()
    if step == {MADE}:
        pathlib.Path("works").touch()
"""


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Iterator[Kernel]:
    with kernel(tmp_path) as running:
        assert running.run("%load_ext stepscope")[0]["status"] == "ok"
        assert running.run(DEFINES)[0]["status"] == "ok"
        yield running


def test_a_measured_cell(shell: Kernel) -> None:
    """It runs as ever and shows its value; then come findings by cell and line, as text and as plain HTML.

    Afterwards nothing of stepscope is at work in the kernel, and it keeps none of the cell's objects alive.
    """
    shell.run("import gc, os, sys, threading, weakref\nbefore = os.listdir('/proc/self/task'), list(sys.meta_path)")
    reply, shown = shell.run(STEPS)
    assert reply["status"] == "ok"
    assert [one["text/plain"] for one in shown if one["text/plain"].startswith("'")] == ["'number 39'"]
    (html,) = [one["text/html"] for one in shown if "text/html" in one]
    assert "cell 2, line 8 prepare" in html
    assert not re.search(r"<script|<style|<link|<img|https?:|src=|href=", html)
    (session,) = shell.sessions()
    opened = OpenedSession(session)
    assert opened.report.session.steps == pytest.approx(40, abs=1)
    assert read_manifest(session).mode == CELL
    assert shell.text("print(step, thing.__class__.__name__)") == "39 Thing\n"
    left = shell.text(
        "ref = weakref.ref(thing); del thing; gc.collect()\n"
        "from stepscope.agent import bootstrap, state\n"
        "print(ref(), bootstrap.HOOK, state.CURRENT, (os.listdir('/proc/self/task'), list(sys.meta_path)) == before)"
    )
    assert left == "None None None True\n"


def test_cells_are_measured_one_by_one(shell: Kernel) -> None:
    """Each has one session, which holds its steps; ``--session`` says where, once."""
    shell.run(STEPS.replace("40", "30"))
    shell.run(STEPS.replace("%%stepscope", "%%stepscope --session kept.stepscope").replace("40", "20"))
    taken = shell.text("%%stepscope --session kept.stepscope\nprint('ran all the same')")
    steps = [OpenedSession(session).report.session.steps for session in shell.sessions()]
    assert [session.name for session in shell.sessions()][1:] == ["kept.stepscope"]
    assert steps == pytest.approx([30, 20], abs=1)
    assert "ran all the same" in taken
    assert "unmeasured: " in taken
    assert "kept.stepscope" in taken
    again = shell.text("%stepscope report")
    assert "kept.stepscope" in again
    assert "kept.stepscope" in shell.text("%stepscope report kept.stepscope -v")


def test_an_error_of_the_cell_is_the_user_s(shell: Kernel) -> None:
    """It ends the cell, is shown once and without frames of stepscope; what ran before it is in the session."""
    failing = STEPS.replace('"number "', "{}['missing']; ")
    reply, shown = shell.run(failing)
    assert (reply["status"], reply["ename"]) == ("error", "KeyError")
    (traceback,) = [one["traceback"] for one in shown if "traceback" in one]
    assert "magics.py" not in traceback
    assert traceback.count("KeyError") == len(("the first line", "the last line"))
    (session,) = shell.sessions()
    assert OpenedSession(session).report.session.steps == pytest.approx(40, abs=1)
    reply, shown = shell.run("%%stepscope\ndef broken(:\n    pass")
    assert (reply["status"], reply["ename"]) == ("error", "SyntaxError")
    assert sum("traceback" in one for one in shown) == 1
    assert shell.text("print(1)") == "1\n"


def test_an_interrupted_cell(shell: Kernel) -> None:
    """Its session is complete, the kernel stays, and the next cell can be measured."""
    shell.begin(ENDLESS)
    shell.process.send_signal(signal.SIGINT)
    assert shell.ended() == "KeyboardInterrupt"
    assert shell.text("print('next')") == "next\n"
    (session,) = shell.sessions()
    assert OpenedSession(session).report.session.steps >= MADE
    assert read_manifest(session).state == "finished"
    assert shell.run(STEPS)[0]["status"] == "ok"


def test_a_killed_kernel_loses_nothing(shell: Kernel) -> None:
    """The sidecar completes the session of the cell that ran, with its report, in the folder of the kernel."""
    shell.begin(ENDLESS)
    shell.process.send_signal(signal.SIGKILL)
    shell.process.wait()
    (session,) = shell.sessions()
    wait_for((session / "report.json").exists)
    wait_for(lambda: not Path(read_manifest(session).run_dir).exists())
    assert read_manifest(session).state == "finished"
    assert json.loads((session / "report.json").read_bytes())["session"]["steps"] >= MADE
    (worker,) = open_session(session).workers
    assert len(worker.records) >= MADE


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%stepscope", "expected: %%stepscope [--session PATH] above a cell"),
        ("%stepscope reports", "not understood"),
        ("%stepscope report", "no cell has been measured in this kernel"),
        ("%stepscope whatif", "no cell has been measured in this kernel"),
        ('%stepscope report "x', "No closing quotation; expected: %%stepscope"),
        ("%%stepscope --session \"x\nprint('must not run')", "No closing quotation; expected: %%stepscope"),
        ("%%stepscope --stepz 3\nprint('must not run')", "--stepz 3: not understood"),
    ],
)
def test_what_is_not_understood(magics: Kernel, cell: str, said: str) -> None:
    """One line says what was expected; a cell under a wrong line does not run."""
    text = magics.text(cell)
    assert said in text
    assert text.count("\n") == 1
    assert "must not run" not in text.replace(cell, "")


@pytest.fixture(name="magics", scope="module")
def _magics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("kernel")) as running:
        running.run("%load_ext stepscope")
        yield running


def test_questions_about_the_last_cell_name_cells(shell: Kernel) -> None:
    """A command runs the cells as a script, without what failed; it ends as in a terminal, and leaves no script."""
    shell.run("1 / 0")
    shell.run("!echo from the shell")
    shell.run(STEPS)
    said = shell.text("%stepscope fix --time 1m")
    assert "run 1: what takes the time" in said
    assert "cell 2, line 8" in said
    assert not list(Path(shell.folder).glob("**/cells.py"))
