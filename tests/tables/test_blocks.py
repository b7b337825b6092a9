"""Long columns a block at a time: the same as at once."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.tables import blocks


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 30])
def test_a_column_is_taken_in_blocks_as_at_once(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 8)
    values = np.array([3, -1, 7], np.int8)
    index = (np.arange(size) * 5 % 3).astype(np.int32)
    taken = blocks.take(values, index)
    assert taken.dtype == np.int8
    assert taken.tolist() == values[index].tolist()
    assert [row for block in blocks.blocks(size) for row in range(size)[block]] == list(range(size))
