"""What the statements of the user's loop do for the step; stack samples give their time.

Serves python_input_in_loop and slow_python_in_loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.python import loop_source, stack_samples

if TYPE_CHECKING:
    from stepscope.derive.python.hot_spots import HotSpot
    from stepscope.derive.view import SessionView


def build(view: SessionView, spot: HotSpot) -> loop_source.Role:
    """The role of a hot spot's statement.

    User code reached from the call's own statement makes its arguments, or receives its result. Outside of the function
    that makes the call, the statement that calls that function is the call's.
    """
    call = _call_near(view, spot)
    if call is None or spot.statement is None:
        return "unknown"
    role = loop_source.role_of_line(call.source, call.line, spot.statement.line, call.model_lines)
    if role != "call" or (spot.culprit.file, spot.culprit.function) == (spot.statement.file, spot.statement.function):
        return role
    return loop_source.role_within(call.source, call.line, spot.entered, call.step)


def keeps_state(view: SessionView, spot: HotSpot) -> bool:
    """Whether a hot spot's statement changes an object that another statement of each step reads."""
    call = _call_near(view, spot)
    if call is None or spot.statement is None:
        return False
    return loop_source.keeps_state(call.source, call.line, spot.statement.line)


class _Call(Struct, frozen=True):
    """The call of the step, or of the function around it, in the function of a hot spot's statement."""

    source: str
    line: int
    step: str
    """What is called."""
    model_lines: frozenset[int]


def _call_near(view: SessionView, spot: HotSpot) -> _Call | None:
    if view.loop is None or view.steps is None or spot.statement is None:
        return None
    at = (spot.statement.file, spot.statement.function)
    if at == view.loop:
        step = view.steps.call.text if view.steps.call else ""
        line, model = view.call_line, view.get(model_lines)
    else:
        functions = [view.loop, *((frame.file, frame.function) for frame in view.callers)]
        outer = functions.index(at)
        step, line, model = functions[outer - 1][1].rpartition(".")[2], view.callers[outer - 1].line, frozenset[int]()
    source = view.source_of(at[0])
    return _Call(source, line, step, model) if source is not None and line is not None else None


def model_lines(view: SessionView) -> frozenset[int]:
    """Lines of the loop below which variables are read, between the calls of the step."""
    found = (
        stack_samples.statement_of(s, view.loop)
        for s in view.samples
        if s.component == "other-python" and s.reads_variable
    )
    return frozenset(spot.line for spot in found if spot is not None)
