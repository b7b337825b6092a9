"""Lines whose time may be that of taking the next element of something."""

from __future__ import annotations

import pytest

from stepscope.derive.python.loop_source import takes_element


@pytest.mark.parametrize(
    ("source", "takes"),
    [
        ("for x in loader:\n    step(x)", True),
        ("for x in loader: step(x)", False),
        ("for i in range(9):\n    step(i)", False),
        ("async for x in loader:\n    step(x)", True),
        ("x = next(it, None)", True),
        ("step(it.next())", False),
        ("x = next(y for y in found if y)", False),
        ("x = load(9)", False),
        ("for x in", False),
    ],
)
def test_a_line_that_takes_an_element(source: str, takes: bool) -> None:
    """What stands in the body of a one-line loop, or counts numbers, is no wait for an element."""
    assert takes_element(source, 1) is takes
