"""Steps too frequent to be recorded one by one: all are counted, and only those that were timed are steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.derive.sessions import SCRIPT, US, Call, Job

from stepscope.derive.steps import totals
from stepscope.derive.steps.steps import Steps
from stepscope.wire.kinds import Flag, Kind

PERIOD = 100 * US
TIMED, ALL = 1000, 9000


def update(job: Job) -> Call:
    """An optimizer of PyTorch's."""
    return job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=12)


def inference(job: Job) -> Call:
    """A session of ONNX Runtime's."""
    return job.call(Kind.INFERENCE, "model.onnx")


def function(job: Job) -> Call:
    """A tf.function."""
    return job.function()


def thinned(job: Job, call: Call, every: int, *, timed: int = TIMED) -> Steps:
    """So many steps with a record each, then one in ``every``; the others are counted a hundred at a time."""
    call.every(PERIOD, timed, dur=PERIOD // 2)
    left = ALL - timed
    call.every(every * PERIOD, left // every, dur=PERIOD // 2, start=(timed + every - 1) * PERIOD, flags=Flag.THINNED)
    for first in range(timed, ALL, 100):
        call.counted(first * PERIOD + 1, calls=100 - 100 // every, total=0)
    return job.steps()


@pytest.mark.parametrize("make", [update, inference, function])
@pytest.mark.parametrize("every", [2, 4, 10])
def test_each_step_is_counted_once(make: Callable[[Job], Call], every: int) -> None:
    """A record that stands for several steps is no long step."""
    job = Job()
    found = thinned(job, make(job), every)
    assert found.count == ALL
    assert set(found.durations[found.steady].tolist()) == {PERIOD}
    assert found.steady_count == pytest.approx(TIMED, abs=120)
    total = totals.of(found)
    assert total is not None
    assert total.mean_ns == pytest.approx(PERIOD, rel=0.01)
    assert found.span[1] == pytest.approx(ALL * PERIOD, abs=2 * every * PERIOD)


def test_where_none_was_timed_all_are_as_they_were_recorded() -> None:
    """Too few timed steps say nothing of thousands."""
    job = Job()
    found = thinned(job, update(job), 4, timed=0)
    assert found.count == ALL
    assert not found.unobserved.any()


def test_counted_calls_of_others_are_no_steps() -> None:
    """Short calls that are counted by their kind, or thinned ones of another name or thread, are not the steps'."""
    job = Job()
    step = update(job).every(PERIOD, TIMED, dur=0)
    step.every(4 * PERIOD, 10, dur=0, start=TIMED * PERIOD, flags=Flag.THINNED)
    step.counted(TIMED * PERIOD + 1, calls=30, total=0)
    job.nexts().counted(PERIOD + 1, calls=500, total=US)
    other = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=90)
    other.counted(PERIOD + 2, calls=500, total=US)
    step.counted(PERIOD + 3, calls=500, total=US, thread=7)
    assert job.steps().count == TIMED + 40
