"""What is rare and long, where most steps are only counted: simulated runs with known truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from tests.derive.sessions import MS, NESTED, Job

from stepscope.derive.steps import rare, step_candidates, step_finder
from stepscope.diagnosis import analyze
from stepscope.model.log.events import ProcessEnded
from stepscope.report import words
from stepscope.report.sections import step_summary
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.tables.records import Bool

STEP, LONG = 8 * MS, 200 * MS


def simulated(every: int, *, seed: int, steps: int = 1500, cut: bool = False) -> tuple[Job, list[int]]:
    """A fit that calls predict after each so many batches. Few batches are timed, in windows at random places; loops
    are recorded always. ``cut``: killed within its last gap, which nobody told then. Also the durations of all calls.
    """
    random = np.random.default_rng(seed)
    job = Job(exit_code=137 if cut else 0)
    step, predict = job.execution(), job.loop("predict", line=15)
    windows = sorted(random.choice(np.arange(60, steps - 60), 4, replace=False).tolist())
    steps = windows[-1] + 15 + 60 if cut else steps
    starts, calls, at = [], [], 0
    for number in range(steps):
        starts.append(at)
        at += STEP
        if number % every == every - 1:
            calls.append(int(LONG * random.lognormal(0.0, 0.3)))
            predict.at(at, calls[-1], flags=NESTED)
            at += calls[-1]
    seen = {*range(40), *(number for begin in windows for number in range(begin, begin + 15))}
    seen |= set() if cut else set(range(steps - 20, steps))
    for number in sorted(seen):
        step.at(starts[number], 5 * MS, arg=1)
    hidden = [number for number in range(steps) if number not in seen]
    for run in np.split(np.array(hidden), np.flatnonzero(np.diff(hidden) > 1) + 1):
        first, last = int(run[0]), int(run[-1])
        if not (cut and last == steps - 1):
            until = starts[last + 1] - MS
            job.gap(starts[first] - 2 * MS, until - starts[first] + 2 * MS, len(run))
    job.ended_ns = at
    if not cut:
        job.loop("fit").at(0, at)
    return job, calls


@pytest.mark.parametrize("every", [5, 10, 50, 75])
@pytest.mark.parametrize("seed", range(6))
def test_how_often_and_how_long(every: int, seed: int) -> None:
    """Within 3 %, however many calls the timed windows happen to hold; the usual time is a call's."""
    job, calls = simulated(every, seed=seed)
    steps = job.steps()
    assert steps is not None
    assert steps.skipped > steps.steady_count
    records = steps.worker.records
    loops = (records.kind == Kind.LOOP) & (records.dur_ns < max(calls) + 1)
    found = rare.of(steps, loops)
    assert found is not None
    assert found.calls in {len(calls), len(calls) - 1}  # the last one may follow the last step
    assert found.every == pytest.approx(every, rel=0.03)
    assert found.usual_ns == pytest.approx(float(np.median(calls)), rel=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_run_says_at_least(seed: int) -> None:
    """The count of the last gap was lost with the process: the steps are a bound, how often predict comes is not."""
    job, _ = simulated(10, seed=seed, cut=True)
    view = job.view()
    (worker,) = view.workers
    batches = next(one for one in step_candidates.of(worker) if one.kind == Kind.EXECUTION)
    steps = view.__dict__["steps"] = step_finder.build(batches)
    found = rare.of(steps, worker.records.kind == Kind.LOOP)
    assert found is not None
    assert found.every == pytest.approx(10, rel=0.03)
    assert step_summary.at_least(view, ended="code")
    summary = analyze.report_of_view(job.view()).session
    said = words.steps_text(msgspec.structs.replace(summary, steps=40, steps_at_least=True))
    assert said == "at least 40 steps"


def test_a_run_that_a_signal_ended_in_order_lost_no_count() -> None:
    """Ctrl-C: the interpreter ended, and the agent wrote what it had counted."""
    job, _ = simulated(10, seed=0, cut=True)
    job.event(ProcessEnded(at=job.ended_ns))
    view = job.view()
    (worker,) = view.workers
    batches = next(one for one in step_candidates.of(worker) if one.kind == Kind.EXECUTION)
    view.__dict__["steps"] = step_finder.build(batches)
    assert not step_summary.at_least(view, ended="code")


def test_a_run_that_ended_says_how_many() -> None:
    """Nothing was lost."""
    job, _ = simulated(10, seed=1)
    summary = analyze.report_of_view(job.view()).session
    assert not summary.steps_at_least
    assert words.steps_text(summary) == words.steps_text(msgspec.structs.replace(summary, steps_at_least=False))


def test_what_gaps_do_not_record_is_not_told() -> None:
    """Callbacks leave no records in gaps: how often they come is not known from those that were seen."""
    job, _ = simulated(10, seed=1)
    job.callback("Watch.on_train_batch_end").at(3 * STEP + 6 * MS, MS)
    steps = job.steps()
    assert steps is not None
    assert rare.counted(steps, steps.worker.records.kind == Kind.CALLBACK) is None


@pytest.mark.parametrize("every", [2, 5, 10, 37, 400])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_the_truth(every: int, seed: int) -> None:
    """Whole numbers are said as such where the bounds leave no other; a lone call says only how rare it is at least."""
    job, calls = simulated(every, seed=seed)
    steps = job.steps()
    assert steps is not None
    found = rare.of(steps, (steps.worker.records.kind == Kind.LOOP) & (steps.worker.records.dur_ns < max(calls) + 1))
    assert found is not None
    assert found.low <= every <= found.high
    assert found.often("batch", "batches").split()[-2] == str(every) or found.high > found.low + 1


@pytest.mark.parametrize(("every", "said"), [(5, "every 5 batches"), (11, "every 11 batches"), (2, "every 2 batches")])
@pytest.mark.parametrize("seed", range(4))
def test_what_gaps_lack_is_known_from_one_window(every: int, said: str, seed: int) -> None:
    """Two calls with nothing but timed steps between them say it; their number among timed steps is chance."""
    found = rare.of(*_callbacks(every, seed))
    assert found is not None
    assert found.often("batch", "batches") == said


@pytest.mark.parametrize(("every", "least"), [(45, 20), (300, 20)])
@pytest.mark.parametrize("seed", range(4))
def test_without_two_in_a_window_there_is_a_bound(every: int, least: int, seed: int) -> None:
    """It is below the truth, and said to be a bound."""
    found = rare.of(*_callbacks(every, seed))
    assert found is not None
    assert found.high == np.inf
    assert least <= found.low <= every
    assert found.often("batch", "batches") == f"every {found.low:.0f} batches or more"


def test_a_step_each_is_every_step() -> None:
    """No plural, and no number."""
    found = rare.of(*_callbacks(1, 0))
    assert found is not None
    assert found.often("batch", "batches") == "every batch"


def _callbacks(every: int, seed: int) -> tuple[Steps, Bool]:
    """The steps of a run in whose timed steps a callback works each so many batches, from some batch on."""
    job, _ = simulated(10_000, seed=seed)
    steps = job.steps()
    assert steps is not None
    number = np.arange(len(steps.starts)) + np.cumsum(steps.unobserved * 1_000_003)
    first = np.random.default_rng(seed).integers(min(every, 36))  # the first 40 steps are timed
    timed = steps.starts[~steps.unobserved & (number % every == first)]
    work = job.callback("Watch.on_train_batch_end")
    for start in timed.tolist():
        work.at(start + 6 * MS, MS)
    steps = job.steps()
    assert steps is not None
    return steps, steps.worker.records.kind == Kind.CALLBACK
