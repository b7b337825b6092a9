"""What the calls of a loop change, and what its other statements read of it."""

from __future__ import annotations

import pytest

from stepscope.derive.python.loop_source import keeps_state

LOOP = """\
import numpy as np

def fit(self):
    while True:
        x = np.stack(tree.draw())
        y = self.tree.draw()
        seen = step(x, y)
        {statement}
        board.flush()
"""


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("tree.update(seen)", True),
        ("board.add(seen)", False),  # nothing in the loop reads it, it is only written out
        ("found = tree.update(seen)", False),  # its result may be used less often
        ("update(seen)", False),
        ("self.update(seen)", False),  # whatever of the trainer the loop reads
        ("np.save(seen)", False),
        ("self.tree.update(seen)", True),
    ],
)
def test_a_call_for_its_effect_may_change_what_the_loop_reads(statement: str, kept: bool) -> None:
    """What a later step takes out of an object is other if the object is changed less often."""
    source = LOOP.format(statement=statement)
    assert keeps_state(source, 7, 8) is kept
