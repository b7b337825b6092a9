"""Steps of a few samples each, whose time is the fixed cost of a step rather than work on the samples.

## What it detects
Training, or one call of Keras' `predict` or `evaluate`, on batches of eight samples or fewer, with many batches in a
pass over the data, where scheduling the ops is most of the compiled step: an op trace shows it, or the step takes that
little time per op of its graph.

## Why it matters
Calling the step and scheduling its ops costs the same for four samples as for a hundred. If that is most of the step, a
larger batch processes more samples in nearly the same time.

## Evidence
`ns_per_op`: time of the call per op of the step's graph, without CPU time taken by other processes; scheduling an op
and starting its kernel takes one or two microseconds. `fixed_ratio`: share of the steady wall time in the call, in
Keras' own loop, and in taking batches that Keras itself cuts from arrays. `batch`, `batches`: samples of a step, and
steps of a pass or of the run.

## Known limits
The batch size is a parameter of the training: a larger one may need another learning rate, and its gain is modelled,
for 128 samples or 32 times the batch. Batches of 16 and more are assumed to be intended. Steps whose ops take longer
(convolutions, loops in the graph) are not small. If no pipeline makes the batches (an environment that gives one
observation at a time, requests one by one), no larger batch is possible and nothing is reported. Many calls of
`predict` on little data each are HST003. Ops that a Python loop has put into the graph are left out of the fixed time:
they are GRF002's.

## Remedy
A larger `batch_size` (in training with a matching learning rate); if the small batch is intended, `steps_per_execution`
of ten or more in `compile`, or a loop over the batches inside the tf.function.

## References
Keras documentation of Model.compile, steps_per_execution; FSE'22 study, improper hyper parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.host import eager_time, unrolled_python_loop
from stepscope.causes.job import purpose
from stepscope.causes.system import contention
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of, step_ns
from stepscope.model.log.events import BatchSeen, DatasetMade, ModelBuilt, Traced
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView


CALL_NS = 200_000
"""Fixed cost of calling a compiled function: most of predict's call for a graph of a few dozen ops. Measured: 150 to
300 us with TensorFlow 2.21."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    max_batch: int = 8
    """Samples: many papers choose 16 and 32."""
    min_batches: int = 100
    """In a pass over the data, or in the steady steps: more samples must be available."""
    max_ns_per_op: int = 4_000
    """Measured: 1,000 to 2,000 for a network of 64 units and four rows, 6,000 and more for one of 768 and 128 rows."""
    min_fixed_ratio: Ratio = Ratio(0.6)
    """Of steady wall time: below it the cause is something else."""
    wanted_batch: int = 128
    """Batch for which the gain is modelled; at most 32 times the batch."""


class _Batches(Struct, frozen=True, kw_only=True):
    """Samples of a batch, batches of a pass or of the run, and where user code makes them."""

    size: int
    count: int
    where: tuple[Place, ...]


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    steps, anatomy = view.steps, view.anatomy
    infers = _infers(view)
    if view.get(eager_time.setting) is not None:
        return
    if not (infers or _trains(view)):
        return
    batches = _batches(view)
    traced = [t for t in steps.worker.all(Traced) if (t.owner == "keras" if infers else t.updates > 0)]
    nodes = max((t.nodes for t in traced), default=0)
    if batches is None or not 0 < batches.size <= params.max_batch or nodes == 0:
        return
    fixed = anatomy.ratio("call") + anatomy.ratio("framework")
    if infers and not _has_datasets(view):
        fixed += anatomy.ratio("input-wait") + anatomy.ratio("callbacks")
    others = view.get(contention.build)
    free = 1.0 - (others.lost_ratio if others else 0.0)
    turns = max([1, *(m.steps_per_execution for m in steps.worker.all(ModelBuilt))])
    per_op = max(0.0, free * anatomy.mean_ns("call") / turns - (CALL_NS if infers else 0)) / nodes
    if turns > 1 or batches.count < params.min_batches:
        return
    loop = view.get(unrolled_python_loop.worst)
    fixed *= 1.0 - (loop.ratio if loop is not None and loop.turns else 0.0)
    if fixed >= params.min_fixed_ratio and (per_op <= params.max_ns_per_op or _mostly_schedules(view)):
        yield _finding(view, batches, fixed, per_op, params)


