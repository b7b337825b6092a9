"""What the sidecar makes of the look that a job has taken by itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from tests.sidecar.capture_job import KEY, MS, STEPS, Job, S

from stepscope.model.log.events import Name
from stepscope.model.session.session import CaptureInfo
from stepscope.sidecar import later_phase
from stepscope.sidecar.capturing import Capturing
from stepscope.sidecar.first_look import GONE_NS, MAX_LOOKS, OTHERS, FirstLook
from stepscope.sidecar.later_phase import MIN_CALLS, LaterPhase
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.derive.steps.steps import Steps
    from stepscope.sidecar.live import Live

TRAIN = (int(Kind.EXECUTION), 1)
TEST = (int(Kind.EXECUTION), 2)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that has just begun."""
    return Job(run=tmp_path)


def look(*anchors: tuple[int, int], **fields: object) -> CaptureInfo:
    """A first look at these calls that is done."""
    made = CaptureInfo(id="l", outcome="done", asked_by="first-look", worker=KEY, steps=10, cost_ns=30 * MS)
    return msgspec.structs.replace(made, anchors=anchors or (TRAIN,), **fields)


def capturing(job: Job) -> Capturing:
    """What decides."""
    return Capturing(cast("Recording", job), cast("Live", job), 1)


def checking(job: Job) -> FirstLook:
    """What checks the look alone."""
    return FirstLook(cast("Recording", job), cast("Live", job))


def test_the_look_is_booked_and_answers_who_asks(job: Job) -> None:
    """No detector has another op trace made; a native window is; a person has what they ask for."""
    deciding = capturing(job)
    job.captures.done = look(cost_ns=300 * MS)
    deciding.tick(5 * S, "running")
    job.wants(("INP003", "ops"), ("compute", "ops"))
    deciding.tick(60 * S, "running")
    assert job.captures.asked == []
    waits = job.ask()
    deciding.tick(20 * S, "running")
    assert "waits 10 s" in job.state(waits).text


def test_reading_it_later_is_booked_too(job: Job) -> None:
    """What the sidecar used for it counts like the rest of its cost."""
    deciding = capturing(job)
    job.captures.done = look(cost_ns=300 * MS)
    deciding.tick(5 * S, "running")
    job.captures.read_ns = 200 * MS
    deciding.tick(31 * S, "running")
    waits = job.ask()
    deciding.tick(32 * S, "running")
    assert "waits 18 s" in job.state(waits).text


def test_a_look_that_failed_answers_nobody(job: Job) -> None:
    """Detectors are served as if there had been none."""
    deciding = capturing(job)
    job.captures.done = look(outcome="gave-way", steps=0, cost_ns=0)
    deciding.tick(5 * S, "running")
    job.wants(("INP003", "ops"))
    deciding.tick(10 * S, "running")
    assert [asked.by.word for asked in job.captures.asked] == ["INP003"]


def test_a_look_at_few_steps_is_followed_by_ten(job: Job) -> None:
    """Once they are earned, as after any capture of too few."""
    deciding = capturing(job)
    job.captures.done = look(steps=2, cost_ns=20 * MS)
    deciding.tick(1 * S, "running")
    assert job.captures.asked == []
    deciding.tick(60 * S, "running")
    assert [(asked.by.word, asked.steps) for asked in job.captures.asked] == [("first-look", 10)]


def test_a_look_at_other_steps_is_repeated_once(job: Job) -> None:
    """An evaluation came first: the next analysis says so, and the training is captured within the budget."""
    deciding = capturing(job)
    job.captures.done = look(TEST)
    deciding.tick(2 * S, "running")
    job.analysed_ns = 9 * S
    deciding.tick(10 * S, "running")
    assert [(asked.by.word, asked.anchors) for asked in job.captures.asked] == [("first-look", (TRAIN,))]
    job.captures.done = look(TEST, request="first-look", id="m")
    deciding.tick(30 * S, "running")
    job.analysed_ns = 100 * S
    deciding.tick(101 * S, "running")
    assert len(job.captures.asked) == 1


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (look(), False),
        (look(TEST), True),
        (look(TEST, TRAIN), False),
        (look(worker="11-1"), True),
        (look(step_ns=900_000), False),
        (look(step_ns=100_000), True),
        (look(step_ns=9 * MS), True),
    ],
)
def test_a_look_is_wrong_if_a_capture_now_would_be_of_others(job: Job, made: CaptureInfo, wrong: bool) -> None:
    """Of other calls, of another process, or of steps half or twice as long; an analysis must have come since."""
    checks = checking(job)
    checks.made(made, 2 * S)
    assert not checks.wrong(3 * S)
    job.analysed_ns = 4 * S
    assert checks.wrong(5 * S) is wrong
    assert checks.answers is not wrong


