"""What each stage of the input does for a batch, in CPU time and in waits, and what the step leaves it.

tf.data counts the time of a stage with a clock on the wall, by threads that may wait for a CPU meanwhile. The CPU time
of the whole process between two reads of the model is known exactly; what of it is the step's is at most that of its
fastest runs on all CPUs. So the stages' times say how the input's CPU time divides, and not how much it is.

Serves input_bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.input import input_cause
from stepscope.causes.system import contention, gpu
from stepscope.derive.input.bound import (
    CALL_NS,
    COPY_BYTES_S,
    FILTER_NS,
    PASS_NS,
    ConsumedPipeline,
    Consumer,
    StageWork,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.input.stages import Stage
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import F64

FAST = 10
"""Percentile of the steps' times, without their waits, that stands for a step that nothing disturbs."""
MIN_BLOCKED = 0.2
"""Share of the stages' time that must be neither CPU time nor a wait for a CPU, to count as a wait for something else:
clocks and samples do not agree better."""
CALLING = {"Map": CALL_NS, "MapAndBatch": CALL_NS, "Filter": FILTER_NS}
"""Stages that call a function for each element, by family, with the CPU time of a call."""
ANY = frozenset({"Map", "MapAndBatch", "Interleave", "FlatMap", "TFRecord", "Batch", "PaddedBatch"})
"""Stages that may have several threads, if they ask for them, by family."""
PASSING_ON = frozenset(
    {
        *("Prefetch", "Repeat", "Cache", "Shuffle", "Batch", "PaddedBatch", "TensorSlice", "FromTensor", "Range"),
        *("Take", "Skip", "Shard", "Zip", "Enumerate", "AssertCardinality", "Concatenate", "Unbatch"),
    }
)
"""Stages that run no function and read no file, by family."""
COPYING = frozenset({"Batch", "PaddedBatch", "TensorSlice", "Unbatch", "Shuffle"})
"""Those that touch what the elements hold."""
HANDED_NS = 20_000.0
"""CPU time to hand a batch from one thread to another: 10-25 us."""
MOST = 2.0
"""Times what passing an element takes that a stage may take for it."""
MAKING = frozenset({"Map", "MapAndBatch", "Interleave", "FlatMap", "Generator", "Csv", "TFRecord"})
"""Those that make elements."""
PASSING = frozenset({"Prefetch", "MapAndBatch"})


class InputWork(Struct, frozen=True, kw_only=True):
    """The pipeline as it is. Times in ns of one batch."""

    layout: ConsumedPipeline
    stages: tuple[Stage, ...]
    """The stages of the layout, in its order."""
    wall_ns: float
    """From one batch to the next."""
    shown_ns: float
    """CPU time of the stages by tf.data's clocks, as in a fast step. What the process used beyond its fast steps may be
    more: it has the steps' own variation, and stages above a cache that is discarded, which the clocks do not show."""
    python: bool
    """Whether user Python runs in the pipeline: it has one thread at a time."""
    crowding: float
    """CPU time that the process wanted over what it got, at least 1."""


def build(view: StepsView) -> InputWork | None:
    """None if tf.data's model was not read, or there are no steady steps."""
    steps, anatomy, pipe = view.steps, view.anatomy, view.pipeline
    if not pipe.stages or not steps.steady_count or anatomy.wall_ns <= 0 or not len(anatomy.per_step):
        return None
    per_batch = 1.0 / pipe.batches_per_step
    wall = anatomy.wall_ns / steps.steady_count * per_batch
    step = float(np.percentile(_own(view), FAST)) * per_batch
    usable = cores(view)
    cpus = view.get(contention.build)
    cpu = pipe.cpu_ns if pipe.cpu_ns is not None else (cpus.got * wall if cpus is not None else None)
    calls = [_calls(pipe.stages, at) for at in range(len(pipe.stages))]
    raw = [_share(stage, called) for stage, called in zip(pipe.stages, calls, strict=True)]
    busy = sum(raw)
    used = _input_cpu(view, busy, step, cpu, usable)
    queued = (cpus.wanted - cpus.got) * wall if cpus is not None else None
    blocked = max(0.0, busy - used - queued) if queued is not None else 0.0
    blocked = blocked if blocked >= MIN_BLOCKED * busy else 0.0
    cause = view.get(input_cause.build)
    python = cause is not None and cause.limit in {"generator", "python-function"}
    waiting = _waiting(pipe.stages, cause.stage if python and cause is not None else None)
    waits = sum(time for time, at in zip(raw, waiting, strict=True) if at)
    work = tuple(
        StageWork(
            name=stage.name,
            cpu_ns=used * (time / busy if busy else 0.0),
            calls_ns=used * (called / busy if busy else 0.0),
            blocked_ns=blocked * time / waits if may and waits else 0.0,
            most=math.inf if _is_parallel(stage) else 1.0,
            stretch=stage.stretch,
            depth=stage.depth,
            elements=stage.elements,
            bytes=stage.bytes,
        )
        for stage, time, called, may in zip(pipe.stages, raw, calls, waiting, strict=True)
    )
    threads = float(max([1, *(stage.parallelism for stage in pipe.stages)]))
    wait = float(anatomy.per_step_of("input-wait").sum() / anatomy.per_step.sum())
    rest = wall * (1.0 - wait - held_up(wait, used / wall, threads, usable))
    consumer = Consumer(
        cores=usable,
        step_ns=max(min(step, wall), rest),
        step_cpu_ns=max(0.0, (cpu if cpu is not None else used + step) - used),
        overlaps=pipe.stages[0].family in PASSING or pipe.stages[0].parallelism > 1,
        outside_ns=wall if cause is not None and cause.limit in {"disk", "network"} else 0.0,
        outside="network" if cause is not None and cause.limit == "network" else "disk",
    )
    return InputWork(
        layout=ConsumedPipeline(stages=work, consumer=consumer),
        stages=pipe.stages,
        wall_ns=wall,
        shown_ns=min(used, busy * _undisturbed(view)),
        python=python,
        crowding=max(1.0, cpus.wanted / cpus.got) if cpus is not None and cpus.got > 0 else 1.0,
    )


