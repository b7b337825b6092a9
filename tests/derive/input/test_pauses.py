"""Pauses between two batches, and the input wait inside of compiled steps."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US, Job, S, node

from stepscope.derive.input import pipeline
from stepscope.derive.input.pipeline import Pipeline

PERIOD = 100 * MS
WAIT = 30 * MS


def paused(
    pauses: dict[int, int], *, executions: int = 60, waits: int = WAIT, reads: tuple[int, ...] = (59,)
) -> Pipeline:
    """Executions of the usual period; after some of them the consumer pauses so many ns."""
    job = Job()
    iterator = job.iterator(job.dataset("MapDataset"))
    run, at, starts = job.execution("train"), 0, []
    gaps = [PERIOD - waits + pauses.get(i, 0) for i in range(executions)]
    for gap in gaps:
        starts.append(at)
        run.at(at, PERIOD - 10 * MS, arg=1)
        at += waits + gap
    for last in reads:
        told = [gap // US for gap in gaps[:last] if gap < 10 * S]
        job.model(iterator, starts[last] + PERIOD // 2, [node(1, "Map", elements=last + 1)], told)
    return pipeline.build(job.steps())


@pytest.mark.parametrize(
    ("pauses", "reads"),
    [
        ({}, (59,)),
        ({30: 8 * S}, (59,)),  # reported
        ({30: 20 * S}, (59,)),  # one pause in a callback
        ({30: 20 * S}, (20, 40, 59)),
        ({19: 11 * S, 39: 11 * S}, (18, 38, 58)),  # a save at each epoch's end
        ({30: 10 * S - PERIOD + WAIT}, (59,)),  # just too long
        ({10: 9 * S, 20: 600 * S, 40: 3 * S}, (59,)),  # a debugger, between slower things
    ],
)
@pytest.mark.parametrize("waits", [0, WAIT])
def test_a_pause_between_two_batches_is_no_wait_for_input(
    pauses: dict[int, int], reads: tuple[int, ...], *, waits: int
) -> None:
    """Of any length: tf.data is silent from ten seconds on, and the gaps before it are those of other steps."""
    pipe = paused(pauses, waits=waits, reads=reads)
    assert pipe.wait_ns_per_execution == pytest.approx(waits, abs=US)


def test_a_long_wait_for_input_is_none_the_less_one() -> None:
    """A batch that takes twelve seconds is within the call, and the consumer's gaps are short."""
    job = Job()
    iterator = job.iterator(job.dataset("MapDataset"))
    job.execution("train").every(12 * S, 20, dur=11_900 * MS, arg=1)
    job.model(iterator, 19 * 12 * S + S, [node(1, "Map", elements=20)], [200_000] * 19)
    assert pipeline.build(job.steps()).wait_ns_per_execution == pytest.approx(11_800 * MS, rel=0.01)
