"""The parts of steps as the timeline draws them."""

from __future__ import annotations

from tests.web.timeline_sessions import STEP, session

from stepscope.derive.steps import anatomy
from stepscope.derive.view import SessionView
from stepscope.timeline import step_parts


def test_wait_inside_calls_is_drawn_in_front_of_them() -> None:
    """Of a call that waits for its batch inside, the mean share comes first; the parts add up to the anatomy."""
    made = SessionView(session())
    assert made.steps is not None
    found = anatomy.build(made.steps, compiled_wait_ns=STEP / 4)
    parts = step_parts.build(found)
    sums = {one.text: int(parts.dur[parts.name == i].sum()) for i, one in enumerate(parts.names)}
    assert sums["input wait (mean share of the calls)"] == found.per_step_of("input-wait").sum()
    assert sums["compute"] == found.per_step_of("call").sum()
    categories = {one.text: one.category for one in parts.names}
    assert categories["input wait (mean share of the calls)"] == "input"
    assert parts.names[int(parts.name[0])].text.startswith("input wait")
