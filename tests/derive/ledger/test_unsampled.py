"""Ledgers of processes whose stacks are not sampled, as those of PyTorch, and of calls that gaps recorded."""

from __future__ import annotations

import pytest
from tests.derive.ledger_parts import ledgers, times, whole
from tests.derive.sessions import MS, SCRIPT, US, Frame, Job, S

from stepscope.model.log.events import ProcessEnded
from stepscope.wire.kinds import Kind


def job(name: str, *, rest: int = 20 * MS, every: int = 1, usual: int = 1 * MS) -> Job:
    """Imported from 1 s to 3 s; 200 steps from 8 s on, one in ``every`` of which takes ``rest``; it ends 2 s later."""
    made = Job()
    made.framework(name, at=3 * S, dur=2 * S)
    step = made.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=12)
    at = 8 * S
    for number in range(200):
        step.at(at, 0)
        at += rest if number % every == 0 else usual
    made.event(ProcessEnded(at=at + 2 * S))
    made.ended_ns = at + 2 * S
    return made


@pytest.mark.parametrize(("name", "building"), [("torch", 5 * S), ("jax", 5 * S), ("tensorflow", 0)])
def test_what_comes_before_the_first_step_is_not_unseen(name: str, building: int) -> None:
    """The first step says so, whatever ran; where stacks are sampled, what they did not see is not seen."""
    (ledger,) = ledgers(job(name).session())
    found = times(ledger)
    assert found.get("building", 0) == building
    assert (found.get("not-seen", 0) > 0) == (not building)
    assert whole(ledger) == ledger.wall_ns


@pytest.mark.parametrize(("every", "seen"), [(4, True), (10, True), (40, False)])
def test_a_pause_after_every_few_steps_is_a_part_of_them(every: int, seen: bool) -> None:
    """Batches that come several at a time; what comes rarely lies between the steps."""
    (ledger,) = ledgers(job("torch", rest=80 * MS, every=every).session())
    found = times(ledger)
    paused = 200 // every * 80 * MS
    assert (found["steps/other-python"] > paused / 2) == seen
    assert (found.get("not-seen", 0) > paused / 2) == (not seen)


@pytest.mark.parametrize(("rest", "between"), [(15 * MS, 0), (25 * MS, 125 * MS)])
def test_what_a_scheduler_takes_is_no_pause(rest: int, between: int) -> None:
    """Steps of 100 us that miss their CPU for some slices, as on a busy machine, stay whole."""
    (ledger,) = ledgers(job("torch", rest=rest, every=40, usual=100 * US).session())
    assert times(ledger).get("not-seen", 0) == pytest.approx(between, abs=30 * MS)


def test_runs_that_gaps_record_as_everywhere_are_no_pause() -> None:
    """Each look takes a sample there, as no call is counted that gaps do count."""
    made = Job(ended_ns=8 * S)
    made.framework("onnxruntime", at=3 * S, dur=2 * S)
    made.event(ProcessEnded(at=7 * S))
    made.call(Kind.INFERENCE, "model.onnx").every(1 * MS, 4000, dur=1 * MS, start=3 * S)
    made.gap(4 * S, 1 * S, 0)
    made.samples(range(4 * S + 90 * MS, 5 * S, 90 * MS), dur=90 * MS)
    (ledger,) = ledgers(made.session())
    assert times(ledger).get("between-steps", 0) < 30 * MS


def test_calls_that_a_gap_recorded_are_no_pause() -> None:
    """Samples of a gap in which nothing was counted show a pause; not where the calls were recorded all the while."""
    made = Job(ended_ns=8 * S)
    made.framework(at=3 * S, dur=2 * S)
    made.event(ProcessEnded(at=7 * S))
    made.execution().every(10 * MS, 400, dur=10 * MS, start=3 * S, arg=1)
    made.gap(4 * S, 1 * S, 0)
    made.samples(range(4 * S + 90 * MS, 5 * S, 90 * MS), dur=90 * MS)
    made.loop("fit").at(3 * S, 4 * S)
    (ledger,) = ledgers(made.session())
    assert times(ledger).get("between-steps", 0) < 100 * MS
    assert next(part.count for part in ledger.parts if part.component == "call") == 399


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("counted", [Kind.EXECUTION, Kind.NEXT])
def test_steps_that_a_gap_recorded_are_no_pause(every: int, counted: Kind) -> None:
    """Optimizers of PyTorch are recorded in gaps, and no other call is counted there: each look takes a sample."""
    made = Job(ended_ns=9 * S)
    made.framework("torch", at=3 * S, dur=2 * S)
    made.event(ProcessEnded(at=9 * S))
    step = made.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=12)
    step.every(1 * MS, 1000, dur=0, start=3 * S)
    step.every(every * MS, 4000 // every, dur=0, start=4 * S)
    step.every(1 * MS, 1000, dur=0, start=8 * S)
    for begin in range(4 * S, 8 * S, S):
        made.gap(begin, S, 0, counted)
        if every > 1:
            step.counted(begin + US, calls=1000 - 1000 // every, total=0)
    made.samples(range(3 * S + 90 * MS, 8 * S, 90 * MS), Frame(SCRIPT, "main", 12), dur=90 * MS)
    (ledger,) = ledgers(made.session())
    found = times(ledger)
    assert found["steps/other-python"] == pytest.approx(6 * S, rel=0.02)
    assert found.get("not-seen", 0) < 20 * MS
    assert next(part.count for part in ledger.parts if part.phase == "steps") == 5999
