"""A hang is told while it lasts: real programs that hang in seven ways, and what is said of each."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.run.conftest import environment

from stepscope.diagnosis.analyze import report_of
from stepscope.launcher import jobs
from stepscope.model.api.rest_api import Job
from stepscope.sessions.bundle import open_session
from stepscope.web import metrics

if TYPE_CHECKING:
    from stepscope.model.api.status import Status
    from stepscope.tables.hang import Hang

pytestmark = [pytest.mark.tf, pytest.mark.slow]
PROGRAMS = Path(__file__).parent / "programs/hangs"
PATIENCE_S = 240.0
METRIC = "stepscope_hang_seconds"
WAITING = {
    "graph_queue": "queue",
    "python_queue": "queue",
    "dead_worker": "process",
    "two_locks": "lock",
    "silent_server": "network",
}
COMPUTING = {"endless_filter": "dataset", "empty_dataset": "dataset"}
BY_CTRL_C = "two_locks"
"""It waits in a callback in its main thread. Unwinding ends that callback, which is no work, and the hang."""


def stepscope(*args: str) -> str:
    """Output of a command."""
    command = [sys.executable, "-m", "stepscope", *args]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout


def start(name: str, session: Path) -> subprocess.Popen[bytes]:
    """A program that will hang."""
    command = [sys.executable, "-m", "stepscope", "run", "--session", str(session), f"{name}.py"]
    return subprocess.Popen(command, cwd=PROGRAMS, env=environment(), stderr=subprocess.DEVNULL)


def hung(job: subprocess.Popen[bytes], session: Path) -> Status:
    """The status of a program once its hang is told."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        mine = [one.status for one in jobs.running() if one.status.session == str(session)]
        if mine and mine[0].hang is not None:
            return mine[0]
        assert job.poll() is None, "it ended"
        assert time.monotonic() < deadline, "it was not told"
        time.sleep(0.5)


@pytest.mark.parametrize("kinds", [WAITING, COMPUTING], ids=["waiting", "computing"])
def test_hangs_are_told_while_they_last(tmp_path: Path, kinds: dict[str, str]) -> None:
    """Kind, line and all threads in ps, top and the metrics; afterwards in the session and in the report.

    All programs of a kind hang at once; each is ended as soon as it has been told.
    """
    sessions = {name: tmp_path / f"{name}.stepscope" for name in kinds}
    told = {}
    with ExitStack() as stack:
        made = {name: stack.enter_context(start(name, session)) for name, session in sessions.items()}
        for job in made.values():
            stack.callback(job.send_signal, signal.SIGTERM)
        for name, kind in kinds.items():
            told[name] = is_told(name, kind, hung(made[name], sessions[name]))
            made[name].send_signal(signal.SIGINT if name == BY_CTRL_C else signal.SIGTERM)
            made[name].wait(PATIENCE_S)
    for name, hang in told.items():
        is_reported(hang, sessions[name])


def is_told(name: str, kind: str, status: Status) -> Hang:
    """What is said of a hang while it lasts."""
    lines = (PROGRAMS / f"{name}.py").read_text("utf-8").splitlines()
    here = [number for number, text in enumerate(lines, 1) if "# hangs here" in text]
    hang = status.hang
    assert hang is not None
    assert (hang.kind, Path(hang.file).name) == (kind, f"{name}.py")
    assert hang.line in here
    main = hang.threads[0]
    assert (main.pid, main.tid) == (status.pid, status.pid)
    assert any(frame.own for frame in main.frames)
    assert f"{name}.py:{hang.line}" in stepscope("top", "--once", status.session)
    assert "HNG001" in stepscope("ps")
    job = Job(pid=status.pid, name=name, user="me", state="running", session="", status=status)
    (said,) = (text for text in metrics.exposition([job]).decode().splitlines() if text.startswith(METRIC + "{"))
    assert f'kind="{kind}"' in said
    return hang


def is_reported(hang: Hang, session: Path) -> None:
    """What is said of it afterwards, whichever signal ended it."""
    stored = open_session(session)
    lasts = [one for one in stored.manifest.hangs if not one.until_ns]
    assert lasts == ([] if session.stem == BY_CTRL_C else [hang])
    report = report_of(stored)
    (found,) = (finding for finding in report.findings if finding.code == "HNG001")
    assert found.where[0].line == hang.line
    assert hang.text in found.title
    assert not [note for note in report.diagnostics if note.code == "DX172"]
