"""How fast a pipeline could be: its stages' work for a batch, divided over the cores in the best way.

Work can be divided as one likes among stages that may have any number of threads, so the best division of n cores is
known in closed form: a batch takes no less than the CPU time of all stages and of the step over n, no less than what
runs on one thread, and no less than the step. The largest of these binds.

Source: Kuchnik et al., Plumber, MLSys 2022, section 4.3 (a linear programme over the cores' shares, whose solution this
is), 4.4 (caching).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Binds = Literal["cores", "stage", "step", "disk", "network"]

CALL_NS = 18_000.0
"""CPU time of one call of a map's function, whatever it does: 17-18 us for one op, TensorFlow 2.21, batches of 512. The
model does not count it: the clock of the stage shows 1-6 us of 26-31."""
FILTER_NS = 9_000.0
"""The same of a filter's."""
PASS_NS = 400.0
"""CPU time to pass on one small element: 0.3-0.5 us for a batch of rows, a shuffle, a cache that is read."""
COPY_BYTES_S = 12e9
"""Copying elements into a batch: rows of 12 KB take 0.7-1.1 us longer than rows of 16 bytes (same programs)."""
MIN_GAIN = 1.03
"""An edit that gains less is not one."""
MAX_CORES = 256
"""Most cores that are asked about."""


class StageWork(Struct, frozen=True, kw_only=True):
    """One stage's work for a batch."""

    name: str
    cpu_ns: float
    """CPU time over all its threads."""
    calls_ns: float = 0.0
    """What of it goes into the calls of its function, whatever that does."""
    blocked_ns: float = 0.0
    """Time for which it waits for something else than its inputs: a file, a connection, a sleep."""
    most: float = 1.0
    """Threads that it may have; infinity: as many as there are."""
    stretch: int = 0
    """Stages of one stretch without own threads run one after the other."""
    depth: int = 0
    """Stages between it and the consumer: its inputs follow it, deeper than it."""
    elements: float = 1.0
    """Elements that it works on."""
    bytes: float = 0.0
    """Memory of the elements that it gives."""


class Consumer(Struct, frozen=True, kw_only=True):
    """What takes the batches, and on what machine."""

    cores: float
    """CPUs that the job may use."""
    step_ns: float
    """Time of the step, for a batch, without its wait, and without what making batches takes from it."""
    step_cpu_ns: float
    """CPU time of the same."""
    overlaps: bool
    """Whether batches are made while the step computes: a prefetch, or own threads, stand before it."""
    outside_ns: float = 0.0
    """Time in which a full disk or link delivers a batch; 0: neither is full."""
    outside: Literal["disk", "network"] = "disk"


class BatchPace(Struct, frozen=True, kw_only=True):
    """The least time for a batch, and what sets it."""

    ns: float
    binds: Binds
    stage: int = -1
    """Place of the stage with most of the time, if a stage binds."""


class ConsumedPipeline(Struct, frozen=True, kw_only=True):
    """A pipeline and its consumer."""

    stages: tuple[StageWork, ...]
    """From the consumer to the sources, as in ``derive.input.stages``."""
    consumer: Consumer


def pace(layout: ConsumedPipeline) -> BatchPace:
    """The least time for a batch at the best division of the cores."""
    to, stages = layout.consumer, layout.stages
    cores = max(to.cores, 1e-3)
    found = [BatchPace(ns=(sum(s.cpu_ns for s in stages) + to.step_cpu_ns) / cores, binds="cores")]
    for stretch in sorted({s.stretch for s in stages}):
        mine = [at for at, s in enumerate(stages) if s.stretch == stretch]
        longest = max(mine, key=lambda at: _alone(stages[at], cores))
        found.append(BatchPace(ns=sum(_alone(stages[at], cores) for at in mine), binds="stage", stage=longest))
    if to.outside_ns:
        found.append(BatchPace(ns=to.outside_ns, binds=to.outside))
    slowest = max(found, key=lambda p: p.ns)
    if to.overlaps:
        own = BatchPace(ns=to.step_ns, binds="step")
        return max(slowest, own, key=lambda p: p.ns)
    made = max((p for p in found if p.binds != "cores"), key=lambda p: p.ns, default=BatchPace(ns=0.0, binds="step"))
    return max(replace(made, ns=made.ns + to.step_ns), slowest, key=lambda p: p.ns)


