"""Records of one step in the words of its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.kinds import KINDS
from stepscope.model.report.step_detail import StepHappening
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.one_step.happenings import Happening
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import Name, Traced
    from stepscope.tables.place import Place

_CAUSES = {
    "shape": "the shape of {argument} changed",
    "dtype": "the dtype of {argument} changed",
    "python-value": "the Python value of {argument} changed",
    "structure": "the structure of {argument} changed",
    "object": "{argument} is another object",
    "new-function": "a new tf.function was made",
    "first": "its first trace",
}


def happening(view: StepsView, one: Happening) -> StepHappening:
    """What happened, with its name and place."""
    name = view.names.get(one.name)
    traced = one.traced
    what = KINDS[one.kind].happens or "function call"
    if what == "evaluation" and name is not None and name.role not in {"evaluate", "predict"}:
        what = "function call"
    return StepHappening(
        what=what,
        name=traced.function if traced is not None else "" if one.kind == Kind.GC else _text(name),
        where=_traced_place(view, traced) if traced is not None else _place(view, name),
        component=one.component,
        calls=one.calls,
        at_ns=one.at_ns,
        ns=one.time_ns,
        usual_steps_ratio=one.usual_calls_ratio,
        usual_ns=round(one.usual_ns),
        reason=_reason(traced) if traced is not None else "",
    )


def called(function: str) -> str:
    """The function that a line called, without its classes."""
    return function.rpartition(".")[2]


def _text(name: Name | None) -> str:
    return (name.text or name.role) if name is not None else ""


def _place(view: StepsView, name: Name | None) -> Place | None:
    """The user's line that makes the call, else the definition."""
    if name is None:
        return None
    if name.call_file:
        return view.place(name.call_file, name.call_line, function=name.call_function)
    return view.place(name.file, name.line, name.end_line) if name.file else None


def _traced_place(view: StepsView, traced: Traced) -> Place | None:
    return view.place(traced.file, traced.line, traced.end_line, traced.function) if traced.file else None


def _reason(traced: Traced) -> str:
    said = _CAUSES.get(traced.cause, traced.cause).format(argument=traced.argument or "an argument")
    change = f" ({traced.before} \u2192 {traced.after})" if traced.before or traced.after else ""
    return f"{said}{change}"