def test_other_calls_instead_of_the_traced_ones_are_analysed_early(job: Job) -> None:
    """Where the traced calls have ceased and others repeat, and no more often than a few times."""
    counts = job.drainer.workers[KEY].recent.counts
    counts.update({TEST: 50})
    checks = checking(job)
    checks.made(look(TEST), 1 * S)
    checks.wrong(1 * S + GONE_NS)
    assert job.refreshed == []
    counts[TRAIN] = OTHERS
    for second in range(5, 60):
        checks.wrong(second * S)
    assert len(job.refreshed) == MAX_LOOKS
    assert checks.answers


def test_traced_calls_that_go_on_are_not_analysed_early(job: Job) -> None:
    """Others come beside them: that is for the analysis whose turn it is."""
    counts = job.drainer.workers[KEY].recent.counts
    checks = checking(job)
    checks.made(look(), 1 * S)
    for second in range(2, 60):
        counts.update({TRAIN: second, TEST: 10 * second})
        checks.wrong(second * S)
    assert job.refreshed == []


def test_without_steps_nothing_is_wrong(job: Job) -> None:
    """An analysis that finds none says nothing of the look."""
    job.steps = None
    checks = checking(job)
    checks.made(look(TEST), 1 * S)
    job.analysed_ns = 9 * S
    assert not checks.wrong(10 * S)
    job.steps = SimpleNamespace(**vars(STEPS))
    job.analysed_ns = 19 * S
    assert checks.wrong(20 * S)


PHASE = LaterPhase(
    steps=cast(
        "Steps", SimpleNamespace(**{**vars(STEPS), "title": "tf.function sample", "call": Name(id=2, text="sample")})
    ),
    calls=frozenset({(KEY, *TEST)}),
    events=None,
)


@pytest.fixture
def phases(monkeypatch: pytest.MonkeyPatch) -> list[LaterPhase | None]:
    """What the looks for later phases find, one after another."""
    left: list[LaterPhase | None] = []
    monkeypatch.setattr(later_phase, "find", lambda *_: left.pop(0))
    return left


def turn(job: Job, deciding: Capturing, second: int, **calls: int) -> None:
    """One second in which others were called."""
    counts = job.drainer.workers[KEY].recent.counts
    counts[TEST] = counts.get(TEST, 0) + calls.get("others", MIN_CALLS)
    counts[TRAIN] = counts.get(TRAIN, 0) + calls.get("traced", 0)
    deciding.tick(second * S, "running")


def test_a_later_phase_is_captured(job: Job, phases: list[LaterPhase | None]) -> None:
    """Within what a first look may cost, before more is earned; it waits for no untraced steps before it."""
    deciding = capturing(job)
    job.captures.done = look(cost_ns=60 * MS)
    turn(job, deciding, 1, traced=16)
    phases.append(PHASE)
    turn(job, deciding, 2)
    (asked,) = job.captures.asked
    assert (asked.by.word, asked.anchors, asked.at_once) == ("first-look", (TEST,), True)
    assert asked.steps < 10
    job.captures.done = look(TEST, request="first-look", id="m", steps=asked.steps, cost_ns=30 * MS)
    for second in range(3, 20):
        turn(job, deciding, second)
    assert len(job.captures.asked) == 1, "its calls are traced now"


def test_a_phase_that_is_over_is_not_captured(job: Job, phases: list[LaterPhase | None]) -> None:
    """It waited for the budget, and its calls have ceased meanwhile."""
    deciding = capturing(job)
    job.captures.done = look(cost_ns=99 * MS)
    turn(job, deciding, 1, traced=16)
    phases.append(PHASE)
    turn(job, deciding, 2)
    assert job.captures.asked == []
    phases.extend([None, None])
    turn(job, deciding, 30, others=0)
    turn(job, deciding, 60, others=0)
    assert job.captures.asked == []


def test_later_phases_are_looked_for_rarely_where_there_are_none(job: Job, phases: list[LaterPhase | None]) -> None:
    """Twice as rarely each time, and not while the traced calls go on."""
    deciding = capturing(job)
    job.captures.done = look()
    turn(job, deciding, 1, traced=16)
    phases.extend([None] * 20)
    for second in range(2, 30):
        turn(job, deciding, second, traced=1)
    assert len(phases) == 20
    for second in range(30, 62):
        turn(job, deciding, second)
    assert len(phases) == 14
