"""Ledgers of sessions whose truth is chosen: every part is what was put there, and they add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.derive.ledger_parts import PERIOD, fit, ledgers, python, started, times, whole
from tests.derive.sessions import MAIN, MS, POOL, Job, S

from stepscope.derive.ledger.spots import Spots
from stepscope.model.log.events import ProcessEnded, ThreadSeen
from stepscope.wire.kinds import Flag, Kind

LEAST_STEPS = 4
"""Calls from which something repeats."""


def test_every_part_is_seen() -> None:
    """Start, imports, building, steps by component, evaluation, saving, pauses and end are what happened."""
    job = started(22 * S)
    python(job, 3 * S, 4 * S, line=7)
    end = fit(job, 4 * S, steps=41, first=900 * MS)
    assert end == 9 * S
    python(job, 9 * S, 10 * S, line=20)
    assert fit(job, 10 * S, steps=50) == 15 * S
    job.loop("evaluate", line=70).at(15 * S, 3 * S)
    job.save("weights", line=80).at(18 * S, 2 * S)
    python(job, 20 * S, 21 * S, line=90)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found["start"] == 1 * S
    assert found["imports"] == 2 * S
    assert found["building"] == 1 * S
    assert found["first-steps"] == 1 * S
    assert found["steps/call"] == (40 + 50) * 80 * MS
    # the last step of all ends with its call, and what is left of the fit lies after it
    assert found["steps/framework"] == (40 + 49) * 20 * MS
    assert found["between-steps"] == 1 * S + 20 * MS
    assert found["evaluation"] == 3 * S
    assert found["saving"] == 2 * S
    assert found["end"] == 2 * S
    assert whole(ledger) == ledger.wall_ns == 22 * S
    assert "not-seen" not in found
    assert ledger.overlap_ns == 0
    assert ledger.exit_ns == 1 * S


def test_what_nothing_covers_is_not_seen() -> None:
    """Time between two fits without a sample or a record is not seen."""
    job = started(17 * S)
    end = fit(job, 3 * S, steps=50)
    assert fit(job, end + 3 * S, steps=50) == 16 * S
    (ledger,) = ledgers(job.session())
    assert times(ledger)["not-seen"] == 3 * S
    assert whole(ledger) == ledger.wall_ns


def test_epoch_ends_lie_between_steps() -> None:
    """What Keras and callbacks do at the end of an epoch is no part of a step, however many epochs there are."""
    job = started(13 * S)
    run, hook = job.execution(), job.call(Kind.HOOK, "on_epoch_end", hook="on_epoch_end")
    for epoch in range(9):
        begin = 3 * S + epoch * S
        run.every(80 * MS, 10, dur=80 * MS, start=begin, arg=1)
        hook.at(begin + 800 * MS, 200 * MS)
    job.loop("fit").at(3 * S, 9 * S, arg=32 * 90)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found["between-steps"] == 9 * 200 * MS
    assert found["steps/call"] + found["first-steps"] == 90 * 80 * MS
    assert whole(ledger) == ledger.wall_ns


def test_evaluations_in_a_fit_are_a_part_of_their_own() -> None:
    """The evaluation of every epoch is no part of a step."""
    job = started(13 * S)
    run, evaluate = job.execution(), job.loop("evaluate", line=52)
    for epoch in range(9):
        begin = 3 * S + epoch * S
        run.every(60 * MS, 10, dur=60 * MS, start=begin, arg=1)
        evaluate.at(begin + 600 * MS, 400 * MS, flags=Flag.NESTED)
    job.loop("fit").at(3 * S, 9 * S, arg=32 * 90)
    (ledger,) = ledgers(job.session())
    assert times(ledger)["evaluation"] == 9 * 400 * MS
    assert whole(ledger) == ledger.wall_ns


@pytest.mark.parametrize(("calls", "unseen", "overlap"), [(100, 0, 0), (20, 800 * MS, 0), (400, 0, 3 * S)])
def test_steps_in_gaps_are_counted(calls: int, unseen: int, overlap: int) -> None:
    """A gap is as many steps as were counted in it, whatever its length: more than fits in is an overlap, and what is
    left of it is not seen.
    """
    job = started(8 * S)
    run = job.execution()
    run.every(10 * MS, 200, dur=10 * MS, start=3 * S, arg=1)
    job.gap(5 * S, 1 * S, calls)
    run.every(10 * MS, 100, dur=10 * MS, start=6 * S, arg=1)
    job.loop("fit").at(3 * S, 4 * S)
    (ledger,) = ledgers(job.session())
    found, slack = times(ledger), 60 * MS  # observed steps pay for their wrappers; one is broken by the gap
    assert found.get("not-seen", 0) == pytest.approx(unseen, abs=slack)
    assert ledger.overlap_ns == pytest.approx(overlap, abs=4 * slack)
    steps = next(part for part in ledger.parts if part.component == "call")
    assert steps.unobserved_ns == pytest.approx(calls * 10 * MS, abs=4 * slack)
    assert whole(ledger) == pytest.approx(ledger.wall_ns + overlap, abs=4 * slack)


def test_saves_in_gaps_are_on_record() -> None:
    """What is recorded in a gap is no time of the steps that were counted there."""
    job = started(9 * S)
    run = job.execution()
    run.every(10 * MS, 200, dur=10 * MS, start=3 * S, arg=1)
    job.gap(5 * S, 2 * S, 100)
    job.save().at(5 * S + 500 * MS, 1 * S)
    run.every(10 * MS, 100, dur=10 * MS, start=7 * S, arg=1)
    job.loop("fit").at(3 * S, 5 * S)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found["saving"] == 1 * S
    assert found.get("not-seen", 0) < 60 * MS
    assert ledger.overlap_ns < 60 * MS


def test_pauses_in_gaps_are_seen_by_samples() -> None:
    """Samples taken in a gap while no call was counted show Python between two fits."""
    job = started(12 * S)
    run = job.execution()
    run.every(10 * MS, 200, dur=10 * MS, start=3 * S, arg=1)
    job.loop("fit").at(3 * S, 2500 * MS)
    job.gap(5 * S, 500 * MS, 50)
    job.gap(5500 * MS, 2500 * MS, 0)
    python(job, 5500 * MS, 8 * S, line=33)
    run.every(10 * MS, 200, dur=10 * MS, start=8 * S, arg=1)
    job.loop("fit").at(8 * S, 2 * S)
    python(job, 10 * S, 11 * S, line=90)
    (ledger,) = ledgers(job.session())
    found = times(ledger)
    assert found["between-steps"] == pytest.approx(2500 * MS, abs=60 * MS)
    assert found.get("not-seen", 0) < 60 * MS


def test_killed() -> None:
    """The ledger of a job that did not end in an orderly way ends where its records end."""
    job = Job(ended_ns=60 * S, exit_code=-9)
    job.framework(at=3 * S, dur=2 * S)
    assert fit(job, 3 * S, steps=50) == 8 * S
    (ledger,) = ledgers(job.session())
    assert ledger.wall_ns == whole(ledger) == 8 * S
    assert ledger.exit_ns == 0


def test_without_steps() -> None:
    """A job that repeats nothing has a ledger, too: its calls are first steps."""
    job = started(10 * S)
    python(job, 3 * S, 5 * S, line=7)
    job.function().at(5 * S, 3 * S)
    python(job, 8 * S, 9 * S, line=9)
    (ledger,) = ledgers(job.session())
    assert times(ledger) == {
        "start": 1 * S,
        "imports": 2 * S,
        "building": 2 * S,
        "first-steps": 3 * S,
        "end": 2 * S,
    }


def test_without_a_measured_process() -> None:
    """A session in which no process was measured has no ledger."""
    assert ledgers(replace(Job().session(), workers=())) == ()


def test_several_makers() -> None:
    """Two threads that train have a ledger each, after that of the job, which follows one of them."""
    job = started(15 * S)
    step = job.function()
    step.every(100 * MS, 100, dur=100 * MS, start=3 * S)
    step.every(200 * MS, 40, dur=100 * MS, start=4 * S, thread=POOL)
    python(job, 4 * S, 12 * S, line=33, thread=POOL)
    job.event(ThreadSeen(id=MAIN, main=True))
    whole_job, *makers = ledgers(job.session())
    assert whole_job.maker is None
    assert whole_job.wall_ns == 15 * S
    assert [ledger.maker for ledger in makers] == [0, 1]
    second = next(ledger for ledger in makers if ledger.threads == (POOL,))
    assert second.wall_ns == 7900 * MS  # from its first step to the end of its last
    assert times(second)["steps/other-python"] == 38 * 100 * MS
    assert all(whole(ledger) == ledger.wall_ns for ledger in makers)


def test_makers_on_one_thread_share_a_ledger() -> None:
    """What two makers do on one thread is in the job's ledger alone."""
    job = started(15 * S)
    fit(job, 3 * S, steps=50)
    job.loop("predict", line=71).every(100 * MS, 40, dur=100 * MS, start=8 * S)
    python(job, 12 * S, 14 * S, line=90)
    (ledger,) = ledgers(job.session())
    assert times(ledger)["other-steps"] == 4 * S
    assert whole(ledger) == ledger.wall_ns


