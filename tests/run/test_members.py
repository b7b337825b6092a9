"""Real workers of one job: each knows which it is, and together they say for whom they wait; real TensorFlow."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.run.conftest import environment

from stepscope.report import json_report

if TYPE_CHECKING:
    from tests.run.conftest import Project

    from stepscope.model.report.report import Report

pytestmark = [pytest.mark.tf, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "programs" / "members.py"
ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(autouse=True)
def _needs_tensorflow() -> None:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed in this environment")


def report_in(data: str) -> Report:
    """The report that a JSON text is."""
    return json_report.decode(data.encode())


def blames_worker_1(found: Report) -> None:
    """The report is of two workers in step, and blames the one that sleeps, at its line, and no other."""
    assert found.cluster is not None
    rows = {row.name: row for row in found.cluster.members}
    assert list(rows) == ["worker 0", "worker 1"]
    assert [row.synchronous for row in rows.values()] == [True, True]
    assert found.cluster.missing == ()
    stragglers = [finding for finding in found.findings if finding.code == "DST001"]
    assert [finding.title.startswith("worker 1 holds the other back") for finding in stragglers] == [True]
    sleeps = 1 + PROGRAM.read_text().splitlines().index("            time.sleep(0.03)")
    assert stragglers[0].where[0].line == sleeps
    assert found.cluster.global_batch == 64
    gain = rows["worker 0"].gain
    assert gain is not None
    assert gain.high < stragglers[0].cost.low
    assert (rows["worker 0"].waits_ns or 0) > (rows["worker 1"].waits_ns or 0)


def test_workers_in_one_session(project: Project) -> None:
    """Started by one script under one run: the session's report has both, without a merge."""
    out = project.root / "report.json"
    command = ["run", "-q", "--report-json", str(out), "--", sys.executable, str(PROGRAM)]
    done = project.run(*command, env=environment(**ENVIRONMENT), patience_s=180.0)
    assert done.returncode == 0, done.stderr
    found = report_in(out.read_text())
    blames_worker_1(found)
    assert found.session.member == ""


def test_workers_in_sessions_of_their_own(project: Project) -> None:
    """Each under a separate run: each says which worker it is; the last to end joins them, and they blame the same
    one; so does a merge by hand.
    """
    each = [*project.command("run", "-q", "--session", "w{index}.stepscope", "--")]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *each],
        cwd=project.root,
        env=environment(**ENVIRONMENT),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for index in range(2):
        alone = report_in((project.root / f"w{index}.stepscope" / "report.json").read_text())
        assert alone.session.member == f"worker {index} of 2"
        assert alone.cluster is None
    (joint,) = project.root.glob("members-*-job.stepscope")
    blames_worker_1(report_in((joint / "report.json").read_text()))
    merged = project.run("merge", "-q", "w0.stepscope", "w1.stepscope", "-o", "job.stepscope")
    assert merged.returncode == 0, merged.stderr
    shown = project.run("report", "job.stepscope", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    blames_worker_1(report_in(shown.stdout))
