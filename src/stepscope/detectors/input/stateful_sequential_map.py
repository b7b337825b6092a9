"""A map runs one element at a time because its function has a state.

## What it detects
The slowest stage of the input pipeline is a map on one thread whose function draws random numbers from a stateful
generator, while steps wait for it.

## Why it matters
tf.data parallelises a map by itself only if its function has no state, because the order of the draws would change. The
same augmentation with stateless random ops, or with `num_parallel_calls`, uses all CPUs.

## Evidence
From an op trace: `input_wait_ratio`, share of the steps (at most that of all steady ones); `stage_parallelism`: 1;
`stateful_op_ratio`: share of the function's time in stateful random ops; `stage_ns_per_batch`.

## Known limits
Only ops that run are seen, and only random ones are named. The gain is modelled for the CPUs that the job may use; if
other processes take them it is smaller.

## Remedy
`num_parallel_calls=tf.data.AUTOTUNE` (with `deterministic=False` if the order does not matter), or
`tf.random.stateless_*` ops with a seed from `Dataset.random` or a counter; if op determinism is on, only these.

## References
tf.data: map_parallelization rewrite; TensorFlow guide, random number generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import contention
from stepscope.derive.optrace.host import map_kind
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.input.parts import determinism
from stepscope.detectors.shared import trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_wait_ratio: Ratio = Ratio(0.15)
    """Of the steps; see INP001."""
    min_cpus: float = 1.5
    """CPUs for the job: with fewer, one element at a time is what there is time for (INP001 says what it waits for)."""
    assumed_cpus: int = 2
    """If the host's CPUs are not known."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    trace = view.traces.main
    if trace is None or trace.pipeline is None:
        return
    stage, wait = trace.pipeline.blocking, trace_evidence.input_wait(view, trace)
    function = stage.function
    if wait < params.min_wait_ratio or function is None or map_kind.kind(trace.pipeline) != "state":
        return
    drawn = map_kind.drawn(stage)
    others = view.get(contention.build)
    cpus = others.available if others is not None else params.assumed_cpus
    if cpus < params.min_cpus:
        return
    saved = wait * (1 - 1 / cpus)
    per_batch = trace.pipeline.per_batch(stage.self_ns)
    yield Seen(
        title=f"a map of the input pipeline runs one element at a time, {format_ns(per_batch)} per batch, because its "
        f"random ops ({', '.join(drawn)}) have a state; steps wait for it {format_ratio(wait)} of the time",
        confidence=0.85,
        where=trace_evidence.stage_places(view),
        evidence=(
            trace_evidence.evidence(trace, "input_wait_ratio", wait, "ratio", params.min_wait_ratio),
            trace_evidence.evidence(trace, "stage_parallelism", stage.parallelism, "threads"),
            trace_evidence.evidence(
                trace, "stateful_op_ratio", sum(drawn.values()) / max(1, function.work_ns), "ratio"
            ),
            trace_evidence.evidence(trace, "stage_ns_per_batch", per_batch, "ns"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, saved, low=saved / 2, high=wait, basis="modelled"),
        remedies=_REMEDIES if determinism.turned_on(view) is None else (determinism.REMEDY,),
        explanation="tf.data parallelises maps by itself only if their functions have no state; the ops named ran in "
        "the function of this map while it was traced.",
    )


_REMEDIES = (
    Remedy(id="parallel-map", text="give the map num_parallel_calls=tf.data.AUTOTUNE"),
    Remedy(id="stateless-random", text="or draw with tf.random.stateless_* and a seed from the element"),
)

DETECTOR = Detector(
    code="INP006",
    name="stateful-sequential-map",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.OP_TRACE}),
    frameworks=frozenset({"tf.data"}),
    params=Params(),
    detect=detect,
)
