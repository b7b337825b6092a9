"""The traced steps wait for their input.

## What it detects
In an op trace without a measured run (an imported file), steps that wait for their next batch, and the cause: the
slowest stage of the tf.data pipeline, PyTorch's DataLoader, or the program's own Python on another thread.

## Why it matters
While a step waits for input, the device does nothing. Tools that add up op times count the pipeline's ops as compute.

## Evidence
`input_wait_ratio`: share of the traced steps, from the step's call to the end of GetNext (of the loader's `next`), in
which nothing else of the step runs. `stage_ns_per_batch`: self time of the slowest stage over its parallelism.
`python_ratio`: share of the time of the stage's function in user Python. For a DataLoader `next_ns_per_batch`, the mean
time of its `next`, and `in_process_ratio`, the share of the batches made within it. For Python that the profiler
recorded (JAX) `maker_ratio`, the share of the wait in which the named function ran, and `receiving_ratio`, the share of
its time in which it read from a socket.

Steps that wait although no maker, or none that takes as long, is in the trace are left undecided.

## Known limits
Traced steps are few, and slower than others. Source lines are not known. In a session of a measured job INP001 to
INP003 are more specific, and this one does not apply. The work of a DataLoader's workers is not in the trace. Where the
steps' thread runs no op for long and nothing names what makes its batches, the detector cannot decide.

## Remedy
Run the stage in parallel, do its work once (`cache`, offline; not if it uses random ops), batch before it, write Python
as TensorFlow ops, and keep `prefetch(tf.data.AUTOTUNE)` last. Give a DataLoader worker processes (`num_workers`), or
more of them.

## References
tf.data performance guide; PyTorch's performance tuning guide, "enable asynchronous data loading"; xprof calls input
from 20 % on "highly input-bound".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.optrace import loop_python
from stepscope.derive.optrace.host import map_kind, step_threads
from stepscope.derive.python.random_draws import Draw
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.remedies import loader_workers
from stepscope.detectors.shared import drawn, trace_evidence
from stepscope.model.report.components import Trait, components_with
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.optrace.host.data_loader import Loader
    from stepscope.derive.optrace.host.loop_calls import Producer
    from stepscope.derive.optrace.host.traced_stages import StageNode, Tree
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_wait_ratio: Ratio = Ratio(0.15)
    """Of the traced steps; see INP001."""
    min_stage_ratio: Ratio = Ratio(0.3)
    """The slowest stage must need at least this share of the wait for a batch (see INP001), and Python that is named
    must run in as much of it."""
    min_python_ratio: Ratio = Ratio(0.5)
    """Share of a stage's time in Python, or of a loader's batches made in the training process, from which the advice
    changes."""
    min_maker_ratio: Ratio = Ratio(0.5)
    """Share of a wait that another thread's ops must fill to be named."""
    min_steps: int = 3
    """Fewer are too few to judge a loader: one late batch of two is no wait."""