def on_cores(layout: ConsumedPipeline, cores: float) -> ConsumedPipeline:
    """The same job on another number of CPUs. Its step is no faster on more: how it divides is not known."""
    return replace(layout, consumer=replace(layout.consumer, cores=cores))


def core_counts(now: ConsumedPipeline, best: ConsumedPipeline) -> list[int]:
    """Numbers of cores worth telling: powers of two, to the first at which cores no longer bind either layout."""
    counts = []
    cores = 1
    while cores <= MAX_CORES:
        counts.append(cores)
        if all(pace(on_cores(one, cores)).binds != "cores" for one in (now, best)):
            break
        cores *= 2
    return counts


def _alone(stage: StageWork, cores: float) -> float:
    """The least time in which a stage does its work for a batch."""
    if math.isinf(stage.most):
        return stage.cpu_ns / cores
    threads = max(1.0, stage.most)
    return stage.cpu_ns / min(threads, max(1.0, cores)) + stage.blocked_ns / threads


def below(stages: Sequence[StageWork], at: int) -> range:
    """Places of the stages that feed one."""
    end = at + 1
    while end < len(stages) and stages[end].depth > stages[at].depth:
        end += 1
    return range(at + 1, end)


def parallel(layout: ConsumedPipeline, at: int) -> ConsumedPipeline:
    """A stage may have any number of threads."""
    return _with(layout, at, lambda stage: replace(stage, most=math.inf))


def prefetched(layout: ConsumedPipeline) -> ConsumedPipeline:
    """Batches are made while the step computes."""
    return replace(layout, consumer=replace(layout.consumer, overlaps=True))


def fewer(layout: ConsumedPipeline, at: int, ratio: float) -> ConsumedPipeline:
    """A stage works on a part of its elements, because a later stage that discards the others comes before it."""
    return _with(layout, at, lambda stage: _part(stage, ratio))


def _part(stage: StageWork, ratio: float) -> StageWork:
    return replace(
        stage,
        cpu_ns=stage.cpu_ns * ratio,
        calls_ns=stage.calls_ns * ratio,
        blocked_ns=stage.blocked_ns * ratio,
        elements=stage.elements * ratio,
        bytes=stage.bytes * ratio,
    )


def batched(layout: ConsumedPipeline, at: int) -> ConsumedPipeline:
    """A stage's function gets whole batches: one call instead of one for each element."""

    def change(stage: StageWork) -> StageWork:
        once = stage.calls_ns / max(1.0, stage.elements)
        work = max(0.0, stage.cpu_ns - stage.calls_ns) + 1e9 * stage.bytes / COPY_BYTES_S
        return replace(stage, cpu_ns=once + work, calls_ns=once, elements=1.0)

    return _with(layout, at, change)


def cached(
    layout: ConsumedPipeline, at: int, *, read: float, batch_bytes: float = 0.0, shuffled: float = 0.0
) -> ConsumedPipeline:
    """What a stage gives is kept in memory: nothing that it needs is made again.

    Args:
        layout: the pipeline.
        at: the stage.
        read: elements that are read for a batch.
        batch_bytes: of the batch that the stage still makes of them, if it is a map and a batch in one.
        shuffled: elements that are shuffled after the cache, and were before it.
    """
    gone = set(below(layout.stages, at))
    passed = read + shuffled + (read if batch_bytes else 0.0)
    left = min(PASS_NS * passed + 1e9 * batch_bytes / COPY_BYTES_S, layout.stages[at].cpu_ns)
    stages = tuple(replace(s, cpu_ns=0.0, blocked_ns=0.0) if i in gone else s for i, s in enumerate(layout.stages))
    changed = replace(layout, stages=stages, consumer=replace(layout.consumer, outside_ns=0.0))
    return _with(changed, at, lambda stage: replace(stage, cpu_ns=left, calls_ns=0.0, blocked_ns=0.0))


def _with(layout: ConsumedPipeline, at: int, change: Callable[[StageWork], StageWork]) -> ConsumedPipeline:
    stages = list(layout.stages)
    stages[at] = change(stages[at])
    return replace(layout, stages=tuple(stages))
