"""Gaps of the duty cycle in a ledger: the time in which calls were counted, and what else it holds."""

from __future__ import annotations

import pytest
from tests.derive.ledger_parts import fit, ledgers, python, started, times, whole
from tests.derive.sessions import MS, Job, S

from stepscope.derive.ledger.spots import Spots
from stepscope.wire.kinds import Flag, Kind


def looked(end: int) -> Job:
    """A started job whose main thread is sampled, so that the agent looks at it in gaps."""
    job = started(end)
    python(job, 2 * S, 3 * S, line=7)
    python(job, end - 2 * S, end - S, line=90)
    return job


@pytest.mark.parametrize("calls", [100, 20, 400])
@pytest.mark.parametrize("parts", [1, 4])
def test_a_gap_without_a_pause_is_its_steps(calls: int, parts: int) -> None:
    """Where looks would have seen a pause, the time in which calls were counted is that of the counted steps, be they
    slower or faster than the observed ones; their components are estimated.
    """
    job = looked(8 * S)
    run = job.execution()
    run.every(10 * MS, 200, dur=8 * MS, start=3 * S, arg=1)
    for part in range(parts):
        job.gap(5 * S + part * S // parts, S // parts, calls // parts)
    run.every(10 * MS, 100, dur=8 * MS, start=6 * S, arg=1)
    job.loop("fit").at(3 * S, 4 * S)
    (ledger,) = ledgers(job.session())
    assert "not-seen" not in times(ledger)
    assert ledger.overlap_ns == 0
    assert whole(ledger) == ledger.wall_ns
    steps = {part.component: part.unobserved_ns for part in ledger.parts if part.phase == "steps"}
    assert steps["call"] == pytest.approx(0.8 * S, rel=0.02)
    assert steps["framework"] == pytest.approx(0.2 * S, rel=0.02)
    assert ledger.pace == pytest.approx(100 / calls, rel=0.06)  # the step that the gap breaks is a counted one


@pytest.mark.parametrize("role", ["fit", "predict"])
def test_short_loops_in_a_gap_are_steps(role: str) -> None:
    """A part of a gap lasts a second and counts the steps of many short calls of Keras."""
    job = looked(13 * S)
    run = job.execution({"fit": "train", "predict": "predict"}[role])
    for begin in range(3 * S, 12 * S, 100 * MS):
        job.loop(role).at(begin, 100 * MS, arg=32)
        if not 6 * S <= begin < 9 * S:
            run.every(10 * MS, 10, dur=10 * MS, start=begin, arg=1)
    for begin in range(6 * S, 9 * S, S):
        job.gap(begin, S, 50)  # half as fast as those that were timed
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found.get("not-seen", 0) < 20 * MS
    assert next(part.unobserved_ns for part in ledger.parts if part.component == "call") > 2800 * MS
    assert whole(ledger) == ledger.wall_ns


def test_what_else_a_gap_shows_is_no_step() -> None:
    """Ends of epochs, evaluations and pauses in a gap are what they are, though calls are counted before and after."""
    job = looked(12 * S)
    run, hook = job.execution(), job.call(Kind.HOOK, "on_epoch_end", hook="on_epoch_end")
    run.every(10 * MS, 200, dur=10 * MS, start=3 * S, arg=1)
    job.gap(5 * S, 4 * S, 100)
    hook.at(5500 * MS, 300 * MS)
    job.loop("evaluate", line=70).at(6 * S, 1 * S, flags=Flag.NESTED)
    python(job, 7500 * MS, 8500 * MS, line=33)
    run.every(10 * MS, 100, dur=10 * MS, start=9 * S, arg=1)
    job.loop("fit").at(3 * S, 7 * S)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found["evaluation"] == 1 * S
    assert found["between-steps"] == pytest.approx(1300 * MS, abs=120 * MS)
    assert found["steps/call"] == pytest.approx((2 + 1.7 + 1) * S, abs=150 * MS)
    assert found.get("not-seen", 0) < 20 * MS
    assert whole(ledger) == ledger.wall_ns


@pytest.mark.parametrize("before", [True, False])
def test_a_pause_at_the_edge_of_a_gap_is_no_step(*, before: bool) -> None:
    """Calls were recorded again when the gap was over, or still before it began, and for 5 s there was none."""
    job = looked(14 * S)
    run = job.execution()
    run.every(10 * MS, 200, dur=8 * MS, start=3 * S, arg=1)
    job.gap(10 * S if before else 5 * S, S, 100)
    python(job, 5 * S if before else 6 * S, 10 * S if before else 11 * S, line=33)
    run.every(10 * MS, 100, dur=8 * MS, start=11 * S, arg=1)
    job.loop("fit").at(3 * S, 9 * S)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found["between-steps"] == pytest.approx(5 * S, rel=0.02)
    assert found["steps/call"] == pytest.approx(0.8 * 4 * S, rel=0.02)
    assert whole(ledger) == ledger.wall_ns


def test_what_a_callback_runs_is_no_step() -> None:
    """A callback predicts: its calls of Keras are records in gaps, or all that was counted for a while."""
    job = looked(12 * S)
    run, predict = job.execution(), job.loop("predict", line=71)
    run.every(10 * MS, 200, dur=10 * MS, start=3 * S, arg=1)
    for begin, steps in ((5 * S, 100), (6 * S, 50), (7 * S, 0), (8 * S, 100)):
        job.gap(begin, S, steps)
        job.gap(begin, S, 300, Kind.FUNCTION)
    predict.at(6200 * MS, 500 * MS, flags=Flag.NESTED)
    run.every(10 * MS, 100, dur=10 * MS, start=9 * S, arg=1)
    job.loop("fit").at(3 * S, 7 * S)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found["steps/call"] == pytest.approx((2 + 2.5 + 1) * S, rel=0.01)
    assert found["between-steps"] == pytest.approx(1500 * MS, rel=0.01)
    assert "not-seen" not in found
    assert whole(ledger) == ledger.wall_ns


@pytest.mark.parametrize("where", [2 * MS, 8 * MS])
def test_what_each_step_runs_lies_not_between_them(where: int) -> None:
    """A step or its callback that predicts each time is no pause in gaps, as it is none elsewhere."""
    job = looked(12 * S)
    run, predict = job.execution(), job.loop("predict", line=71)
    run.every(10 * MS, 200, dur=6 * MS, start=3 * S, arg=1)
    job.gap(5 * S, 4 * S, 400)
    run.every(10 * MS, 100, dur=6 * MS, start=9 * S, arg=1)
    predict.every(10 * MS, 700, dur=2 * MS, start=3 * S + where, flags=Flag.NESTED)
    job.callback("Mine.on_train_batch_end").every(10 * MS, 700, dur=2 * MS, start=3 * S + where)
    job.loop("fit").at(3 * S, 7 * S)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found.get("between-steps", 0) < 20 * MS
    assert sum(ns for name, ns in found.items() if name.startswith("steps/")) > 6900 * MS
    assert whole(ledger) == pytest.approx(ledger.wall_ns, abs=3)


@pytest.mark.parametrize(("role", "phase"), [("", "other-steps"), ("reads", "evaluation")])
@pytest.mark.parametrize("pace", [1, 2])
def test_validations_in_a_gap_are_no_steps(role: str, phase: str, pace: int) -> None:
    """A validation in the user's own loop is counted with the steps; either keeps its share of the time."""
    job = looked(42 * S)
    job.trace(2900 * MS, 0, updates=1)
    train = job.function(line=10, role="updates" if role else "")
    test = job.function("train_step" if role else "test_step", line=10 if role else 90, role=role)
    for begin in range(3 * S, 39 * S, S):
        if begin // S % 9 in {5, 6, 7}:
            job.gap(begin, S, 200 // pace, Kind.FUNCTION)
        else:
            train.every(5 * MS, 160, dur=5 * MS, start=begin)
            test.every(5 * MS, 40, dur=5 * MS, start=begin + 800 * MS)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found[phase] == pytest.approx(36 * 200 * MS, rel=0.1)
    assert found["steps/call"] == pytest.approx(36 * 800 * MS, rel=0.1)
    assert "not-seen" not in found
    assert whole(ledger) == pytest.approx(ledger.wall_ns, abs=3)
    assert ledger.pace == pytest.approx(pace, rel=0.2)  # whose the counted calls are is an estimate


def test_pauses_that_recur_are_seen_in_gaps_as_well() -> None:
    """Pauses that looks saw in gaps stay what they are, though others were observed between steps."""
    job = looked(30 * S)
    run = job.execution()
    for begin in range(3 * S, 28 * S, S):
        job.loop("fit").at(begin, 300 * MS, arg=32)
        hidden = 10 * S <= begin < 20 * S
        if not hidden:
            run.every(10 * MS, 30, dur=10 * MS, start=begin, arg=1)
        python(job, begin + 300 * MS, begin + 1 * S, line=33)
    for begin in range(10 * S, 20 * S, S):
        job.gap(begin, S, 30)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found["between-steps"] == pytest.approx(25 * 700 * MS, rel=0.05)
    assert found.get("not-seen", 0) < 200 * MS
    assert whole(ledger) == ledger.wall_ns


@pytest.mark.parametrize("kind", [Kind.SYNC, Kind.NEXT, Kind.FUNCTION])
@pytest.mark.parametrize("sampled", [True, False])
def test_gaps_before_the_first_step_are_building(kind: Kind, sampled: bool) -> None:
    """A program that draws pictures makes thousands of short calls; only where nothing looks is that time not seen."""
    job = started(14 * S)
    if sampled:
        python(job, 3 * S, 4 * S, line=7, function="draw")
        python(job, 7 * S, 8 * S, line=7, function="draw")
    for begin in range(4 * S, 7 * S, S):
        job.gap(begin, S, 0)
        job.gap(begin, S, 400, kind)
    fit(job, 8 * S, steps=50)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found.get("building", 0) == (5 * S if sampled else 0)
    assert found.get("not-seen", 0) == (0 if sampled else 5 * S)
    places = {part.phase: [spot.line for spot in Spots(ledger).of(part)] for part in ledger.parts}
    assert places.get("building", []) == ([7] if sampled else [])