def test_places() -> None:
    """A part names the lines that its records or samples name."""
    job = started(20 * S)
    python(job, 3 * S, 5 * S, line=7, function="load")
    end = fit(job, 5 * S, steps=50)
    job.loop("evaluate", line=70).at(end, 2 * S)
    (ledger,) = ledgers(job.session())
    spots = Spots(ledger)
    parts = {part.phase: part for part in ledger.parts}
    assert [(spot.line, spot.function) for spot in spots.of(parts["building"])] == [(7, "load")]
    assert [(spot.line, spot.function) for spot in spots.of(parts["evaluation"])] == [(70, "main")]
    assert spots.of(parts["imports"]) == ()


ACTS = st.lists(
    st.tuples(st.sampled_from(["fit", "evaluation", "saving", "tracing", "python", "nothing"]), st.integers(1, 60)),
    min_size=1,
    max_size=12,
).filter(lambda acts: sum(act == "evaluation" for act, _ in acts) < LEAST_STEPS)
"""Fewer evaluations than make steps: with more, they are the steps of a job that does little else."""


@settings(deadline=None, max_examples=60)
@given(acts=ACTS)
def test_parts_add_up(acts: list[tuple[str, int]]) -> None:
    """Whatever a job does in whatever order, its parts add up to its wall time, and each is as long as it was."""
    job = Job()
    job.framework(at=2 * S, dur=1 * S)
    at = fit(job, 2 * S, steps=200, step=50 * MS, call=50 * MS)
    truth = dict.fromkeys(("evaluation", "saving", "tracing", "nothing"), 0)
    for act, length in acts:
        dur = PERIOD * (min(length, 4) if act == "evaluation" else length)
        truth[act] = truth.get(act, 0) + dur
        match act:
            case "fit":
                fit(job, at, steps=length + 1, step=50 * MS, call=50 * MS)
                dur += PERIOD
            case "evaluation":
                job.loop("evaluate").at(at, dur)
            case "saving":
                job.save().at(at, dur)
            case "tracing":
                job.trace(at, dur)
            case "python":
                job.call(Kind.GC, "gc").at(at, dur)
        at += dur
    job.event(ProcessEnded(at=at))
    job.ended_ns = at
    ledger, *_ = ledgers(job.session())
    found = times(ledger)
    assert whole(ledger) == ledger.wall_ns == at
    assert ledger.overlap_ns == 0
    assert found.get("not-seen", 0) == truth["nothing"]
    assert found.get("evaluation", 0) == truth["evaluation"]
    assert found.get("saving", 0) + found.get("steps/saving", 0) == truth["saving"]
    assert np.isclose(found["start"] + found["imports"], 2 * S)
