"""Measures how much of integer sequences is padding, once for each kind of array given to a fit or a dataset.

At most 256 rows of an array are examined, and only lengths are kept. Memory maps are left alone: examining them would
read files.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Array = Foreign

RANK = 2
MIN_COLUMNS = 32
MIN_ROWS = 64
MAX_TOLD = 32
ROWS = 256
MAX_BYTES_LOOKED_AT = 16_000_000
COMMON = 0.5
"""Share of the rows that must end (or begin) with the same value for it to be the padding value."""
WITHIN = 0.1
"""Highest share of that value inside the sequences: above it the rows are counts or flags, not sequences."""


class Padding:
    """Examines arrays and logs each kind once."""

    def __init__(self, state: AgentState, place: Callable[[], tuple[str, str, int]]) -> None:
        """``place``: returns the line of user code that is running."""
        self._state = state
        self._place = place
        self._told: set[tuple[int, ...]] = set()
        self.made: dict[int, tuple[str, str, int]] = {}
        """Line that last padded sequences to a length, by that length."""

    def look(self, value: object) -> None:
        """Examine an array or a structure of arrays."""
        for array in _arrays(value, 2):
            if len(self._told) >= MAX_TOLD or tuple(array.shape) in self._told:
                continue
            self._told.add(tuple(array.shape))
            found = lengths(array)
            if found is None:
                continue
            place = self.made.get(array.shape[1]) or self._place()
            told: dict[str, object] = {"t": "padding", "at": self._state.now(), **found}
            told.update(rows=int(array.shape[0]), columns=int(array.shape[1]))
            told.update(file=place[0], function=place[1], line=place[2])
            self._state.log(told)


def _arrays(value: object, depth: int) -> Iterator[Array]:
    if depth and isinstance(value, (tuple, list)):
        for part in value[:8]:
            yield from _arrays(part, depth - 1)
    elif depth and isinstance(value, dict):
        for part in list(value.values())[:8]:
            yield from _arrays(part, depth - 1)
    elif _fits(value):
        yield value


def _fits(value: Array) -> bool:
    """Whether it is an in-memory array of integer rows with elements wider than a byte: byte arrays are images."""
    if type(value).__name__ != "ndarray" or value.ndim != RANK or value.dtype.kind not in "iu":
        return False
    return bool(value.dtype.itemsize > 1 and value.shape[0] >= MIN_ROWS and value.shape[1] >= MIN_COLUMNS)


def lengths(array: Array) -> dict[str, object] | None:
    """Used positions per row: ``mean``, and ``p95``, which one row in twenty exceeds. None for rows without padding."""
    numpy = sys.modules["numpy"]
    rows = array[:: max(1, len(array) // ROWS)][: min(ROWS, max(1, MAX_BYTES_LOOKED_AT // array[0].nbytes))]
    for flipped in (False, True):
        seen = rows[:, ::-1] if flipped else rows
        values, counts = numpy.unique(seen[:, -1], return_counts=True)
        pad = values[counts.argmax()]
        if counts.max() < COMMON * len(seen):
            continue
        own = seen != pad
        used = numpy.where(own.any(axis=1), seen.shape[1] - own[:, ::-1].argmax(axis=1), 0)
        inside = int(used.sum()) - int(own.sum())
        if inside > WITHIN * max(1, int(used.sum())):
            continue
        return {"mean": float(used.mean()), "p95": float(numpy.percentile(used, 95)), "first": flipped}
    return None
