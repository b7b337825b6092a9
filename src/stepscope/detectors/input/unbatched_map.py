"""A map calls its function for every record, and the call takes longer than what the function computes.

## What it detects
The slowest stage of the input pipeline maps single records that are batched afterwards, and most of its time goes to
calling the function and starting its ops rather than to what they compute; if it parses examples one by one, the
finding says so.

## Why it matters
Calling a tf.data function costs 10 to 100 us, whatever it does: queueing it, waking a thread, starting the executor,
returning the result. A batch of 32 records pays that 32 times; the same function on whole batches pays it once, and its
ops work on longer tensors.

## Evidence
From an op trace: `input_wait_ratio`, share of the steps (at most that of all steady ones); `call_ratio`, share of the
calls' time in which the executor did nothing for them or started ops (up to 10 us for each type of op);
`calls_per_batch`; `call_ns`, mean time of a call. Nothing is reported below fifteen percent of wait, or if the ops
themselves take most of the time.

## Known limits
The saving of a batched function is modelled: the time around the calls and that for starting their ops, less that of
one call per batch; at least half of the time around. On CPUs that are full, less input can save more than the wait: its
threads take turns with the step's, which the upper end holds. Threads that wait for a CPU count as time around the
function, so the share of the CPUs that other processes take from the job is left out of the saving.

## Remedy
`batch(n)` before the map, and a function that works on whole batches: `tf.io.parse_example` instead of
`parse_single_example`, `tf.io.decode_raw` and arithmetic unchanged. For a `flat_map` over windows of a series:
`keras.utils.timeseries_dataset_from_array` or `tf.signal.frame`.

## References
tf.data performance guide, "Vectorizing mapping"; TensorFlow: captured_function.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import input_cpu, input_work
from stepscope.causes.system import contention
from stepscope.derive import steps_view
from stepscope.derive.optrace.host import map_kind
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.optrace.host.stage_calls import Function
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView

PARSERS = frozenset({"ParseExample", "ParseExampleV2", "ParseSingleExample", "DecodeCSV", "DecodeProtoV2"})
"""Ops that take batches as well as single records."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_wait_ratio: Ratio = Ratio(0.15)
    """Of the steps; see INP001."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    trace = view.traces.main
    if trace is None or trace.pipeline is None:
        return
    wait = trace_evidence.input_wait(view, trace)
    function = trace.pipeline.blocking.function
    if wait * _free(view) < params.min_wait_ratio or function is None or map_kind.kind(trace.pipeline) != "calls":
        return
    yield _finding(view, trace, function, wait, params)


def _free(view: SessionView) -> float:
    """Part of the time around calls that does not wait for a CPU which others have."""
    others = view.get(contention.build)
    return 1.0 - (others.lost_ratio if others is not None else 0.0)


def _finding(view: SessionView, trace: OpView, function: Function, wait: float, params: Params) -> Seen:
    batches = max(1, trace.pipeline.batches if trace.pipeline is not None else 1)
    calls = function.runs / batches
    around = wait * _free(view) * function.around_ratio * (1 - 1 / calls)
    saved = min(wait, around + wait * _free(view) * map_kind.start_ratio(function) * (1 - 1 / calls))
    parser = next((kind for kind in function.types if kind in PARSERS), "")
    what = f"parses records one by one ({parser})" if parser else "maps records one by one"
    return Seen(
        title=f"the input pipeline {what}: {calls:.0f} calls of its function per batch, "
        f"{format_ns(function.run_ns / function.runs)} each, {format_ratio(map_kind.call_ratio(function))} of it "
        f"call overhead; steps wait {format_ratio(wait)} of the time",
        confidence=0.85,
        where=trace_evidence.stage_places(view),
        evidence=(
            trace_evidence.evidence(trace, "input_wait_ratio", wait, "ratio", params.min_wait_ratio),
            trace_evidence.evidence(
                trace, "call_ratio", map_kind.call_ratio(function), "ratio", map_kind.MIN_CALL_RATIO
            ),
            trace_evidence.evidence(trace, "calls_per_batch", calls, "calls", map_kind.MIN_CALLS),
            trace_evidence.evidence(trace, "call_ns", function.run_ns / function.runs, "ns"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(
            view, saved, low=around / 2, high=max(wait + _held_up(view, trace, wait), _taken(view)), basis="modelled"
        ),
        remedies=(Remedy(id="batch-before-map", text=_instead(view, parser)),),
        explanation="The times are those of the traced steps: from the start of a call of the function to the end of "
        "its executor's work, and the part of it in which the executor works.",
    )


def _held_up(view: SessionView, trace: OpView, wait: float) -> float:
    """Share of the steps that the input's threads may hold up outside of the wait."""
    steps, tree = steps_view.of(view), trace.pipeline
    if steps is None or tree is None:
        return 0.0
    working = sum(node.self_ns for node in tree.root.walk()) / float(trace.periods.dur_ns.sum())
    return input_work.held_up(wait, working, float(tree.blocking.parallelism), input_work.cores(steps))


def _taken(view: SessionView) -> float:
    """Share of the CPUs that the input takes where they are full: its threads hold up the steps, too."""
    steps = steps_view.of(view)
    cpu = steps.get(input_cpu.build) if steps is not None else None
    return cpu.most if cpu is not None else 0.0


def _instead(view: SessionView, parser: str) -> str:
    if parser:
        return "batch before the map, and parse whole batches: tf.io.parse_example, not parse_single_example"
    text = "batch before the map and let its function work on whole batches"
    pipeline = view.pipeline
    if pipeline is None or not any("Window" in made.cls for made in pipeline.datasets):
        return text
    return (
        "cut the windows from the whole series at once: keras.utils.timeseries_dataset_from_array, tf.signal.frame, or "
        f"one gather of all indices of a batch; else {text}"
    )


DETECTOR = Detector(
    code="INP005",
    name="unbatched-map",
    cause="API: not using batch API",
    introduced_stage="data preparation",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.OP_TRACE}),
    frameworks=frozenset({"tf.data"}),
    params=Params(),
    detect=detect,
)
