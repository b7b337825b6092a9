"""Shared by the input detectors: user Python inside the pipeline, and waits that an op trace shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import input_cause
from stepscope.causes.job import hidden_wait
from stepscope.derive.python import doing
from stepscope.detectors.base import cost_of
from stepscope.detectors.remedies import Fact
from stepscope.tables.findings import Evidence
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from stepscope.causes.host.gil_contention import LockWaits
    from stepscope.causes.input.input_cause import InputCause, Limit
    from stepscope.causes.system.producer import Producer
    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.findings import Cost
    from stepscope.tables.place import Place


MOST = 0.5
"""Share of its time that a place inside of a function must have to be named."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_wait_ratio: Ratio = Ratio(0.10)
    """Of steady wall time; see INP001."""


class PipelineFunction(Struct, frozen=True, kw_only=True):
    """A Python function of the pipeline and what it costs the steps."""

    cause: InputCause
    function: PythonFunction
    saved: float
    """Share of steady wall time that is saved without it."""
    per_batch_ns: float
    """The function's own time per step."""
    hidden: bool
    """Whether no wait could be measured: the function is known to set the pace because it is never idle."""

    def evidence(self, params: Params) -> tuple[Evidence, ...]:
        """Wait, time in Python, additional cost of the lock, time per batch; CPU time, or waits for the lock, if they
        determine the cost."""
        cause, ref = self.cause, f"name:{self.function.name.id}"
        wait = Evidence(
            metric="input_wait_ratio",
            value=cause.wait_ratio,
            unit="ratio",
            threshold=params.min_wait_ratio,
            refs=("component:input-wait", *cause.captures),
        )
        disturbed = Evidence(metric="disturbed_ratio", value=cause.disturbed_ratio, unit="ratio")
        own = () if cause.producer is None else (_own(cause.producer),)
        return (
            *(() if self.hidden else (wait, *traced(cause))),
            Evidence(metric="python_busy_ratio", value=self.busy_ratio, unit="ratio"),
            *(() if self.hidden else (disturbed,)),
            *own,
            *(() if cause.lock is None else (_lock(cause.lock),)),
            Evidence(metric="python_ns_per_batch", value=self.per_batch_ns, unit="ns", refs=(ref,)),
        )

    @property
    def busy_ratio(self) -> float:
        """Share of the steady wall time in which the input's Python ran; with the pauses around calls if ``hidden``."""
        made = self.cause.producer
        return made.busy_ratio if self.hidden and made is not None else self.cause.python_ratio

    def held_up(self, view: StepsView) -> str:
        """``; steps wait 79 % of their time for it``: how the function holds up the steps, to append."""
        if self.hidden:
            return f", without a break ({format_ratio(self.busy_ratio)} of the time): it sets the pace of the steps"
        return f"; steps wait {waits(view, self.cause, self.saved)}"

    def cost(self, view: StepsView) -> Cost:
        """The wait is certain within its error; the additional cost of lock and CPUs may be less."""
        cause, error = self.cause, 2 * self.cause.error_ratio
        basis = "modelled" if self.hidden else "measured"
        return cost_of(view, self.saved, low=cause.saved_low - error, high=cause.saved_high + error, basis=basis)


def waits(view: StepsView, cause: InputCause, saved: float) -> str:
    """``79 % of their time for it``: as the split of the step has it; and the cost where it is another, with why."""
    split = _split(view)
    said, cost = format_ratio(split), format_ratio(saved)
    if said == cost:
        return f"{said} of their time for it"
    if saved > split:
        more = "together with the GIL and the CPUs that it takes from the step, it costs"
        return f"{said} of their time for it; {more} {cost}"
    return f"{said} of their time for input; {cost} without {_besides(view, cause, split)}"


def account(view: StepsView, cause: InputCause, saved: float) -> str:
    """Why the split, the evidence and the cost give three numbers for a wait: a sentence to append, or nothing."""
    split = _split(view)
    said, own, cost = format_ratio(split), format_ratio(cause.wait_ratio), format_ratio(saved)
    parts = []
    if said != own:
        held = f"the step's breakdown includes {_besides(view, cause, split)}"
        parts.append(f" The input wait of {said} in {held}; without it, the wait is {own}.")
    if cost != own:
        more = "without this input, the step also gets back the interpreter lock and the CPUs"
        parts.append(f" The cost is {cost}: {more}.")
    return "".join(parts)