def _measured(view: SessionView) -> str:
    return "INP001 to INP003 examine measured steps" if view.steps is not None else ""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding; none, but a question, where steps wait and nothing shows for what."""
    trace = view.traces.main
    if trace is None:
        return
    waits = trace.breakdown.ratio("input-wait") >= params.min_wait_ratio
    if trace.pipeline is not None:
        if waits:
            yield from _of_pipeline(view, trace, trace.pipeline, params)
    elif waits and len(trace.periods) < params.min_steps:
        yield _open(trace, f"{len(trace.periods)} whole steps are too few to say why")
    elif trace.loader is not None:
        if waits:
            yield _of_loader(view, trace, trace.loader, params)
    elif waits and (maker := loop_python.producer(trace)) is not None and maker.ratio >= params.min_stage_ratio:
        yield _of_python(view, trace, maker, params)
    else:
        yield from _of_nobody(trace, params)


_ELSEWHERE = {
    "tensorflow": "it may be another process",
    "jax": "another process, or tf.data: JAX's profiler records no work of TensorFlow, tf.profiler does",
    "torch": "another process or thread: the profiler records its own",
}


def _open(trace: OpView, why: str) -> Undecided:
    """Steps wait, for something that is not seen."""
    wait = trace.breakdown.ratio("input-wait")
    return Undecided(
        missing=Signal.OP_TRACE, hint=f"steps wait {format_ratio(wait)} of the time for their input; {why}"
    )


def _of_pipeline(view: SessionView, trace: OpView, tree: Tree, params: Params) -> Iterator[Seen | Undecided]:
    """The steps wait for tf.data."""
    wait, stage = trace.breakdown.ratio("input-wait"), tree.blocking
    per_batch = tree.per_batch(stage.latency_ns)
    if per_batch < params.min_stage_ratio * wait * trace.periods.mean_ns:
        yield _open(trace, f"no stage of the pipeline takes as long ({stage.type}: {format_ns(per_batch)} per batch)")
        return
    if map_kind.kind(tree) != "work":
        return  # INP005 and INP006 say more
    python = map_kind.python_ratio(stage)
    inside = (
        f", {format_ratio(python)} of it in Python (py_function or a generator)"
        if python >= params.min_python_ratio
        else ""
    )
    what = f"the input pipeline's {stage.type} stage takes {format_ns(per_batch)} per batch{inside}"
    if stage.type.startswith(_SERVED):
        what = f"the tf.data service hands over a batch every {format_ns(per_batch)}"
    yield Seen(
        title=f"{what}; steps wait for it {format_ratio(wait)} of the time",
        confidence=0.85,
        cause="API: not using efficient API"
        if python >= params.min_python_ratio
        else "Data: inefficient data preprocessing",
        evidence=(
            trace_evidence.evidence(trace, "input_wait_ratio", wait, "ratio", params.min_wait_ratio),
            trace_evidence.evidence(trace, "stage_ns_per_batch", per_batch, "ns"),
            trace_evidence.evidence(trace, "python_ratio", python, "ratio"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, wait),
        remedies=_remedies(stage, python, params),
        explanation="For each traced step, the wait is the time from its call to the end of GetNext, less the time in "
        "which other ops of the step ran.",
    )


def _of_loader(view: SessionView, trace: OpView, loader: Loader, params: Params) -> Seen:
    """The steps wait for a DataLoader."""
    wait = trace.breakdown.ratio("input-wait")
    inside = loader.in_process_ratio >= params.min_python_ratio
    who = "makes each batch in the training process" if inside else "has too few or too slow workers"
    return Seen(
        title=f"the DataLoader {who}: its next takes {format_ns(loader.mean_ns)} per batch, and steps wait for it "
        f"{format_ratio(wait)} of the time",
        confidence=0.9,
        cause="API: not using efficient API" if inside else "Data: inefficient data preprocessing",
        evidence=(
            trace_evidence.evidence(trace, "input_wait_ratio", wait, "ratio", params.min_wait_ratio),
            trace_evidence.evidence(trace, "next_ns_per_batch", loader.mean_ns, "ns"),
            trace_evidence.evidence(trace, "in_process_ratio", loader.in_process_ratio, "ratio"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, wait),
        remedies=(Remedy(id="loader-workers", text=loader_workers(view)) if inside else _MORE_WORKERS, _PINNED),
        explanation=f"The trace names the loader: {loader.name}. Only waits that no device work hides are counted.",
    )


def _of_python(view: SessionView, trace: OpView, maker: Producer, params: Params) -> Seen:
    """The steps wait for a generator, a queue or a thread of the program."""
    wait = trace.breakdown.ratio("input-wait")
    reads = maker.receiving_ratio >= params.min_python_ratio
    does = "reads from the network" if reads else "works"
    return Seen(
        title=f"the steps wait for their next batch {format_ratio(wait)} of the time: meanwhile {maker.call} {does} "
        f"for {format_ratio(maker.ratio)} of the wait",
        confidence=0.85,
        cause="Data: inefficient data transmission" if reads else "Data: inefficient data preprocessing",
        pipeline_stage="raw-input" if reads else "preprocessing",
        where=(view.place(maker.call.file, maker.call.line, function=maker.call.function),),
        evidence=(
            trace_evidence.evidence(trace, "input_wait_ratio", wait, "ratio", params.min_wait_ratio),
            trace_evidence.evidence(trace, "maker_ratio", maker.ratio, "ratio"),
            trace_evidence.evidence(trace, "receiving_ratio", maker.receiving_ratio, "ratio", params.min_python_ratio),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, wait),
        remedies=_OF_NETWORK if reads else _OF_PYTHON,
        explanation="The profiler recorded the Python of every thread. The function named is the one outside the "
        "standard library that ran on another thread while the step's thread waited in next.",
    )


def _of_nobody(trace: OpView, params: Params) -> Iterator[Undecided]:
    """The steps' thread may wait for input, and nothing in the trace says what makes the batches."""
    idle = components_with(Trait.PERHAPS_WAIT) if loop_python.hides_waits(trace) else ("input-wait",)
    ratio = trace.breakdown.ratio(*idle)
    if ratio < params.min_wait_ratio:
        return
    hint = f"the trace does not show what makes its batches ({_ELSEWHERE[trace.framework]})"
    other = step_threads.busiest(trace.trace, trace.domain.beside, trace.breakdown.when(*idle))
    if other is not None and other.ratio >= params.min_maker_ratio:
        hint += f". Meanwhile {other.thread} runs {other.op} and other ops, {format_ratio(other.ratio)} of that time"
    if trace.breakdown.ratio("input-wait") >= params.min_wait_ratio:
        yield _open(trace, hint)
    else:
        why = f"the steps' thread runs no op {format_ratio(ratio)} of the time; {hint}"
        yield Undecided(missing=Signal.INPUT_WAIT, hint=why)


