"""What is read from an array."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.agent.trials.tensors import array_digest


def test_equal_bytes_have_equal_sums() -> None:
    """A checksum depends on the bytes alone: a changed element, in a small array, changes it."""
    array = np.arange(12.0).reshape(3, 4)
    other = array.copy()
    other[2, 3] = -1
    assert array_digest.checksum(array) == array_digest.checksum(np.asfortranarray(array))
    assert array_digest.checksum(array) != array_digest.checksum(other)
    assert array_digest.checksum(np.float32(1.0).reshape(())) != array_digest.checksum(np.float32(2.0).reshape(()))


def test_large_arrays_are_read_in_blocks() -> None:
    """Of a large array a fixed part is read, spread over it: zeros are counted nearly right."""
    array = np.zeros(array_digest.WHOLE_BYTES // 4 * 3, "float32")
    array[: len(array) // 4] = 1
    assert array_digest.zeros_ratio(array) == pytest.approx(0.75, abs=0.04)
    array[-1] = 5
    assert array_digest.checksum(array) != array_digest.checksum(array * 2)


def test_padding_is_at_one_end() -> None:
    """Positions without a number count at the end that has more of them; a zero between numbers does not."""
    rows = np.zeros((2, 10), "int32")
    rows[0, :3], rows[1, :5] = 1, 1
    rows[1, 2] = 0
    assert array_digest.padding_ratio(rows) == pytest.approx((7 + 5) / 20)
    assert array_digest.padding_ratio(rows[:, ::-1]) == pytest.approx((7 + 5) / 20)
    assert array_digest.padding_ratio(rows.astype("float32")) == 0.0
    assert array_digest.padding_ratio(np.repeat(rows[..., None], 3, 2).astype("float32")) == pytest.approx(0.6)


def test_equal_rows_and_range() -> None:
    """Rows that repeat an earlier one count; the range is of whole numbers."""
    assert array_digest.equal_rows_ratio(np.ones((8, 4))) == pytest.approx(7 / 8)
    assert array_digest.equal_rows_ratio(np.ones((8, 1))) == 0.0
    assert array_digest.span(np.array([3, -2])) == (-2, 3)
    assert array_digest.span(np.array([3.5])) == (0, 0)
