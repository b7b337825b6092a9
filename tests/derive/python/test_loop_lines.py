"""Lines that take the next element of something, and lines that hold several statements."""

from __future__ import annotations

import pytest

from stepscope.derive.python.loop_source import Role, role_of_line, takes_element


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


SHARED_LINES = """\
while more:
    if slow: batch = prepare(rows[n:])
    else: batch = rows[n:]
    start = now(); loss = run(batch); end = now()
    log(loss)
    n += 1; spent += end - start
"""


@pytest.mark.parametrize(("line", "role"), [(2, "feeds"), (3, "feeds"), (4, "call"), (5, "uses"), (6, "feeds")])
def test_several_statements_on_a_line(line: int, role: Role) -> None:
    """Each of them counts: what a short ``if`` does, and the call between two looks at a clock."""
    assert role_of_line(SHARED_LINES, 4, line) == role
