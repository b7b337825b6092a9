"""Bytes of each batch that no op of the step reads, and the input's work on them.

What of a batch the steps' graphs read is known from the graphs (``read_parts``); the size of a batch from tf.data. The
stages whose elements are large enough to hold what is not read work on it. How much of their time that is lies between
copying it once in each stage that makes or copies elements, and its share of their bytes; half-way is taken: the ten
frames of bench/rand of which one is used take 58 % of the map's time, for 90 % of its bytes.

Serves unread_input and host_to_device_copy_bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import read_parts
from stepscope.causes.input import input_work
from stepscope.causes.system import contention
from stepscope.derive.graph import step_graphs
from stepscope.derive.input.bound import COPY_BYTES_S

if TYPE_CHECKING:
    from stepscope.causes.graph.read_parts import ReadPart
    from stepscope.causes.input.input_work import InputWork
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.steps_view import StepsView

SAME = 1.1
"""Bytes of the tensors that enter the graphs, over those of a batch: more are not (only) that batch's."""
HOLDS = 0.99
"""Bytes of a stage's elements over the unread ones from which they can be among them: counters are rounded."""
FULL = 1.0
"""CPUs that the job's threads run on or wait for, over those that it may use, from which they are full."""
NEARLY_ALL = 0.8
"""Share of the steps that have the same number of samples."""


class UnreadInput(Struct, frozen=True, kw_only=True):
    """What steps are given and do not read. Ratios are shares of the time of the steps."""

    batch_bytes: float
    unread_bytes: float
    parts: tuple[ReadPart, ...]
    """The tensors of which not all is read, the one with most unread bytes first."""
    stage: Stage
    """The first stage, from the source, whose elements hold the unread bytes."""
    ratio: float
    low: float
    high: float

    @property
    def unread_ratio(self) -> float:
        """Share of the bytes of a batch that is not read."""
        return self.unread_bytes / self.batch_bytes


def build(view: StepsView) -> UnreadInput | None:
    """None if all is read, or what is read or made is not known."""
    work = view.get(input_work.build)
    if work is None or view.graphs is None:
        return None
    parts = read_parts.build(view.graphs, _samples(view), step_graphs.build(view.steps))
    whole = max((stage.bytes for stage in work.stages[:1]), default=0.0)
    unread = sum(part.bytes * (1 - part.ratio) for part in parts)
    if not 0 < unread <= whole or sum(part.bytes for part in parts) > SAME * whole:
        return None
    holding = [at for at, stage in enumerate(work.stages) if stage.bytes >= HOLDS * unread]
    if not holding:
        return None
    least, most = _work(work, holding, unread)
    some = sorted((p for p in parts if p.ratio < 1), key=lambda p: p.bytes * (p.ratio - 1))
    return UnreadInput(
        batch_bytes=whole,
        unread_bytes=unread,
        parts=tuple(some),
        stage=work.stages[holding[-1]],
        ratio=_share(view, work, (least + most) / 2),
        low=_share(view, work, least),
        high=_share(view, work, most),
    )


def _samples(view: StepsView) -> int:
    """Samples of one batch; 0: unknown."""
    steps = view.steps
    known = steps.samples[steps.steady & (steps.samples > 0)].tolist()
    usual = max(set(known), key=known.count, default=0)
    if not known or known.count(usual) < NEARLY_ALL * len(known):
        return 0
    return round(usual / view.pipeline.batches_per_step)


def _work(work: InputWork, holding: list[int], unread: float) -> tuple[float, float]:
    """Shares of the input's CPU time that go into the unread bytes, at least and at most."""
    stages = work.layout.stages
    whole = sum(stage.cpu_ns for stage in stages)
    if whole <= 0:
        return 0.0, 0.0
    most = sum(stages[at].cpu_ns * min(1.0, unread / stages[at].bytes) for at in holding)
    touching = [at for at in holding if work.stages[at].family in input_work.COPYING | input_work.MAKING]
    least = sum(min(1e9 * unread / COPY_BYTES_S, stages[at].cpu_ns) for at in touching)
    return min(least, most) / whole, most / whole


def _share(view: StepsView, work: InputWork, part: float) -> float:
    """Share of the steps' time that goes, if a part of the input's work does: of its wait, or of CPUs that are full."""
    wait = view.anatomy.ratio("input-wait")
    cpus = view.get(contention.build)
    step = min(work.wall_ns, work.layout.consumer.step_ns + wait * work.wall_ns)
    full = cpus is not None and cpus.wanted >= FULL * cpus.available
    taken = part * work.shown_ns / (work.layout.consumer.cores * step) if full and step > 0 else 0.0
    return min(1.0, max(min(part, wait), taken))
