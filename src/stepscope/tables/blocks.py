"""Long columns processed in blocks, so that intermediate results stay in the processor's cache.

An index of millions of events is five times the size of the column that it looks up, and new memory costs more time
than the look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

_BLOCK = 1 << 15
T = TypeVar("T", bound=np.generic)


def blocks(size: int) -> Iterator[slice]:
    """Slices that cover a number of rows."""
    return (slice(first, first + _BLOCK) for first in range(0, size, _BLOCK))


def take(values: npt.NDArray[T], index: npt.NDArray[np.signedinteger]) -> npt.NDArray[T]:
    """The value at each index. ``index``: no negative values, all below the number of values."""
    result = np.empty(len(index), values.dtype)
    for block in blocks(len(index)):
        np.take(values, index[block], out=result[block], mode="clip")
    return result
