"""What the statements of the user's loop do for the step; stack samples give their time.

Serves python_input_in_loop and slow_python_in_loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.python import loop_source, stack_samples

if TYPE_CHECKING:
    from stepscope.derive.python.hot_spots import HotSpot
    from stepscope.derive.view import SessionView


def build(view: SessionView, spot: HotSpot) -> loop_source.Role:
    """The role of a hot spot's statement.

    User code reached from the call's own statement makes its arguments, or receives its result. Outside of the function
    that makes the call, the statement that calls that function is the call's.
    """
    if view.loop is None or view.steps is None or spot.statement is None:
        return "unknown"
    at = (spot.statement.file, spot.statement.function)
    if at == view.loop:
        step = view.steps.call.text if view.steps.call else ""
        line, model = view.call_line, view.get(model_lines)
    else:
        functions = [view.loop, *((frame.file, frame.function) for frame in view.callers)]
        outer = functions.index(at)
        step, line, model = functions[outer - 1][1].rpartition(".")[2], view.callers[outer - 1].line, frozenset[int]()
    source = view.source_of(at[0])
    if source is None or line is None:
        return "unknown"
    role = loop_source.role_of_line(source, line, spot.statement.line, model)
    deeper = (spot.culprit.file, spot.culprit.function) != at
    return loop_source.role_within(source, line, spot.entered, step) if role == "call" and deeper else role


def model_lines(view: SessionView) -> frozenset[int]:
    """Lines of the loop below which variables are read, between the calls of the step."""
    found = (
        stack_samples.statement_of(s, view.loop)
        for s in view.samples
        if s.component == "other-python" and s.reads_variable
    )
    return frozenset(spot.line for spot in found if spot is not None)