def _split(view: StepsView) -> float:
    return view.anatomy.ratio("input-wait")


def _besides(view: StepsView, cause: InputCause, split: float) -> str:
    """Which of the two that ``InputCause.wait_ratio`` leaves out is the larger part."""
    handed = min(split, view.pipeline.handover_ns * view.steps.steady_count / max(1, view.anatomy.wall_ns))
    ready = "the hand-over of ready batches"
    return ready if 2 * handed >= split - cause.wait_ratio else "the CPU time that other processes take"


def traced(cause: InputCause) -> tuple[Evidence, ...]:
    """Number of steps of the op trace that shows the wait; nothing if tf.data's model or the loop showed it."""
    if not cause.traced_steps:
        return ()
    return (Evidence(metric="traced_steps", value=cause.traced_steps, unit="steps", refs=cause.captures),)


def by_trace(cause: InputCause) -> str:
    """The same as a sentence to append, or nothing."""
    if not cause.traced_steps:
        return ""
    return (
        f" The wait comes from an op trace of {cause.traced_steps} steps and is assumed to be the same share of all "
        "steps: tf.data has no model of it that can be read."
    )


def _own(made: Producer) -> Evidence:
    return Evidence(metric="own_cpu_cores", value=made.own_ratio, unit="cores")


def _lock(waits: LockWaits) -> Evidence:
    refs = (f"component:{waits.component}",) if waits.component else ()
    return Evidence(metric="lock_wait_ratio", value=waits.ratio, unit="ratio", refs=refs)


def find(view: StepsView, limit: Limit, params: Params) -> PipelineFunction | None:
    """The function, if user Python of this kind limits the pipeline and steps wait for it."""
    cause, steps = view.get(input_cause.build), view.steps
    if cause is None or cause.limit != limit or cause.function is None:
        return None
    hidden = view.get(hidden_wait.build)
    if hidden and (not cause.never_idle or cause.saved_low < params.min_wait_ratio):
        return None
    disturbed = max(cause.disturbed_ratio, cause.lock.low if cause.lock is not None else 0.0)
    if not hidden and cause.wait_ratio + disturbed < params.min_wait_ratio:
        return None
    return PipelineFunction(
        cause=cause,
        function=cause.function,
        saved=cause.saved_ratio,
        per_batch_ns=cause.function.total_ns / steps.steady_count,
        hidden=hidden,
    )


def inside_text(view: StepsView, function: PythonFunction) -> str:
    """``, most of it in window (np.diff)``: where the function spends its time, if one place has most of it."""
    inside, name = function.inside, function.name
    if inside is None or inside.ratio < MOST:
        return ""
    called = doing.sure(inside.called, inside.called_ratio, inside.samples)
    what = doing.build(inside.file, inside.lines, called, view.source_of)
    own = inside.function == name.text or (inside.file == name.file and name.line <= inside.lines[0] <= name.end_line)
    where = f"line {inside.lines[0]}" if own else inside.function
    return f", most of it in {where}" + (f" ({what})" if what else "")


def own_places(view: StepsView, function: PythonFunction) -> list[Place]:
    """The function itself, and the lines that take its time; these first where the function is a library's."""
    name, inside = function.name, function.inside
    places = [view.place(name.file, name.line, name.end_line, name.text)] if name.file else []
    if inside is not None:
        at = 0 if function.wraps is not None else len(places)
        places.insert(at, view.place(inside.file, min(inside.lines), max(inside.lines), inside.function))
    return places


def about(function: PythonFunction) -> frozenset[Fact]:
    """What is true of the function, for the conditions of remedies."""
    inside = function.inside
    return frozenset({Fact.PYTHON_OPS}) if inside is not None and inside.tensorflow_ratio >= MOST else frozenset()


def made_places(view: StepsView, function: PythonFunction) -> list[Place]:
    """Where the function was put into the graph, innermost line first."""
    stack = function.made.stack[-2:] if function.made is not None else []
    return [view.place(file, line, function=where) for file, where, line in reversed(stack)]
