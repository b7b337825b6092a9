"""A hang is told while it lasts: real programs that hang in seven ways, and what is said of each."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
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
    from collections.abc import Iterator

    from stepscope.model.api.status import Status

pytestmark = [pytest.mark.tf, pytest.mark.slow]
PROGRAMS = Path(__file__).parent / "programs/hangs"
PATIENCE_S = 240.0
METRIC = "stepscope_hang_seconds"
KINDS = [
    ("graph_queue", "queue"),
    ("python_queue", "queue"),
    ("endless_filter", "dataset"),
    ("empty_dataset", "dataset"),
    ("dead_worker", "process"),
    ("two_locks", "lock"),
    ("silent_server", "network"),
]


def stepscope(*args: str) -> str:
    """Output of a command."""
    command = [sys.executable, "-m", "stepscope", *args]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout


@contextmanager
def hanging(name: str, session: Path, by: signal.Signals = signal.SIGTERM) -> Iterator[Status]:
    """The status of a program once its hang is told; it is ended afterwards, by a signal."""
    command = [sys.executable, "-m", "stepscope", "run", "--session", str(session), f"{name}.py"]
    with subprocess.Popen(command, cwd=PROGRAMS, env=environment(), stderr=subprocess.DEVNULL) as job:
        deadline = time.monotonic() + PATIENCE_S
        try:
            while True:
                mine = [one.status for one in jobs.running() if one.status.session == str(session)]
                if mine and mine[0].hang is not None:
                    yield mine[0]
                    return
                assert job.poll() is None, "it ended"
                assert time.monotonic() < deadline, "it was not told"
                time.sleep(0.2)
        finally:
            job.send_signal(by)


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_a_hang_is_told_while_it_lasts(tmp_path: Path, name: str, kind: str) -> None:
    """Kind, line and all threads in ps, top and the metrics; afterwards in the session and in the report."""
    session = tmp_path / "hung.stepscope"
    lines = (PROGRAMS / f"{name}.py").read_text("utf-8").splitlines()
    here = [number for number, text in enumerate(lines, 1) if "# hangs here" in text]
    with hanging(name, session) as status:
        hang = status.hang
        assert hang is not None
        line = hang.line
        assert (hang.kind, Path(hang.file).name) == (kind, f"{name}.py")
        assert line in here
        main = hang.threads[0]
        assert (main.pid, main.tid) == (status.pid, status.pid)
        assert any(frame.own for frame in main.frames)
        assert f"{name}.py:{line}" in stepscope("top", "--once", str(session))
        assert "HNG001" in stepscope("ps")
        job = Job(pid=status.pid, name=name, user="me", state="running", session="", status=status)
        (said,) = (text for text in metrics.exposition([job]).decode().splitlines() if text.startswith(METRIC + "{"))
        assert f'kind="{kind}"' in said
    stored = open_session(session)
    assert [one for one in stored.manifest.hangs if not one.until_ns] == [hang]
    (found,) = (finding for finding in report_of(stored).findings if finding.code == "HNG001")
    assert found.where[0].line == line
    assert hang.text in found.title


def test_a_hang_that_ctrl_c_ends_is_reported_as_one_that_is_killed(tmp_path: Path) -> None:
    """Unwinding ends the callback that waits, which is no work. Only this one waits in its main thread."""
    session = tmp_path / "hung.stepscope"
    with hanging("two_locks", session, signal.SIGINT) as status:
        told = status.hang
    assert told is not None
    report = report_of(open_session(session))
    (found,) = (finding for finding in report.findings if finding.code == "HNG001")
    assert told.text in found.title
    assert not [note for note in report.diagnostics if note.code == "DX172"]
