"""What the numbers of an array look like: a checksum, zeros, padding, equal rows, range.

Large arrays are looked at in blocks, evenly spaced, so that the same elements are seen in each step.
"""

from __future__ import annotations

import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

WHOLE_BYTES = 8 << 20
"""Arrays up to this size are read whole: 10 ms at 1 GB/s."""
BLOCKS = 32
MOST_ROWS = 64
"""Rows whose checksums are compared."""
MATRIX = 2
"""Dimensions from which an array has rows; with one more, rows have positions of several features."""
LEAST_POSITIONS = 8
"""Positions of a sequence below which padding is not looked for."""


def checksum(array: Foreign) -> int:
    """A number that is the same for arrays of the same bytes; of a large one, of blocks of it."""
    found = 0
    for part in _parts(_bytes_of(array)):
        found = zlib.crc32(part, found)
    return found


def zeros_ratio(array: Foreign) -> float:
    """Share of elements that are 0; of a large array, in blocks of it."""
    if not array.size:
        return 0.0
    numpy = sys.modules["numpy"]
    flat = _plain(array.reshape(-1))
    zeros = seen = 0
    for part in _parts(flat):
        seen += part.size
        zeros += part.size - int(numpy.count_nonzero(part))
    return zeros / seen


def span(array: Foreign) -> tuple[int, int]:
    """Least and largest whole number; (0, 0) if these are none."""
    if array.dtype.kind not in "iu" or not array.size:
        return 0, 0
    return int(array.min()), int(array.max())


def row_sums(array: Foreign) -> list[int]:
    """Checksums of the first rows; none if a row has a single number."""
    if array.ndim < MATRIX or array.size <= array.shape[0]:
        return []
    return [zlib.crc32(_bytes_of(row)) for row in array[:MOST_ROWS]]


def equal_rows_ratio(array: Foreign) -> float:
    """Share of rows that are the same as an earlier one."""
    sums = row_sums(array)
    return 1.0 - len(set(sums)) / len(sums) if len(sums) > 1 else 0.0


def padding_ratio(array: Foreign) -> float:
    """Mean share of positions of the second axis, at one end of it, that hold only zeros."""
    if array.ndim < MATRIX or array.shape[1] < LEAST_POSITIONS or not array.shape[0] or not array.size:
        return 0.0
    if array.dtype.kind not in "iu" and array.ndim <= MATRIX:
        return 0.0  # features, not positions
    rows = array[:MOST_ROWS]
    used = _plain(rows).reshape(rows.shape[0], rows.shape[1], -1).any(axis=2)
    length = used.shape[1]
    behind = [length if not row.any() else int(row[::-1].argmax()) for row in used]
    before = [length if not row.any() else int(row.argmax()) for row in used]
    return float(max(sum(behind), sum(before)) / (length * len(behind)))


def _bytes_of(array: Foreign) -> Foreign:
    numpy = sys.modules["numpy"]
    return numpy.ascontiguousarray(array).reshape(-1).view("u1")


def _plain(array: Foreign) -> Foreign:
    """The array in a type that NumPy counts fast: narrow floats of TensorFlow as whole numbers of their size."""
    return array.view("u%d" % array.dtype.itemsize) if array.dtype.kind == "V" else array


def _parts(flat: Foreign) -> list[Foreign]:
    if flat.nbytes <= WHOLE_BYTES:
        return [flat]
    length = WHOLE_BYTES // BLOCKS // flat.dtype.itemsize
    step = (flat.size - length) // (BLOCKS - 1)
    return [flat[at * step : at * step + length] for at in range(BLOCKS)]
