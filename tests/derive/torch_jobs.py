"""Jobs of PyTorch whose steps have parts: by records, and the forward pass by stack samples."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT, Frame, Job

from stepscope.derive.steps.sampled_parts import MIN_SAMPLES
from stepscope.wire.kinds import Kind

STEPS = 100
MODULE = Frame("/v/site-packages/torch/nn/modules/module.py", "Module._call_impl", 1800, own=False)
LINEAR = Frame("/v/site-packages/torch/nn/modules/linear.py", "Linear.forward", 134, own=False)
LOOP = Frame(SCRIPT, "<module>", 12)


def training(*, backward: bool = True, steps: int = STEPS) -> Job:
    """Steps of 10 ms: waiting 1 ms, Python and forward pass 3 ms, backward pass 4 ms, optimizer 2 ms."""
    job = Job()
    job.framework("torch", "2.13.0")
    job.nexts().every(10 * MS, steps, dur=MS)
    if backward:
        job.call(Kind.AUTOGRAD, "backward").every(10 * MS, steps, dur=4 * MS, start=4 * MS)
    ends = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=15)
    ends.every(10 * MS, steps, dur=0, start=10 * MS, arg=2 * MS)
    return job


def sampled(job: Job, at: int, *frames: Frame, count: int = MIN_SAMPLES + 1, dur: int = 10 * MS) -> None:
    """Samples at one place of the steps, a step each."""
    job.samples([(10 + 10 * step) * MS + at for step in range(count)], *frames, dur=dur)
