"""What the step function of Keras on PyTorch does, by records and stack samples."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job

from stepscope.derive.python import keras_parts
from stepscope.derive.steps import anatomy
from stepscope.diagnosis import analyze
from stepscope.wire.kinds import Kind

STEPS = 100
PERIOD = 20 * MS
KERAS = "/v/site-packages/keras/src"
FIT = Frame(SCRIPT, "<module>", 9)


def in_step(line: int) -> tuple[Frame, ...]:
    """A stack in a line of Keras' ``train_step``."""
    return FIT, Frame(f"{KERAS}/backend/torch/trainer.py", "TorchTrainer.train_step", line, own=False)


LAYER = Frame(f"{KERAS}/layers/layer.py", "Layer.__call__", 900, own=False)
APPLY = Frame(f"{KERAS}/optimizers/base_optimizer.py", "BaseOptimizer.apply", 400, own=False)


def training(*, backward: bool = True) -> Job:
    """Steps of 20 ms whose call takes 16 and whose backward pass 4."""
    job = Job()
    job.framework("torch", "2.13.0")
    job.execution().every(PERIOD, STEPS, dur=16 * MS, arg=1)
    job.execution("test").every(10 * PERIOD, 10, dur=3 * MS, start=16 * MS)  # an evaluation has no backward pass
    if backward:
        job.call(Kind.AUTOGRAD, "backward").every(PERIOD, STEPS, dur=4 * MS, start=8 * MS)
    return job


def sampled(job: Job, at: int, *frames: Frame, count: int) -> None:
    """Samples at one place of the steps, a step each."""
    job.samples([(10 + step) * PERIOD + at for step in range(count)], *frames, dur=10 * MS)


def test_parts_are_shares_of_the_call() -> None:
    """A quarter by records; of the rest half of the samples in layers, a quarter each in optimizer and one line."""
    job = training()
    sampled(job, 2 * MS, *in_step(40), LAYER, count=40)
    sampled(job, 9 * MS, *in_step(62), count=40)  # in the backward pass: its records say more
    sampled(job, 13 * MS, *in_step(68), APPLY, count=20)
    sampled(job, 15 * MS, *in_step(72), count=20)
    found = keras_parts.build(anatomy.build(job.steps()))
    assert found is not None
    assert (found.samples, found.rest_line) == (80, 72)
    shares = found.backward_ratio, found.forward_ratio, found.optimizer_ratio, found.rest_line_ratio
    assert shares == pytest.approx((0.25, 0.375, 0.1875, 0.1875))
    (said,) = (part.basis for part in analyze.components(job.view()) if part.component == "call")
    assert "25 % in the backward pass" in said
    assert "37 % in layers" in said
    assert "trainer.py:72" in said


def test_few_samples_say_little() -> None:
    """The backward pass stands by its records; the rest is not split."""
    job = training()
    sampled(job, 2 * MS, *in_step(40), LAYER, count=5)
    found = keras_parts.build(anatomy.build(job.steps()))
    assert found is not None
    assert (found.forward_ratio, found.optimizer_ratio, found.samples) == (None, None, 5)
    (said,) = (part.basis for part in analyze.components(job.view()) if part.component == "call")
    assert "too few" in said


def test_a_compiled_step_has_no_such_parts() -> None:
    """Without the autograd engine of PyTorch nothing is said of the call."""
    job = training(backward=False)
    assert keras_parts.build(anatomy.build(job.steps())) is None
    assert {part.basis for part in analyze.components(job.view())} == {""}