def _mostly_schedules(view: StepsView) -> bool:
    """Whether the framework takes more of the traced steps than the ops themselves."""
    trace = view.traces.main
    return trace is not None and trace.breakdown.ratio("runtime", "launch") > trace.breakdown.ratio(
        "host-compute", "device-compute", "host-python"
    )


def _trains(view: StepsView) -> bool:
    call = view.steps.call
    return call is not None and (call.role == "train" or call.id in view.get(purpose.updating_functions))


def _infers(view: StepsView) -> bool:
    """Whether the steps are batches of a predict or evaluate call with many of them."""
    steps = view.steps
    return steps.kind == Kind.EXECUTION and view.get(purpose.predicts)


def _has_datasets(view: StepsView) -> bool:
    """Whether the program itself makes datasets: those that Keras makes from arrays have the line of its loop."""
    loops = {(name.call_file, name.call_line) for name in view.names.values() if name.call_file}
    made = view.steps.worker.all(DatasetMade)
    return any(d.file and (d.file, d.line) not in loops for d in made)


def _batches(view: StepsView) -> _Batches | None:
    """The steps' batches, if something in the program makes them: an argument of fit, or a dataset."""
    steps = view.steps
    worker = steps.worker
    made = [d for d in worker.all(DatasetMade) if d.batch > 0 and d.file]
    roles = {"train"} if not _infers(view) else {"predict", "test", "evaluate"}
    seen = [b for b in worker.all(BatchSeen) if b.role in roles and b.size > 0]
    if steps.kind == Kind.EXECUTION and seen:
        size, count = seen[-1].size, seen[-1].steps or steps.steady_count
    else:
        size, count = int(np.median(steps.samples[steps.steady])), steps.steady_count
    datasets = [p for d in made if d.batch == size and (p := view.dataset_place(d)) is not None]
    if not datasets and not (steps.kind == Kind.EXECUTION and seen):
        return None
    fit = view.fit_place()
    return _Batches(size=size, count=count, where=tuple(dict.fromkeys([*datasets[:1], *([fit] if fit else [])])))


_MANY_STEPS_A_CALL = Remedy(
    id="steps-per-execution",
    text="or keep the batch and run many steps in one call: steps_per_execution in compile, or a loop inside the "
    "tf.function",
)


def _finding(view: StepsView, batches: _Batches, fixed: float, per_op: float, params: Params) -> Seen:
    larger = min(params.wanted_batch, 32 * batches.size)
    ratio = fixed * (1.0 - batches.size / larger)
    samples = "sample" if batches.size == 1 else "samples"
    infers = _infers(view)
    return Seen(
        title=f"small batches of {batches.size} {samples}: {format_ratio(fixed)} of each step of "
        f"{format_ns(step_ns(view))} is overhead ({format_ns(per_op)} per op of its "
        "graph), which does not depend on the batch size",
        confidence=0.85 if infers else 0.6,
        introduced_stage="prediction" if infers else "data preparation",
        exposed_stage="prediction" if infers else "training",
        where=batches.where,
        evidence=(
            Evidence(metric="fixed_ratio", value=fixed, unit="ratio", threshold=params.min_fixed_ratio),
            Evidence(metric="ns_per_op", value=per_op, unit="ns", threshold=params.max_ns_per_op),
            Evidence(metric="batch", value=batches.size, unit="samples", threshold=params.max_batch),
            Evidence(metric="batches", value=batches.count, unit="batches", threshold=params.min_batches),
        ),
        cost=cost_of(view, ratio, low=0.5 * ratio, high=fixed, basis="modelled"),
        remedies=(
            Remedy(
                id="larger-batch",
                text=f"use a larger batch size, {larger} or more: the results are the same"
                if infers
                else f"use a larger batch size, 32 to {larger}, and tune the learning rate with it",
            ),
            *(() if infers else (_MANY_STEPS_A_CALL,)),
        ),
        explanation="The ops of the step take hardly longer than their scheduling, so the time of a step does not "
        "depend on the number of its samples.",
    )


DETECTOR = Detector(
    code="CFG002",
    name="small-batch",
    cause="Model: improper hyper parameter",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.TRACES}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
