"""Turns are found where something that holds many steps repeats, and divide into what was put there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S
from tests.derive.turn_jobs import DRAW, OUTER, PAUSE_NS, STEP_NS, STEPS, TOKENIZE, ended, folds, prompts, started

from stepscope.causes.general import turn_times
from stepscope.derive.view import SessionView
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.causes.general.turn_times import TurnTimes


def found(job: Job) -> TurnTimes | None:
    """What the turns of a job are."""
    return SessionView(job.session()).get(turn_times.build)


def parts(times: TurnTimes) -> dict[str, int]:
    """Time of each part of the mean turn, ms."""
    return {str(part.phase): round(part.ns / MS) for part in times.parts}


def test_repetitions_of_a_loop_around_the_steps() -> None:
    """A pause in the outer loop marks a turn, and a function that the loop calls in it has its time."""
    times = found(prompts(6))
    assert times is not None
    assert (times.turns.count, times.turns.line, times.turns.function) == (6, OUTER, "main")
    assert not times.turns.call
    assert times.turns.exact
    assert times.mean_ns == PAUSE_NS + STEPS * STEP_NS
    assert parts(times) == {"steps": 1000, "between-steps": 500}
    top = times.part("between-steps")
    assert top is not None
    assert [(spent.place.line, spent.place.function) for spent in top.lines] == [(40, "slow")]
    assert top.lines[0].caller is not None
    assert top.lines[0].caller.line == TOKENIZE


def test_pauses_in_gaps_are_no_steps() -> None:
    """A pause of which the agent's looks saw that no call was counted lies between steps, wherever the gap begins."""
    times = found(prompts(8, hidden=(2, 3, 4, 5, 6)))
    assert times is not None
    assert times.turns.count == 8
    split = parts(times)
    assert split["between-steps"] == pytest.approx(500, abs=101)  # and half a look at either end
    assert split["steps"] == pytest.approx(1000, abs=120)  # counted steps have no wrappers to pay for


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (lambda: prompts(2), "two are phases"),
        (lambda: prompts(6, line=DRAW), "the body of the steps' own loop"),
        (lambda: prompts(6, source=""), "no source says where loops are"),
    ],
    ids=["two", "own", "unknown"],
)
def test_what_is_no_turn(job: object, why: str) -> None:
    """Fewer than three, what the loop of the steps does now and then, and what no source shows to be a loop."""
    assert callable(job)
    assert found(job()) is None, why


METRICS = """
def confusion(rows):
    for one in rows:
        for other in rows:
            look(one, other)

def main():
    for batch in batches:
        update(batch)
        confusion(rows)
"""


def test_loops_of_what_a_step_calls_are_not_around_the_steps() -> None:
    """Most stacks of a step of PyTorch's are in its metrics, which have two loops; some calls of them take long."""
    job = started(METRICS)
    update = job.call(Kind.APPLY, "step", role="optimizer", call_file=SCRIPT, call_line=9, call_function="main")
    at, main = 2 * S, Frame(SCRIPT, "main", 10)
    for number in range(400):
        update.at(at, 0)
        job.samples([at + 5 * MS], main, Frame(SCRIPT, "confusion", 5), dur=8 * MS)
        at += 10 * MS
        if number % 40 == 39:
            job.samples(range(at, at + 500 * MS, 50 * MS), main, Frame(SCRIPT, "confusion", 3), dur=50 * MS)
            at += 500 * MS
    assert found(ended(job, at)) is None


def test_calls_of_fit_at_one_line() -> None:
    """A fold lasts from one call of fit to the next; its traces are tracing, and what the loop calls has a line."""
    times = found(folds(5))
    assert times is not None
    assert (times.turns.count, times.turns.whole, times.turns.line) == (5, 4, 50)
    assert times.turns.call == "fit"
    assert times.mean_ns == 2 * S
    split = parts(times)
    assert split["between-steps"] == pytest.approx(1000, abs=20)
    assert split["tracing"] == pytest.approx(200, abs=10)
    assert sum(split.values()) == pytest.approx(2000, abs=5)


def test_fits_at_other_lines_are_phases() -> None:
    """A warm-up, a training and a fine-tuning are no turns."""
    assert found(folds(3, lines=(50, 60, 70))) is None
