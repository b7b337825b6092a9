"""Samples of calls of several sizes, of which looks at some and the shapes of all are recorded."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, Job

from stepscope.derive.steps import step_makers
from stepscope.model.log.program import ShapeMet
from stepscope.wire.kinds import SHAPE_SHIFT

PERIOD = 100 * MS


@pytest.mark.parametrize(
    ("dims", "rounded", "mean", "known"),
    [
        ((200, 64), False, 32 + 168 / 10, True),
        ((256, 64), True, 32, False),
        ((32, 256), True, 32, True),
        ((), False, 32, False),
    ],
)
def test_samples_are_those_of_each_shape(dims: tuple[int, ...], rounded: bool, mean: float, known: bool) -> None:
    """Each tenth call has another shape, and no look sees one: its size is the shape's, or known to be another."""
    job = Job()
    job.event(ShapeMet(id=1, dims=(32, 64)), ShapeMet(id=2, dims=dims, rounded=rounded))
    call = job.function()
    for i in range(41):
        call.at(i * PERIOD, 80 * MS, arg=0 if i % 4 else 32, flags=(2 if i % 10 == 5 else 1) << SHAPE_SHIFT)
    steps = job.steps()
    assert steps.samples[:40].mean() == pytest.approx(mean)
    (maker,) = step_makers.build(steps)
    assert (maker.samples_per_s is not None) == known


def test_a_first_size_that_is_no_batch_tells_nothing() -> None:
    """Where the looks see other sizes than the shapes begin with, the looks alone count."""
    job = Job()
    job.event(ShapeMet(id=1, dims=(512, 64)), ShapeMet(id=2, dims=(256, 64), rounded=True))
    call = job.function()
    for i in range(41):
        call.at(i * PERIOD, 80 * MS, arg=0 if i % 4 else 32, flags=(2 if i % 10 == 5 else 1) << SHAPE_SHIFT)
    assert set(job.steps().samples.tolist()) == {32}
    assert step_makers.build(job.steps())[0].samples_per_s is not None
