"""Real workers of one job: each knows which it is, and together they say for whom they wait; real TensorFlow.

A capture that is requested of one worker is of the same steps of all.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.run.conftest import Project, environment, stepping

from stepscope.report import json_report
from stepscope.store.manifests import read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.model.report.report import Report

pytestmark = [
    pytest.mark.tf,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"),
]

PROGRAM = Path(__file__).parent / "programs" / "members.py"
SAME = re.compile(r"note +the same (\d+) steps of (worker [01]), (worker [01])\n")
STEPS = 5
ONE, OWN = Path("all.stepscope"), (Path("w0.stepscope"), Path("w1.stepscope"))
REPORT, TRACED = "report-of-run.json", "traced.txt"
RUN = ("run", "-q", "--budget", "0%", "--session")


def in_one_session(project: Project) -> None:
    """Started by one script under one run."""
    script = [sys.executable, str(PROGRAM), str(project.root / "told")]
    words = [*RUN[:-1], "--report-json", REPORT, RUN[-1], str(ONE), "--", *script]
    traced_in_the_middle(project, project.command(*words), 1)


def in_own_sessions(project: Project) -> None:
    """Each under a separate run."""
    each = project.command(*RUN, "w{index}.stepscope", "--")
    traced_in_the_middle(project, [sys.executable, str(PROGRAM), str(project.root / "told"), *each], 2)


def traced_in_the_middle(project: Project, command: Sequence[str], count: int) -> None:
    """Run the workers, trace some steps of the first, and keep what ``trace`` said."""
    quiet = environment(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    nowhere = subprocess.DEVNULL
    job = subprocess.Popen(command, cwd=project.root, env=quiet, stdout=nowhere, stderr=nowhere, text=True)
    project.started.append(job)
    pids = stepping(project, count, 30)
    done = project.run("trace", str(pids[0]), "--steps", str(STEPS), "--force")
    (project.root / "told").touch()
    assert job.wait(timeout=240) == 0
    assert done.returncode == 0, done.stderr
    (project.root / TRACED).write_text(done.stdout)


def blames_worker_1(found: Report) -> None:
    """The report is of two workers in step, and blames the one that sleeps, at its line, and no other."""
    assert found.cluster is not None
    rows = {row.name: row for row in found.cluster.members}
    assert list(rows) == ["worker 0", "worker 1"]
    assert [row.synchronous for row in rows.values()] == [True, True]
    assert found.cluster.missing == ()
    stragglers = [finding for finding in found.findings if finding.code == "DST001"]
    assert [finding.title.startswith("worker 1 holds the other back") for finding in stragglers] == [True]
    sleeps = 1 + PROGRAM.read_text().splitlines().index("            time.sleep(SLOW_S)")
    assert stragglers[0].where[0].line == sleeps
    assert found.cluster.global_batch == 64
    gain = rows["worker 0"].gain
    assert gain is not None
    assert gain.high < stragglers[0].cost.low
    assert (rows["worker 0"].waits_ns or 0) > (rows["worker 1"].waits_ns or 0)


def report_in(data: bytes | str) -> Report:
    """The report that a JSON text is."""
    return json_report.decode(data.encode() if isinstance(data, str) else data)


@pytest.fixture(name="ran", scope="module")
def _ran(ran_once: Callable[[Callable[[Project], None]], Project]) -> Callable[[Callable[[Project], None]], Path]:
    """The folder of workers, run once."""
    return lambda how: ran_once(how).root


def test_workers_in_one_session(ran: Callable[[Callable[[Project], None]], Path]) -> None:
    """The session's report has both, without a merge."""
    found = report_in((ran(in_one_session) / REPORT).read_bytes())
    blames_worker_1(found)
    assert found.session.member == ""


def test_workers_in_sessions_of_their_own(ran: Callable[[Callable[[Project], None]], Path], project: Project) -> None:
    """Each says which worker it is; the last to end joins them, and they blame the same one; so does a merge by
    hand.
    """
    root = ran(in_own_sessions)
    for index, own in enumerate(OWN):
        alone = report_in((root / own / "report.json").read_bytes())
        assert alone.session.member == f"worker {index} of 2"
        assert alone.cluster is None
    (joint,) = root.glob("members-*-job.stepscope")
    blames_worker_1(report_in((joint / "report.json").read_bytes()))
    merged = project.run("merge", "-q", *(str(root / own) for own in OWN), "-o", "job.stepscope")
    assert merged.returncode == 0, merged.stderr
    shown = project.run("report", "job.stepscope", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    blames_worker_1(report_in(shown.stdout))


@pytest.mark.parametrize("how", [in_own_sessions, in_one_session])
def test_the_same_steps_of_both_workers(
    ran: Callable[[Callable[[Project], None]], Path], how: Callable[[Project], None]
) -> None:
    """Both are asked, begin at one moment, and the joint report shows the steps that they have in common."""
    root = ran(how)
    said = (root / TRACED).read_text()
    same = SAME.search(said)
    assert same is not None, said
    assert {same[2], same[3]} == {"worker 0", "worker 1"}
    assert int(same[1]) >= 1
    path = root / ONE if how is in_one_session else next(root.glob("*-job.stepscope"))
    cluster = json_report.decode((path / "report.json").read_bytes()).cluster
    assert cluster is not None
    (capture,) = cluster.captures
    assert (capture.steps, capture.missed) == (int(same[1]), ())
    assert capture.first_step is not None
    for task in capture.tasks:
        assert task.communication is not None
        assert task.communication.exposed_ns > 0
    sessions = [path] if how is in_one_session else [root / own for own in OWN]
    made = [one for session in sessions for one in read_manifest(session).captures]
    assert len({one.joint for one in made}) == 1
    assert [one.leads for one in made].count(True) == 1
