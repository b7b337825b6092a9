"""Steps wait for a stage of the tf.data pipeline.

## What it detects
The step waits for its next batch, and the slowest stage of the input pipeline, by tf.data's own live model, is one of
TensorFlow's ops rather than user Python: a map that runs one element at a time, a source read by one thread, a shuffle
or batch that copies more than it needs to.

## Why it matters
While a step waits for input, the device does nothing. tf.data keeps its model after all its rewriting (fusion, injected
prefetch, automatic parallelism), so the stage named here is one that really runs.

## Evidence
`input_wait_ratio`: share of the steady wall time; in a compiled step it is the wall time less the gaps between two
GetNext calls, in a Python loop it is the time inside `next`. `stage_ns_per_batch`: self time of the stage per batch
divided by its parallelism. Nothing is reported below fifteen percent of wait, or if no stage explains the wait.

## Known limits
How much time the pipeline then still needs is not known in advance. On CPUs that are full, the upper end also holds
what the input's threads hold up outside of the wait.
What the workers of a tf.data service do is not seen from here: only that the steps wait for them. Iterators made inside
a tf.function, datasets without autotune and TensorFlow before 2.17 give no model; the wait inside
Keras' compiled step is then undecided until an op trace of some steps is captured, which `stepscope run` does by
itself.

## Remedy
Run the stage in parallel (`num_parallel_calls=tf.data.AUTOTUNE`), do its work once (`cache()` after it, or offline; if
it uses random ops, only the work before them), batch before a map that can work on whole batches, and keep
`prefetch(tf.data.AUTOTUNE)` last. Where the job already uses all of its CPUs, threads gain nothing: only less work,
more CPUs, or a GPU that waits and can do the map's work in the model (preprocessing layers) help. Filter, skip and
shard before the map if they discard much of its output (`dropped_ratio`). If single rows of arrays pass by the
thousand, batch their indices and gather. If op determinism forces a map onto one thread because it draws random numbers
or reads a variable, use stateless random ops and read no variable in the map.

## References
tf.data performance guide, sections parallelizing, vectorizing and caching; TensorFlow's model.proto.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import function_lines, input_cause, input_cpu, input_work, random_input
from stepscope.causes.job import hidden_wait
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, Undecided, compute_ratio, cost_of
from stepscope.detectors.input.parts import cut_cache, determinism, dropped, input_means
from stepscope.detectors.shared import drawn, pipeline_python
from stepscope.model.log.events import ChildStarted
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.input.input_cause import InputCause
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.input.parts.dropped import Dropped
    from stepscope.tables.findings import PipelineStage


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_wait_ratio: Ratio = Ratio(0.15)
    """Of steady wall time. xprof calls 5 % moderate and 20 % high; fast steps of small models spend a tenth on taking
    batches that are ready (clean programs of bench/cases)."""
    min_stage_ratio: Ratio = Ratio(0.3)
    """The slowest stage must need at least this share of the wait for a batch, or the pipeline is not the limit."""
    min_call_ratio: Ratio = Ratio(0.5)
    """A compiled step that takes less than this cannot hide an input problem worth asking about."""
    min_rows: int = 256
    """Per batch: a stage that passes on fewer rows is not slow because of their number."""
    max_row_ns: int = 10_000
    """Per row, in the stage: copying it and the locks around it. Large rows take longer."""
    max_left_ratio: Ratio = dropped.MAX_LEFT_RATIO
    """Of the elements of a map: a later stage is named only if it leaves less."""


WITHOUT = 0.8
"""Part of the input's CPU time that goes with a cache that is kept: batches have to be handed over all the same."""
HANDING_ON = ("Batch", "Shuffle", "TensorSlice", "Repeat", "Prefetch", "Zip", "Unbatch")
"""Stages that only pass elements on."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided | CaptureRequest]:
    """Yield at most one finding."""
    cause = view.get(input_cause.build)
    if view.get(hidden_wait.build):
        anatomy = view.anatomy
        if anatomy.ratio("call") >= params.min_call_ratio:
            yield _question(view)
        return
    if cause is None or cause.limit not in {"stage", "unknown"} or cause.wait_ratio < params.min_wait_ratio:
        return
    if cause.stage is not None and cause.stage.latency_ns < params.min_stage_ratio * cause.wait_ns_per_step:
        return
    yield _finding(view, cause, params)


def _question(view: StepsView) -> CaptureRequest | Undecided:
    """The open question: an op trace shows the wait if TensorFlow keeps no model; else the run was too short."""
    why = view.pipeline.why_unread(view.frameworks)
    if view.pipeline.error not in {"no-op", "no-model"}:
        return Undecided(missing=Signal.INPUT_WAIT, hint=why)
    hint = f"{why}; an op trace shows the wait: stepscope trace JOB while it runs"
    return CaptureRequest(
        kind="ops",
        missing=Signal.INPUT_WAIT,
        hint=hint,
        suspicion="the compiled steps may wait for input",
        suspected_ratio=compute_ratio(view),
    )


def _finding(view: StepsView, cause: InputCause, params: Params) -> Seen:
    stage = cause.stage
    waits = pipeline_python.waits(view, cause, cause.wait_ratio)
    places = _places(view, stage)
    at = f" ({places[0].file}:{places[0].line})" if places else ""
    if stage is None:
        title = f"steps wait {waits.replace('for it', 'for the next batch of the input', 1)}"
    elif stage.served:
        title = f"the tf.data service hands over a batch every {format_ns(stage.latency_ns)}{at}; steps wait {waits}"
    else:
        per = format_ns(stage.latency_ns)
        title = f"the input pipeline's {_plain(stage)} takes {per} per batch{at}; steps wait {waits}"
    evidence = [
        Evidence(
            metric="input_wait_ratio",
            value=cause.wait_ratio,
            unit="ratio",
            threshold=params.min_wait_ratio,
            refs=("component:input-wait", *cause.captures),
        ),
        *pipeline_python.traced(cause),
    ]
    if stage is not None:
        ref = (f"stage:{stage.name}",)
        evidence += [
            Evidence(metric="stage_ns_per_batch", value=stage.latency_ns, unit="ns", refs=ref),
            Evidence(metric="stage_ns_per_element", value=stage.element_ns, unit="ns", refs=ref),
            Evidence(metric="stage_parallelism", value=stage.parallelism, unit="threads", refs=ref),
        ]
    lines = function_lines.of_map(view, stage)
    title += function_lines.said(lines)
    places = tuple(dict.fromkeys([*places, *(one.place for one in lines)]))
    drop = dropped.after(view, stage, params.max_left_ratio)
    if drop is not None:
        title += drop.said(view)
        evidence.append(drop.evidence())
        places = (*places, *drop.places(view))
    named = stage is not None and not stage.name.startswith(HANDING_ON)
    cut = cut_cache.above(view, stage.datasets if stage is not None and named else view.pipeline.datasets)
    if cut is not None:
        title += f"; the {cut_cache.WHY}"
        places = (*places, *cut_cache.places(view, cut))
    one_thread = determinism.takes_threads(view, stage)
    if one_thread is not None:
        place = view.place(one_thread.file, one_thread.line, function=one_thread.function)
        title += f"; op determinism ({place.file}:{place.line}) makes it run one element at a time"
        places = (*places, place)
    error = 2 * cause.error_ratio
    cpu = view.get(input_cpu.build)
    taken = 0.0 if cpu is None else cpu.ratio if cut is None else cpu.most
    most = cause.whole_wait_ratio + input_work.held_up_by(view, cause.whole_wait_ratio)
    ratio = max(cause.wait_ratio, WITHOUT * taken) if cut is not None else cause.wait_ratio
    return Seen(
        title=title,
        confidence=0.9 if stage is not None else 0.6,
        cause="API: inefficient API usage"
        if one_thread is not None or (stage is not None and stage.sequential)
        else "Data: inefficient data preprocessing",
        introduced_stage="data preparation" if one_thread is None else "environment setting",
        pipeline_stage=_pipeline_stage(stage),
        where=places,
        evidence=tuple(evidence),
        cost=cost_of(
            view,
            ratio,
            low=cause.wait_ratio - error,
            high=max(cause.wait_ratio + error, taken, most),
            basis="measured" if ratio == cause.wait_ratio else "modelled",
        ),
        remedies=(
            *((cut_cache.REMEDY,) if cut is not None else ()),
            *((determinism.REMEDY,) if one_thread is not None else ()),
            *input_means.in_order(
                view, _advice(view, stage, drop, params), maps=stage is not None and "Map" in stage.name
            ),
        ),
        explanation="The batch is not ready when the step asks for it. The stage named is the one with the "
        "largest self time per batch after tf.data's own optimisation; later stages cannot be faster."
        f"{pipeline_python.by_trace(cause)}{pipeline_python.account(view, cause, cause.wait_ratio)}",
    )


def _plain(stage: Stage) -> str:
    own = [d for d in stage.datasets if d.fn_name]
    name = f" {own[0].fn_name}" if own and own[0].fn_name != "<lambda>" else ""
    words = {
        "Map": "map",
        "ParallelMap": "parallel map",
        "MapAndBatch": "map and batch",
        "ParallelMapV2": "parallel map",
    }
    return f"{words.get(stage.name, stage.name)} stage{name}"


MORE_WORKERS = Remedy(
    id="more-service-workers",
    text="use more workers for the service, or faster hosts: they make the batches, not this job's pipeline",
)
MEND_THE_WORKERS = Remedy(
    id="mend-the-service",
    text="speed up what comes before distribute(): the workers run it (order, num_parallel_calls, cache), and may send "
    "compressed elements (compression=None spares both ends the work)",
)


def _pipeline_stage(stage: Stage | None) -> PipelineStage:
    return "raw-input" if stage is not None and stage.reads else "preprocessing"


def _places(view: StepsView, stage: Stage | None) -> tuple[Place, ...]:
    made = stage.datasets if stage is not None else ()
    if not made:
        made = tuple(d for d in view.pipeline.datasets if d.file)[:1]
    places = [p for d in made if (p := view.dataset_place(d)) is not None]
    if stage is not None and stage.served:
        made = view.pipeline.datasets  # its workers run the functions of all that come before it
    places += [view.place(d.fn_file, d.fn_line, d.fn_end_line, d.fn_name) for d in made if d.fn_file and d.fn_line]
    return tuple(dict.fromkeys(places))


def _has_children(view: StepsView) -> bool:
    """Whether the step's process started multiprocessing workers: no record shows their output."""
    started = view.worker.all(ChildStarted)
    return any(child.command.partition(" ")[0].endswith("Process") for child in started)


