"""HST009 periodic-stall: its fixtures, and what looks like it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, POOL, SCRIPT, US, Frame, Job, S
from tests.detectors.asking import codes, look
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import CALL, LOOP_LINE, MAIN_CALL, PERIOD, REPORT, STEPS, called_back, nothing, saving
from tests.detectors.trend_jobs import passes, seen_in_windows, stalled

from stepscope.detectors.host.periodic_stall import DETECTOR
from stepscope.wire.kinds import Kind

EVERY_16 = range(16, 98, 16)
FIXTURES = Fixtures(
    firing=lambda: stalled(200 * MS),
    expected=Expected(
        severity="medium",
        cost=9 * 200 / 9800,
        where=(("train.py", 8), ("train.py", REPORT)),
        metrics=("stall_ratio", "stall_ns", "period_steps", "period_ns", "regular_ratio", "stalls"),
        title=("slow Python in report interrupts the steps every 10 steps for 200 ms", "18 %"),
        pipeline_stage="output-processing",
        remedy="do-it-less-often",
    ),
    silent=lambda: passes(stalled(200 * MS), range(10, 99, 10)),
    not_applicable=nothing,
    missing="steps",
    below=lambda: stalled(49 * MS - 10 * US, EVERY_16),
    at=lambda: stalled(49 * MS + 10 * US, EVERY_16),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_stalls_at_random_have_no_period() -> None:
    """Steps that are slow at any moment are slow, and not periodic."""
    job = stalled(200 * MS, [3, 17, 21, 40, 46, 71, 90])
    assert "HST009" not in codes(job)


def test_a_stall_that_is_missed_now_and_then_has_a_period() -> None:
    """Two of the stalls are missing: the intervals are multiples of the period."""
    (found,) = (f for f in look(stalled(200 * MS, [10, 20, 40, 50, 60, 80, 90]))[0] if f.code == "HST009")
    assert "every 10 steps" in found.title


@pytest.mark.parametrize(
    ("every", "starts"), [(10, (0, 201, 404, 607, 810)), (8, (3, 97, 250, 401)), (12, (0, 109, 205, 407, 615, 817))]
)
def test_a_period_is_that_of_stalls_without_a_gap_between(every: int, starts: tuple[int, ...]) -> None:
    """Steps that were only counted between two windows are no part of the distance."""
    (found,) = (f for f in look(seen_in_windows(every, starts=starts))[0] if f.code == "HST009")
    assert f"every {every} steps" in found.title


def test_a_period_in_seconds() -> None:
    """Stalls by the clock come after any number of steps: the period is told in seconds."""
    job = Job()
    step = job.function()
    now, due = 0, S
    lengths = np.random.default_rng(3).integers(20 * MS, 170 * MS, 400)
    for i in range(400):
        usual = int(lengths[i])
        step.at(now, usual - MS)
        now += usual
        if now >= due:
            now += 400 * MS
            due += 3 * S
    (found,) = look(job)[0]
    assert (found.code, found.confidence) == ("HST009", 0.6)  # no samples: who it is is unknown
    assert "every 3" in found.title
    assert " s for " in found.title


@pytest.mark.parametrize(
    ("job", "code"), [(saving(60 * MS, calls=9, every=10), "HST006"), (called_back(900 * MS, every=10), "HST004")]
)
def test_what_others_name_is_not_named_twice(job: Job, code: str) -> None:
    """A save or a callback every ten steps is one finding, by the detector that knows it."""
    assert codes(job) == [code]


def test_garbage_that_the_loop_collects() -> None:
    """A collection that the loop asks for is named by its line; one that Python starts is Python's."""
    (found,) = look(stalled(200 * MS, part=Kind.GC))[0]
    assert "Python's garbage collection" in found.title
    assert found.remedies[0].id == "freeze-objects"
    job = stalled(200 * MS, part=Kind.GC)
    job.sources[SCRIPT] = job.sources[SCRIPT].replace("tidy()", "gc.collect()")
    (found,) = look(job)[0]
    assert "gc.collect()" in found.title
    assert found.where[0].line == LOOP_LINE + 6
    assert found.remedies[0].id == "do-not-collect"


