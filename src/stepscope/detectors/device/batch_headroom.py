"""The GPU's memory would hold a larger batch.

## What it detects
Live bytes at their peak fill a small part of the device's memory, and the device is not busy all the time: a larger
batch would fit and would give it more work at once.

## Why it matters
Small batches make kernels short and launch-bound, and the host's part of the step is paid for few samples. The usual
tools do not show how much larger the batch could be: TensorFlow reserves nearly all memory whatever it needs.

## Evidence
`live_bytes`: tensors at their peak as TensorFlow's own allocator counts them; `total_bytes` of the device;
`batch_allowed`: the largest batch that fits into 90 % of it if memory grew in proportion to the batch, a lower bound,
because weights and optimiser state do not grow; `gpu_busy_ratio`.

## Known limits
Live bytes come from inside the job (`tf.config.experimental.get_memory_info`, every ten seconds): not from compat.v1
sessions without an eager context, nor from jobs without the agent. Not yet tried on a real GPU: tested with a library
that replays NVML's readings. Larger batches change training: learning rate and generalisation are yours to judge, and
no speed-up is promised.

## Remedy
Try twice the batch size, with the learning rate adjusted, and compare samples per second. `set_memory_growth` makes
TensorFlow reserve only what it needs, so that other tools show it and other jobs can use the rest.

## References
TensorFlow API: tf.config.experimental.get_memory_info. FSE'22 study, "Model: improper hyper parameter".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import gpu
from stepscope.causes.system.gpu import no_gpu
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import op_places
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView

USABLE = 0.9
"""Of the device's memory: the rest is CUDA's context, fragmentation and work space of libraries."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_growth: float = 2.0
    """How many times larger the batch must be able to get."""
    max_busy_ratio: Ratio = Ratio(0.9)
    """A device that is busier gains little."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding, as information: the gain of a larger batch is not measured."""
    steps = view.steps
    if steps.steady_count == 0:
        return
    known = [one for one in view.get(gpu.build) if one.live_bytes > 0 and one.total_bytes > 0]
    one = max(known, key=lambda g: g.live_bytes / g.total_bytes, default=None)
    batch = float(steps.samples[steps.steady].mean())
    if one is None or batch <= 0 or one.busy_ratio > params.max_busy_ratio:
        return
    growth = USABLE * one.total_bytes / one.live_bytes
    if growth < params.min_growth:
        return
    allowed = int(batch * growth)
    share = format_ratio(one.live_bytes / one.total_bytes)
    yield Seen(
        title=f"a batch of {allowed:,} instead of {batch:,.0f} would fit on the GPU: tensors use {share} of its "
        f"memory, and it is busy {format_ratio(one.busy_ratio)} of the time",
        severity="info",
        confidence=0.6,
        where=op_places.of_steps(view),
        evidence=(
            Evidence(metric="live_bytes", value=one.live_bytes, unit="bytes"),
            Evidence(metric="total_bytes", value=one.total_bytes, unit="bytes"),
            Evidence(metric="batch_allowed", value=allowed, unit="samples"),
            Evidence(metric="gpu_busy_ratio", value=one.busy_ratio, unit="ratio", threshold=params.max_busy_ratio),
        ),
        cost=cost_of(view, 0.0, basis="prior"),
        remedies=(
            Remedy(id="larger-batch", text="try twice the batch size with the learning rate adjusted"),
            _GROWTH,
        ),
        explanation="nvidia-smi does not show this: it counts reserved memory, and TensorFlow reserves nearly all at "
        "its start.",
    )


_GROWTH = Remedy(
    id="memory-growth",
    text="to see what the job needs, and to leave the rest to other jobs, before TensorFlow first uses the GPU: "
    'for gpu in tf.config.list_physical_devices("GPU"): tf.config.experimental.set_memory_growth(gpu, True)',
    safety="safe",
)
"""The same as TF_FORCE_GPU_ALLOW_GROWTH=true. Source: TensorFlow guide, "Use a GPU", limiting GPU memory growth."""


DETECTOR = Detector(
    code="GPU004",
    name="batch-headroom",
    symptom="Memory: abnormal GPU memory usage",
    cause="Model: improper hyper parameter",
    introduced_stage="hyper parameter tuning",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.GPU, Signal.LIVE_BYTES}),
    params=Params(),
    detect=detect,
    applies=no_gpu,
)