def _rows(view: StepsView, stage: Stage | None, params: Params) -> float:
    """Rows per batch if a slow stage only passes them on and they are many; else 0."""
    stages = view.pipeline.stages
    rows = max((s.elements for s in stages), default=0.0)
    if stage is None or not stage.name.startswith(HANDING_ON) or rows < params.min_rows:
        return 0.0
    return rows if stage.self_ns < params.max_row_ns * rows else 0.0


def _advice(view: StepsView, stage: Stage | None, drop: Dropped | None, params: Params) -> tuple[Remedy, ...]:
    if stage is not None and stage.served:
        return MORE_WORKERS, MEND_THE_WORKERS
    return _remedies(view, stage, drop, params)


def _remedies(view: StepsView, stage: Stage | None, drop: Dropped | None, params: Params) -> tuple[Remedy, ...]:
    remedies = []
    rows = _rows(view, stage, params)
    if rows:
        text = f"rows pass one by one, {rows:,.0f} per batch: let the pipeline work on whole batches (shuffle and "
        text += "batch indices, tf.gather the rows), or give fit the arrays"
        remedies.append(Remedy(id="batches-not-rows", text=text, safety="review"))
    if drop is not None and stage is not None:
        remedies.append(drop.remedy(view, stage))
    if stage is not None and "Map" in stage.name:
        if stage.sequential:
            text = "give the map num_parallel_calls=tf.data.AUTOTUNE: it runs one element at a time now"
            remedies.append(Remedy(id="parallel-map", text=text, safety="review"))
        if stage.elements > 1:
            text = "batch before the map and let the function work on whole batches (vectorised)"
            remedies.append(Remedy(id="batch-before-map", text=text, safety="review"))
        draw = random_input.of_datasets(view, stage.datasets)
        text = f"{drawn.IF_THE_SAME}: cache() after it, or do the work offline"
        cached = Remedy(id="cache-after-map", text=text, safety="review")
        remedies += drawn.keeping(draw, cached)
    elif stage is not None and stage.name.startswith("Generator") and _has_children(view):
        text = "batches come from other processes, each pickled and copied: send them small (uint8, not float64; scale "
        text += "and cast in the model), or make them on threads or with tf.data"
        remedies.append(Remedy(id="smaller-batches-between-processes", text=text, safety="review"))
    elif stage is not None and stage.reads:
        text = "read several files at once: interleave(..., num_parallel_calls=tf.data.AUTOTUNE) or num_parallel_reads"
        remedies.append(Remedy(id="parallel-reads", text=text, safety="review"))
    elif stage is not None and ("FlatMap" in stage.name or "Interleave" in stage.name):
        text = "use interleave with num_parallel_calls=tf.data.AUTOTUNE instead of one source after the other"
        remedies.append(Remedy(id="parallel-interleave", text=text, safety="review"))
    made = view.pipeline.datasets
    if not remedies or not any(d.file and d.cls.startswith("Prefetch") for d in made):
        text = "end the pipeline with prefetch(tf.data.AUTOTUNE), so that it works while the step does"
        remedies.append(Remedy(id="prefetch", text=text, safety="safe"))
    return tuple(remedies)


DETECTOR = Detector(
    code="INP001",
    name="slow-input-stage",
    exposed_stage="training",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tf.data"}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"INP005", "INP006", "INP009", "INP010"}),
)
