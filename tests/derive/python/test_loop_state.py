"""What the calls of a loop change, and what its other statements read of it."""

from __future__ import annotations

import pytest

from stepscope.derive.python.loop_source import keeps_state


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("tree.update(seen)", True),
        ("board.add(seen)", False),  # nothing in the loop reads it, it is only written out
        ("found = tree.update(seen)", False),  # its result may be used less often
        ("update(seen)", False),
    ],
)
def test_a_call_for_its_effect_may_change_what_the_loop_reads(statement: str, kept: bool) -> None:
    """What a later step takes out of an object is other if the object is changed less often."""
    source = f"while True:\n    x = tree.draw()\n    seen = step(x)\n    {statement}\n    board.flush()\n"
    assert keeps_state(source, 3, 4) is kept
