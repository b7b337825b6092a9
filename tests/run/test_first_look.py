"""The look that a job takes by itself, under the real launcher."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.run.conftest import Project, job_of, wait_for

from stepscope.model.log.look import LookTaken

PROGRAMS = Path(__file__).parent / "programs"
TELLS = """
import json, os, pathlib, signal, sys
run = pathlib.Path(os.environ["STEPSCOPE_RUN"])
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append((run / "signalled").exists()))
print("ready", flush=True)
while len(sys.argv) > 1 and not told:
    signal.pause()
print(json.loads((run / "config.json").read_text()).get("first_look_ns"), *told)
"""


@pytest.mark.parametrize(
    ("options", "bound_ns"),
    [
        ((), "100000000"),
        (("--budget", "0.5%"), "50000000"),
        (("--budget", "20%"), "100000000"),
        (("--budget", "0"), "None"),
    ],
)
def test_the_launcher_arms_the_look(project: Project, options: tuple[str, ...], bound_ns: str) -> None:
    """With what it may cost: a hundredth of ten seconds at most, less where the budget is less, nothing without one."""
    script = project.script("tells.py", TELLS)
    done = project.run("run", *options, str(script))
    assert done.stdout.split() == ["ready", bound_ns], done.stderr


def test_the_job_knows_of_a_signal_that_was_passed_on(project: Project) -> None:
    """It then ends without waiting for a capture."""
    launcher = project.start("run", str(project.script("tells.py", TELLS)), "waits")
    launcher.send_signal(signal.SIGTERM)
    out, errors = launcher.communicate(timeout=60)
    assert out.split()[1:] == ["True"], errors


def _answered(run: Path) -> bool:
    """Whether a process has said what became of its look."""
    logs = [log.read_text() for log in run.glob("procs/*/log-*.jsonl")]
    return any('"t":"capture"' in line for log in logs for line in log.splitlines())


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("program", "title", "way"),
    [("long_fit.py", "Keras fit", "profiler"), ("long_session.py", "Session.run ", "run-metadata")],
)
def test_a_job_looks_at_its_steps_by_itself(project: Project, program: str, title: str, way: str) -> None:
    """Nobody asks: as soon as steps are steady there is an op trace, whose ops have lines in the report."""
    told = project.root / "told"
    launcher = project.start("run", str(PROGRAMS / program), str(told))
    assert job_of(launcher.pid)
    (path,) = project.sessions()
    run = Path(json.loads((path / "manifest.json").read_text())["run_dir"])
    wait_for(lambda: _answered(run), "the look's end")
    told.touch()
    out, errors = launcher.communicate(timeout=200)
    assert (launcher.returncode, out) == (0, "done\n"), errors
    session = project.session()
    (capture,) = (one for one in session.manifest.captures if one.asked_by == "first-look" and not one.request)
    assert (capture.outcome, capture.way) == ("done", way)
    assert capture.title.startswith(title)
    assert capture.steps > 0
    looks = [look for worker in session.workers for look in worker.all(LookTaken)]
    assert [(look.id, look.begun) for look in looks] == [(capture.id, True)]
    report = json.loads((path / "report.json").read_text())
    assert all(told["joined"] for told in report["overhead"]["captures"])
    assert any(op["file"] or op["layer"] for op in report["ops"]["ops"])