def test_another_thread_of_the_job_is_named() -> None:
    """Calls that stall while a thread of the job's own runs Python are that thread's."""
    job = stalled(200 * MS, part=Kind.FUNCTION)
    job.records = [r for r in job.records if r.kind != Kind.SAMPLE]
    for number in range(10, STEPS - 1, 10):
        starts = sorted(r.start_ns for r in job.records if r.kind == Kind.FUNCTION and r.name == 1)
        job.samples([starts[number] + 150 * MS], Frame("/job/watch.py", "audit", 7), thread=POOL)
    (found,) = (f for f in look(job)[0] if f.code == "HST009")
    assert "another thread, in audit" in found.title
    assert (found.where[0].file, found.where[0].line) == ("watch.py", 7)


def test_a_neighbour_with_a_period_is_named() -> None:
    """Calls that stall in the seconds in which another process is busy are that process's."""
    job = stalled(500 * MS, part=Kind.FUNCTION)
    job.machine(12)
    job.rival("/usr/bin/backup --all", cores=0.0, seconds=1)
    starts = sorted(r.start_ns for r in job.records if r.kind == Kind.FUNCTION and r.name == 1)
    stalls = {starts[n] // S + 1 for n in range(10, STEPS - 1, 10)}
    job.rivals = [
        {
            "at_ns": s * S,
            "pid": 9,
            "name": 0,
            "child": 0,
            "cpu_ns": round(1.5 * S) if s in stalls else S // 100,
            "interval_ns": S,
            "runnable": -1,
        }
        for s in range(1, 13)
    ]
    (found,) = (f for f in look(job)[0] if f.code == "HST009")
    assert "the process backup" in found.title
    assert found.remedies[0].id == "separate-cpu"


@pytest.mark.parametrize(("name", "codes"), [("validate", []), ("train_step", ["HST009"])])
def test_another_function_every_ten_steps_is_work_and_no_stall(name: str, codes: list[str]) -> None:
    """A validation that the program calls every ten steps is wanted; a longer step each time is not."""
    job = Job()
    step = job.function(**MAIN_CALL)
    at = 0
    for i in range(STEPS):
        stalled = 300 * MS if i % 10 == 9 else 0
        if name == "train_step":
            step.at(at, PERIOD + stalled)
        else:
            step.at(at, PERIOD)
            if stalled:
                job.function(name, line=40, **{**MAIN_CALL, "call_line": 7}).at(at + PERIOD, stalled)
        at += PERIOD + stalled
    assert [f.code for f in look(job)[0]] == codes


def bursts(*, source: str = "", sampled: bool = False) -> Job:
    """A loop of PyTorch in which every fourth step waits 80 ms, in line 42 of its source."""
    job = Job()
    job.framework("torch", "2.13.0")
    step = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=44)
    at = 0
    for number in range(400):
        step.at(at, 0)
        long = number % 4 == 3
        if long and sampled:
            job.samples([at + 40 * MS], Frame(SCRIPT, "main", 42), dur=40 * MS)
        at += 81 * MS if long else MS
    job.sources[SCRIPT] = 41 * "\n" + source
    return job


@pytest.mark.parametrize(
    ("source", "sampled", "who", "remedy"),
    [
        ("", False, "something that was not seen interrupts the steps", "find-what-stalls"),
        ("batch = next(it, None)", True, "the wait for a batch", "batches-ahead"),
        ("for batch in data:\n    step(batch)", True, "the wait for a batch", "batches-ahead"),
        ("for _ in range(4): svd(weights)", True, "the loop's own line 42 interrupts", ""),
        ("worst = next(x for x in losses if x > 2)", True, "the loop's own line 42 interrupts", ""),
        ("log(loss)", True, "the loop's own line 42 interrupts", ""),
    ],
)
def test_a_wait_for_batches_is_not_to_come_less_often(source: str, sampled: bool, who: str, remedy: str) -> None:
    """Where nothing says what runs, nothing is advised but to find out; where it takes a batch, batches ahead."""
    (found,) = (one for one in look(bursts(source=source, sampled=sampled))[0] if one.code == "HST009")
    assert who in found.title
    ids = [one.id for one in found.remedies]
    assert ids == [remedy] if remedy else "find-what-stalls" not in ids


