"""The report's part on the input pipeline as it ran: its stages, which of them limits, which one to mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.input import input_cause
from stepscope.causes.job import hidden_wait
from stepscope.derive import steps_view
from stepscope.derive.input import stages as input_stages
from stepscope.derive.optrace.host import traced_stages
from stepscope.model.report.input_tree import InputFunction, InputTree, TreeStage
from stepscope.report.sections.input.bound import FAILED
from stepscope.tables.errors import DamagedError, StepscopeError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.input.input_cause import InputCause
    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.view import SessionView
    from stepscope.model.report.input_tree import TreeSource, WaitsFor
    from stepscope.tables.place import Place

MIN_WAIT = 0.05
"""Share of the steps that wait from which a stage is worth mending; xprof calls 5 % moderate."""
MAX_FUNCTIONS = 8


def build(view: SessionView) -> tuple[InputTree | None, tuple[Diagnostic, ...]]:
    """The tree; None without steps and traced steps, or if no input was seen."""
    try:
        return _build(view), ()
    except DamagedError:
        raise
    except (StepscopeError, ArithmeticError, LookupError, ValueError) as error:  # tf.data's model, and traces
        text = f"the tree of the input was not made: {type(error).__name__}: {error}"
        return None, (Diagnostic(code=FAILED, text=text),)


def _build(view: SessionView) -> InputTree | None:
    steps, pipe = steps_view.of(view), view.pipeline
    if steps is None or pipe is None:
        return _of_trace(view)
    if not pipe.stages and not pipe.iterators_made and not pipe.functions:
        return _of_trace(view)
    anatomy = steps.anatomy
    unknown = bool(steps.get(hidden_wait.build))
    wait = None if unknown or not anatomy.wall_ns else anatomy.ratio("input-wait")
    count = max(1, steps.steps.steady_count)
    wall = anatomy.wall_ns / count / pipe.batches_per_step
    cause = steps.get(input_cause.build)
    mend = cause.stage if cause is not None and cause.limit not in {"disk", "network"} else None
    source: TreeSource = ("trace" if pipe.captures else "model") if pipe.stages else "none"
    waits = wait is not None and wait >= MIN_WAIT
    return InputTree(
        text=_text(view, wait, cause, mend, wall, pipe.why_unread(view.frameworks)),
        source=source,
        wait_ratio=wait,
        wall_ns=round(wall),
        stages=tuple(_stages(view, pipe.stages, wall, mend if waits else None, waits=waits)),
        functions=tuple(_function(view, one, count) for one in pipe.functions[:MAX_FUNCTIONS]),
    )


def _of_trace(view: SessionView) -> InputTree | None:
    """The pipeline of the report's op trace, if that is all there is."""
    trace = view.traces.shown
    if trace is None or trace.pipeline is None:
        return None
    found = input_stages.of_tree(traced_stages.as_model(trace.pipeline))
    seen = trace.shows_steps
    wall = trace.periods.mean_ns * len(trace.periods) / max(1, trace.pipeline.batches) if seen else 0.0
    wait = trace.breakdown.ratio("input-wait") if seen else None
    waits = wait is not None and wait >= MIN_WAIT
    slowest = max(input_stages.limiting(found), key=lambda s: s.latency_ns, default=None)
    return InputTree(
        text=_text(view, wait, None, slowest, wall, "the trace shows no whole step"),
        source="trace",
        wait_ratio=wait,
        wall_ns=round(wall),
        stages=tuple(_stages(view, found, wall, slowest if waits else None, waits=waits)),
    )


def _stages(
    view: SessionView, found: Sequence[Stage], wall: float, mend: Stage | None, *, waits: bool
) -> Iterator[TreeStage]:
    limiting = input_stages.limiting(found)
    slow = limiting[0].stretch if limiting else -1
    work: dict[int, float] = {}
    for stage in found:
        work[stage.stretch] = work.get(stage.stretch, 0.0) + stage.latency_ns
    first = {stage.stretch: at for at, stage in reversed(list(enumerate(found)))}
    top = min((stage.depth for stage in found), default=0)
    for at, stage in enumerate(found):
        idle = max(0.0, wall - work[stage.stretch]) if first[stage.stretch] == at else 0.0
        whom: WaitsFor = "consumer" if idle else ""
        if idle and waits and stage.stretch == slow:
            whom = "other"
        elif idle and waits and at < first[slow] and _feeds(found, first[slow], at):
            whom = "input"
        yield TreeStage(
            name=stage.name,
            depth=stage.depth - top,
            function=next((d.fn_name for d in stage.datasets if d.fn_name), ""),
            place=_place(view, stage),
            self_ns=round(stage.self_ns),
            batch_ns=round(stage.latency_ns),
            wait_ns=round(idle),
            waits_for=whom,
            parallelism=stage.parallelism,
            asked_parallel=next((d.parallel for d in stage.datasets if d.parallel), 0),
            elements=stage.elements,
            buffered=stage.buffered,
            bytes=stage.bytes,
            limits=stage.stretch == slow,
            mend=stage is mend,
        )


def _feeds(found: Sequence[Stage], inner: int, outer: int) -> bool:
    """Whether a stage stands below another one of a list that goes depth first."""
    return all(stage.depth > found[outer].depth for stage in found[outer + 1 : inner + 1])


def _place(view: SessionView, stage: Stage) -> Place | None:
    return next((p for d in stage.datasets if (p := view.dataset_place(d)) is not None), None)


def _function(view: SessionView, one: PythonFunction, count: int) -> InputFunction:
    name = one.name
    return InputFunction(
        name=name.text,
        role=one.role,
        place=view.place(name.file, name.line, function=name.text) if name.file else None,
        calls=one.calls,
        ns_per_step=round(one.total_ns / count),
    )


_OUTSIDE = {"disk": "the disk", "network": "the network"}


def _text(
    view: SessionView, wait: float | None, cause: InputCause | None, mend: Stage | None, wall: float, unread: str
) -> str:
    """Which stage to mend, or why none."""
    if wait is None:
        return f"how long the steps wait for input was not measured: {unread}"
    said = f"the steps wait {format_ratio(wait)} of their time for input"
    if wait < MIN_WAIT:
        return f"{said}: no stage is worth mending"
    if cause is not None and cause.limit in _OUTSIDE:
        return f"{said}, and the input for {_OUTSIDE[cause.limit]}"
    if mend is None:
        return f"{said}; which stage is slow is not known: {unread}"
    place = _place(view, mend)
    at = f" ({place.file}:{place.line})" if place is not None else ""
    threads = "on one thread" if mend.parallelism <= 1 else f"on {mend.parallelism:.3g} threads"
    function = next((f" of {d.fn_name}" for d in mend.datasets if d.fn_name), "")
    of = "of" if mend.latency_ns < wall else "all of the"
    takes = f"{format_ns(mend.latency_ns)} a batch, {of} {format_ns(wall)} between two"
    said += f"; mend {mend.name}{function}{at} first: it takes {takes}, {threads}"
    if cause is not None and cause.function is not None:
        said += f", in user Python ({cause.function.users})"
    return said