_OF_NETWORK = (
    Remedy(id="nearer-data", text="bring the data nearer: a copy on this machine's disk, or a cache of what was read"),
    Remedy(id="fewer-bytes", text="send less: compressed or smaller records; several connections, if one is limited"),
)
_OF_PYTHON = (
    Remedy(id="parallel-input", text="make batches in several processes (NumPy calls that release the GIL: threads)"),
    Remedy(id="prepare-offline", text="do the work once, offline, if it is the same each time; or on the device"),
)
_MORE_WORKERS = Remedy(
    id="more-loader-workers", text="use more workers (num_workers, prefetch_factor), or less work per record"
)
_PINNED = Remedy(id="pin-memory", text="pin_memory=True and .to(device, non_blocking=True)")


_READERS = ("TFRecord", "TextLine", "FixedLengthRecord")
_SERVED = "DataService"
"""Head of the types of stages whose elements the workers of a tf.data service make."""
_OF_SERVICE = (
    Remedy(id="service-workers", text="add workers to the tf.data service; trace one of them to see its slowest stage"),
    Remedy(id="prefetch", text="end the pipeline with prefetch(tf.data.AUTOTUNE)", safety="safe"),
)


def _remedies(stage: StageNode, python: float, params: Params) -> tuple[Remedy, ...]:
    if stage.type.startswith(_SERVED):
        return _OF_SERVICE
    first = _faster(stage)
    if python >= params.min_python_ratio:
        first = Remedy(id="use-tensorflow-ops", text="write the Python as TensorFlow ops: it holds the GIL")
    elif stage.parallelism > 1:
        text = f"do the stage's work once, {drawn.IF_THE_SAME}: cache() after it, or offline"
        names = map_kind.drawn(stage)
        cached = Remedy(id="cache-after-map", text=text)
        (first,) = drawn.keeping(Draw(", ".join(names), 0) if names else None, cached)
    return first, Remedy(id="prefetch", text="end the pipeline with prefetch(tf.data.AUTOTUNE)", safety="safe")


def _faster(stage: StageNode) -> Remedy:
    """More of the stage at a time, by what its function in tf.data has for that."""
    if "FlatMap" in stage.type or "Interleave" in stage.type:
        text = "interleave with num_parallel_calls=tf.data.AUTOTUNE, not one source after the other"
        return Remedy(id="parallel-interleave", text=text)
    if "Map" in stage.type:
        return Remedy(id="parallel-map", text="run the stage in parallel: num_parallel_calls=tf.data.AUTOTUNE")
    if stage.type.startswith(("Batch", "ParallelBatch")):
        return Remedy(id="parallel-batch", text="copy several batches at a time: batch(num_parallel_calls=...)")
    if stage.type.startswith("Generator"):
        text = "build the dataset from files or arrays, with the generator's work in map(num_parallel_calls=...)"
        return Remedy(id="use-tf-data-map", text=text)
    if stage.type.startswith(_READERS):
        return Remedy(id="parallel-reads", text="read several files at once: num_parallel_reads=tf.data.AUTOTUNE")
    return Remedy(id="work-in-a-map", text="do this work in a map with num_parallel_calls, or once, offline")


DETECTOR = Detector(
    code="INP007",
    name="traced-input-wait",
    introduced_stage="data preparation",
    exposed_stage="unknown",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.OP_TRACE}),
    params=Params(),
    detect=detect,
    applies=_measured,
)