def test_stalls_have_the_numbers_of_their_steps() -> None:
    """An update ends its step: what takes long after the fourth one is the fifth, number 4."""
    (found,) = (one for one in look(bursts(source="", sampled=False))[0] if one.code == "HST009")
    refs = next(one.refs for one in found.evidence if one.metric == "stalls")
    assert {int(ref.removeprefix("step:")) % 4 for ref in refs} == {0}


@pytest.mark.parametrize(("usual", "named"), [(0, True), (5, True), (60, False)])
def test_code_is_named_that_makes_stalls_longer_than_usual_steps(usual: int, named: bool) -> None:
    """Where a machine interrupts the steps, they are interrupted in what they always do.

    Each step of PyTorch takes 80 ms, ``usual`` of them in line 42; every fourth takes 80 ms more there.
    """
    job = Job()
    job.framework("torch", "2.13.0")
    step = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=44)
    at, here, there = 0, Frame(SCRIPT, "encode", 42), Frame(SCRIPT, "main", 43)
    for number in range(400):
        step.at(at, 0)
        more = 80 * (number % 4 == 3)
        inside = usual + (more if usual < more else more * usual // 80)
        for frame, first, count in ((here, 1, inside), (there, 1 + inside, 80 + more - inside)):
            job.samples([at + (first + k) * MS for k in range(0, count, 5)], frame, dur=5 * MS)
        at += (81 + more) * MS
    (found,) = (one for one in look(job)[0] if one.code == "HST009")
    assert found.title.startswith("encode interrupts") is named


@pytest.mark.parametrize("short", [0, 10])
def test_what_usual_steps_call_too_is_not_what_recurs(short: int) -> None:
    """Each tenth step evaluates in line 30, by the layer that each step runs for 10 ms: the evaluation is named, at the
    line of the loop that leads to it, and none of it is called slow Python, as PyTorch's calls are not measured. The
    first ``short`` evaluations take 60 ms: they are none of these stalls, and no usual steps.
    """
    job = Job()
    job.framework("torch", "2.13.0")
    step = job.call(Kind.APPLY, "optimizer step", role="optimizer", **{**MAIN_CALL, "call_line": 28})
    at, layer = 0, Frame(SCRIPT, "forward", 10)
    for number in range(300):
        step.at(at, 0)
        job.samples([at + (k + 1) * MS for k in range(0, 10, 5)], Frame(SCRIPT, "main", 26), layer, dur=5 * MS)
        job.samples([at + (k + 11) * MS for k in range(0, 10, 5)], Frame(SCRIPT, "main", 27), dur=5 * MS)
        at += 20 * MS
        if number % 10 == 9:
            frames = Frame(SCRIPT, "main", 30), Frame(SCRIPT, "evaluate", 22), layer
            long = 60 if number < 10 * short else 200
            job.samples([at + (k + 1) * MS for k in range(0, long, 5)], *frames, dur=5 * MS)
            at += long * MS
    (found,) = (one for one in look(job)[0] if one.code == "HST009")
    assert found.title.startswith("evaluate interrupts the steps every 10 steps")
    assert [(place.line, place.function) for place in found.where] == [(22, "evaluate"), (30, "main")]
    assert [remedy.id for remedy in found.remedies] == ["do-it-less-often"]


def test_the_statement_that_leads_to_a_stall_may_stand_outside_of_the_loops_function() -> None:
    """The step is made in line 28 of a module; the script's loop calls that and, each tenth time, ``report``."""
    job, at = Job(), 0
    step = job.function(**{**MAIN_CALL, "call_file": "/job/steps.py", "call_line": 28, "call_function": "one"})
    main, one = Frame(SCRIPT, "main", CALL), Frame("/job/steps.py", "one", 28)
    for number in range(STEPS):
        step.at(at, 80 * MS)
        job.samples([at + 40 * MS], main, one, dur=80 * MS)
        at += 81 * MS
        if number % 10 == 9:
            job.samples(
                [at + k * MS for k in range(0, 200, 20)],
                Frame(SCRIPT, "main", REPORT),
                Frame(SCRIPT, "report", 8),
                dur=20 * MS,
            )
            at += 200 * MS
    (found,) = (f for f in look(job)[0] if f.code == "HST009")
    assert [(place.file, place.line, place.function) for place in found.where] == [
        ("train.py", 8, "report"),
        ("train.py", REPORT, "main"),
    ]
