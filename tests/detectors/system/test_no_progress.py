"""HNG001 no-progress: its fixtures, and what looks like it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from tests.derive.sessions import MS, POOL, SCRIPT, Frame, Job, S
from tests.detectors.asking import codes, look
from tests.detectors.fixture import CLAIMS, AnyDetector, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, REPORT, nothing
from tests.detectors.trend_jobs import MB, hung

from stepscope.derive.view import SessionView
from stepscope.detectors import base
from stepscope.detectors.system.no_progress import DETECTOR
from stepscope.diagnosis.analyze import report_of
from stepscope.model.log.program import ThreadDied
from stepscope.model.report.report import Report
from stepscope.tables.hang import Hang
from stepscope.tables.records import GROUP
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
    ended = msgspec.structs.replace(session, workers=(msgspec.structs.replace(worker, info=info),))
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
    job.processes = msgspec.structs.replace(job.processes, write_bytes=written)
    assert "HNG001" not in codes(job)


def test_a_job_that_waits_for_its_working_child_does_not_hang() -> None:
    """Waiting for a process of its own that computes is no hang; waiting for a thread is, whatever others do."""
    for inside, found in ((SUBPROCESS, False), (Frame("/usr/lib/python3.11/queue.py", "get", 171, own=False), True)):
        job = hung(30, inside=inside)
        job.rival("/usr/bin/convert --all", cores=0.9, seconds=39, child=True)
        assert ("HNG001" in codes(job)) is found
    job = hung(30, inside=SUBPROCESS)
    job.rival("/usr/bin/convert --all", cores=0.9, seconds=39, child=GROUP)  # the same shell started it
    assert "HNG001" in codes(job)


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


def held(kind: Kind, exit_code: int, *, seconds: int = 30, saves: bool = False) -> Job:
    """A job that hangs in a recorded call, which ends as Ctrl-C unwinds it.

    ``saves``: the program catches it, and saves before it ends.
    """
    job = hung(seconds, exit_code=exit_code)
    last, end = 9_980 * MS, job.ended_ns - 50 * MS
    job.call(kind, "Wait.on_epoch_end" if kind == Kind.CALLBACK else "").at(last, end - last)
    job.call(Kind.LOOP, "fit").at(0, end + MS - 0)
    if saves:
        job.call(Kind.SAVE, "save").at(end + 2 * MS, 20 * MS)
    return job


@pytest.mark.parametrize("exit_code", [-2, 130])
@pytest.mark.parametrize("kind", [Kind.CALLBACK, Kind.NEXT, Kind.FUNCTION, Kind.SAVE])
def test_ctrl_c_ends_no_hang_in_the_books(kind: Kind, exit_code: int) -> None:
    """The call that hangs has a record then, as a job that is killed has not; it is the same hang."""
    (found,) = (f for f in look(held(kind, exit_code))[0] if f.code == "HNG001")
    assert "no progress for 30 s" in found.title
    assert f"train.py:{REPORT}" in found.title


def test_a_call_that_computes_until_ctrl_c_does_not_hang() -> None:
    """As one that a signal kills."""
    job = held(Kind.CALLBACK, -2)
    job.machine(40, got=0.9)
    assert "HNG001" not in codes(job)


def told(job: Job, *, until_s: float, ended_s: float | None = None) -> Report:
    """The report of a job of which was told at 24 s that it hangs since the last of its steps, until ``until_s``."""
    session = job.session()
    hang = Hang(
        kind="queue", text="waits for a queue (get)", file=SCRIPT, line=REPORT, function="main",
        since_ns=9_980 * MS, told_ns=24 * S, until_ns=round(until_s * S),
    )  # fmt: skip
    ended_ns = session.manifest.ended_ns if ended_s is None else round(ended_s * S)
    manifest = msgspec.structs.replace(session.manifest, hangs=(hang,), ended_ns=ended_ns)
    return report_of(msgspec.structs.replace(session, manifest=manifest))


def said_of(report: Report) -> tuple[list[str], list[str]]:
    """Titles of HNG001, and notes of hangs that ended."""
    return [f.title for f in report.findings if f.code == "HNG001"], [
        d.text for d in report.diagnostics if d.code == "DX172"
    ]


@pytest.mark.parametrize("job", [held(Kind.CALLBACK, -2), held(Kind.NEXT, 130, saves=True), held(Kind.NEXT, 1)])
def test_a_told_hang_that_ctrl_c_ends_lasts_to_the_end(job: Job) -> None:
    """Unwinding, a last save, and another exit code of the program are no work again."""
    (title,), notes = said_of(told(job, until_s=39.9))
    assert "waits for a queue (get)" in title
    assert "no progress for 30 s" in title
    assert notes == []


def test_a_told_hang_needs_no_sample() -> None:
    """A hundred steps that take no time, then a wait: nothing was sampled, and what was seen meanwhile is exact."""
    job = hung(30, exit_code=-2)
    job.records = [one for one in job.records if one.kind != Kind.SAMPLE]
    (title,), _ = said_of(told(job, until_s=39.9))
    assert "the job hangs: no progress for 30 s after 100 steps; waits for a queue (get)" in title


@pytest.mark.parametrize(("exit_code", "begins_s", "ended_s"), [(-2, 30, 41.0), (1, 30, 41.0), (-2, None, 100.0)])
def test_a_hang_after_which_the_job_went_on(exit_code: int, begins_s: int | None, ended_s: float) -> None:
    """Further steps, or a further minute, are more than an end."""
    job = hung(31, exit_code=exit_code)
    if begins_s is not None:
        job.function().every(PERIOD, 40, dur=80 * MS, start=begins_s * S)
    titles, (note,) = said_of(told(job, until_s=30.0, ended_s=ended_s))
    assert note.endswith("then there was work again")
    assert not any("waits for a queue" in title for title in titles)


def test_a_job_that_catches_ctrl_c_and_ends_well_is_not_said_to_have_worked_again() -> None:
    """Its exit code is that of a success: a note, no finding."""
    titles, (note,) = said_of(told(held(Kind.CALLBACK, 0), until_s=39.9))
    assert titles == []
    assert note.endswith("then the job ended")
