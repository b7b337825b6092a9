"""HNG001 no-progress: its fixtures, and what looks like it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec
import pytest
from tests.derive.sessions import MS, POOL, SCRIPT, Frame, Job, S
from tests.detectors.asking import codes, look
from tests.detectors.fixture import CLAIMS, AnyDetector, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, REPORT, nothing
from tests.detectors.trend_jobs import MB, hung

from stepscope.app.report.analyze import report_of
from stepscope.derive.view import SessionView
from stepscope.detectors import base
from stepscope.detectors.system.no_progress import DETECTOR
from stepscope.model.log.program import ThreadDied
from stepscope.wire.kinds import Kind

ONLY: Sequence[AnyDetector] = (DETECTOR,)
FIXTURES = Fixtures(
    firing=lambda: hung(30),
    expected=Expected(
        severity="high",
        cost=30 / 39.98,
        per_step=300_000_000,
        where=(("train.py", REPORT), ("loader.py", 20)),
        metrics=("standstill_ns", "longest_before_ns", "cores", "samples_in_place"),
        title=("hangs", "no progress for 30 s", "after 100 steps", f"main (train.py:{REPORT})", "in get", "75 %"),
        pipeline_stage="none",
        remedy="bound-the-wait",
    ),
    silent=lambda: hung(30, exit_code=0),
    not_applicable=nothing,
    missing="stack samples of any thread",
    below=lambda: hung(9.999),
    at=lambda: hung(10),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


SELECT = Frame("/usr/lib/python3.11/selectors.py", "select", 400, own=False)
SUBPROCESS = Frame("/usr/lib/python3.11/subprocess.py", "wait", 1264, own=False)


def test_a_job_that_computes_after_its_last_step_does_not_hang() -> None:
    """Statistics after training, in Python or in C, are no hang, however they end."""
    assert "HNG001" not in codes(hung(30, cores=0.9))


def test_what_comes_after_the_exit_handlers_is_no_hang() -> None:
    """A program that has ended, whose runtime takes long to let go of its cluster, makes no steps any more."""
    session = hung(30).session()
    (worker,) = session.workers
    assert len(base.run(ONLY, SessionView(session))[0]) == 1
    late_ns = session.manifest.ended_ns - 29 * S
    info = msgspec.structs.replace(worker.info, clean_exit=True, ended_ns=late_ns)
    ended = dataclasses.replace(session, workers=(dataclasses.replace(worker, info=info),))
    assert base.run(ONLY, SessionView(ended))[0] == ()


def test_a_thread_that_died_is_named_where_the_job_hangs() -> None:
    """Who died, of what and where stands in the title and first among the places; a short wait is a hang then."""
    died = ThreadDied(
        thread=POOL, name="filler", error="AttributeError", file="/job/loader.py", function="load", line=14
    )
    for seconds in (30, 6):
        job = hung(seconds)
        job.event(died)
        (found,) = (f for f in look(job)[0] if f.code == "HNG001")
        assert "thread filler ended with an uncaught AttributeError in load (loader.py:14)" in found.title
        assert (found.where[0].file, found.where[0].line) == ("loader.py", 14)
        assert [r.id for r in found.remedies] == ["hand-errors-over", "bound-the-wait"]
    assert "HNG001" not in codes(hung(6))


def test_a_thread_that_died_is_told_where_the_job_went_on() -> None:
    """No finding, as nothing waits for it: a note of the report, with how many died."""
    job = hung(30, exit_code=0)
    for name in ("filler", "other"):
        job.event(ThreadDied(thread=POOL, name=name, error="ValueError"))
    report = report_of(job.session())
    assert "HNG001" not in [f.code for f in report.findings]
    (said,) = (d.text for d in report.diagnostics if d.code == "DX170")
    assert said.startswith("thread filler ended with an uncaught ValueError (the first of 2 threads that died): ")


def test_a_job_that_writes_after_its_last_step_does_not_hang() -> None:
    """A last file that is being written is progress, although the thread waits for the disk."""
    job = hung(30)
    written = job.processes.at_ns // S * 3 * MB
    job.processes = dataclasses.replace(job.processes, write_bytes=written)
    assert "HNG001" not in codes(job)


def test_a_job_that_waits_for_its_working_child_does_not_hang() -> None:
    """Waiting for a process of its own that computes is no hang; waiting for a thread is, whatever others do."""
    for inside, found in ((SUBPROCESS, False), (Frame("/usr/lib/python3.11/queue.py", "get", 171, own=False), True)):
        job = hung(30, inside=inside)
        job.rival("/usr/bin/convert --all", cores=0.9, seconds=39, child=True)
        assert ("HNG001" in codes(job)) is found


@pytest.mark.parametrize("job", [hung(30, inside=SELECT), hung(30, trains=False)])
def test_what_may_wait_for_requests_is_undecided(job: Job) -> None:
    """A server, and a loop that only predicts, may have had nothing to do."""
    findings, checked = look(job)
    assert "HNG001" not in [f.code for f in findings]
    assert checked["HNG001"].outcome == "undecided"


def test_a_wait_like_those_before_is_no_hang() -> None:
    """A job that waited half as long before, and went on, was killed while it waited again."""
    job = hung(30)
    job.records = [r for r in job.records if r.kind != Kind.FUNCTION or not 30 <= r.start_ns // PERIOD < 90]
    assert "HNG001" not in codes(job)


def test_threads_that_are_gone_are_named() -> None:
    """The thread that no sample sees any more is named with its last line: it may have been the one waited for."""
    (found,) = (f for f in look(hung(30))[0] if f.code == "HNG001")
    assert "loader.py:20" in found.explanation
    assert "last seen" in found.explanation


def test_a_hang_in_the_framework_before_the_first_step() -> None:
    """A job that never makes a step and waits inside of the framework hangs too."""
    job = Job(exit_code=-15, ended_ns=40 * S)
    grpc = Frame(
        "/usr/lib/python3/site-packages/tensorflow/python/eager/context.py", "ensure_initialized", 600, own=False
    )
    job.samples(range(10 * S, 40 * S, 50 * MS), Frame(SCRIPT, "main", REPORT), grpc)
    job.machine(40, got=0.0)
    (found,), checked = look(job)
    assert found.code == "HNG001"
    assert "before the first step" in found.title
    assert found.introduced_stage == "initialization"
    assert checked["TRD001"].outcome == "not-applicable"