def _share(stage: Stage, calls: float) -> float:
    """By what the input's CPU time divides: the stage's time, with that of the calls of its function, and, if it only
    passes elements on, at most what passing takes. The clock also counts waits for a CPU and between two threads.
    """
    if stage.family in PASSING_ON:
        copied = 1e9 * stage.bytes / COPY_BYTES_S if stage.family in COPYING else 0.0
        return min(stage.self_ns, HANDED_NS + MOST * (PASS_NS * stage.elements + copied))
    return stage.self_ns + calls


def _calls(stages: Sequence[Stage], at: int) -> float:
    """CPU time of the calls of a stage's function, which its clock does not show. A filter's sees what it discards."""
    stage = stages[at]
    seen = stages[at + 1] if stage.family == "Filter" and at + 1 < len(stages) else stage
    return CALLING.get(stage.family, 0.0) * seen.elements


def _input_cpu(view: StepsView, busy: float, step: float, cpu: float | None, cores: float) -> float:
    """CPU time of the stages: what they say, within what the process used less what the step can have used.

    On a clock on the wall the stages take longer where others have the CPUs, as the step then does.
    """
    if cpu is None:
        return busy
    if view.get(gpu.build):
        return min(busy, cpu)
    return min(max(busy * _undisturbed(view), cpu - cores * step), cpu)


def _undisturbed(view: StepsView) -> float:
    """Time of a fast step over that of a usual one, both without waits."""
    own = _own(view)
    usual = float(np.median(own))
    return float(np.percentile(own, FAST)) / usual if usual > 0 else 1.0


def _own(view: StepsView) -> F64:
    """Times of the steady steps without their waits for the input, float64[step]."""
    per_step: F64 = view.anatomy.per_step.sum(axis=1) - view.anatomy.per_step_of("input-wait")
    return per_step


def _waiting(stages: Sequence[Stage], python: Stage | None) -> list[bool]:
    """Which stages may wait for something else than a CPU: those that read files, or run user Python; else all."""
    found = [stage.reads or stage is python for stage in stages]
    return found if any(found) else [True] * len(stages)


def _is_parallel(stage: Stage) -> bool:
    """Whether it has, or asks for, more than one thread."""
    return stage.parallelism > 1 or not stage.sequential


def held_up(wait: float, working: float, threads: float, usable: float) -> float:
    """Share of the steps that the input's threads may hold up outside of the wait: where they fill the CPUs, they take
    turns with the step's thread.

    Args:
        wait: share of the steps that they wait.
        working: time of the input's threads over the steps' time.
        threads: of the input that may run at once.
        usable: CPUs of the job.
    """
    if threads < usable:
        return 0.0
    return (1.0 - wait) * min(1.0, working / usable) * threads / (threads + usable)


def held_up_by(view: StepsView, wait: float) -> float:
    """The same of the stages by tf.data's model; 0 if it was not read."""
    work = view.get(build)
    if work is None:
        return 0.0
    threads = max((stage.parallelism for stage in work.stages), default=1.0)
    working = sum(stage.cpu_ns for stage in work.layout.stages) / work.wall_ns
    return held_up(wait, working, float(max(1, threads)), work.layout.consumer.cores)


def saved_ahead(view: StepsView, lost: float) -> float:
    """Share of the steps that is saved at least where other processes make the batches that the steps wait for, each as
    fast as now: on the CPUs that the step leaves (one, if it is not known how many there are), at most down to the rest
    of the step.
    """
    known = len(view.session.host) or view.session.manifest.host.cpus
    makers = cores(view) - 1.0 if known else 1.0
    return max(0.0, 1.0 - max(1.0 - lost, lost / makers)) if makers >= 1.0 else 0.0


def cores(view: StepsView) -> float:
    """CPUs that the job may use: by its affinity in the steady steps (an ended job has none), and by its quota."""
    host = view.session.host
    if not len(host):
        return float(view.session.manifest.host.cpus or 1)
    at = max(0, int(np.searchsorted(host.at_ns, view.steps.span[1], side="right")) - 1)
    quota = float(host.quota_milli_cpus[at]) / 1000
    return min(float(host.cpus[at]), quota) if quota > 0 else float(host.cpus[at])
