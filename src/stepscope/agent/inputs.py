"""Examines a few batches of what steps are given: the share of zeros in them, and how many of their rows differ.

At most ``LOOKS`` batches of a kind are examined, ``MAX_BYTES`` of each, and ``BUDGET_NS`` in all; nothing is kept or
changed. An array with one value everywhere is left out: programs call a model with such an array to build it.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Array = Foreign

CALLS = frozenset((1, 2, 32))
"""Calls of one function or iterator whose batches are examined: first ones, and one that is like those after it."""
LOOKS = len(CALLS)
"""Batches examined of each kind."""
MAX_KINDS = 48
MAX_PARTS = 16
"""Tensors of a batch that are examined."""
MAX_BYTES = 2_000_000
BUDGET_NS = 40_000_000
"""CPU time: that a starved machine lets the thread wait is no cost of the examination."""
MIN_ROWS, MAX_ROWS = 4, 1024
DEPTH = 4


class Inputs:
    """Examines batches and logs what it found of each."""

    def __init__(self, state: AgentState, place: Callable[[], tuple[str, str, int]]) -> None:
        """``place``: returns the line of user code that is running."""
        self._state = state
        self._place = place
        self._looks: dict[tuple[object, ...], int] = {}
        self._spent = 0
        self._calls = 0

    def look(self, value: Foreign, *, batch: bool = True, names: Sequence[str] = (), of: str = "") -> None:
        """Examine the arrays of a structure.

        Args:
            value: The structure.
            batch: Whether it is that of one step, not the rows of a whole data set.
            names: Names of its arrays, if their order means nothing.
            of: Place file:line of the function whose arguments they are.
        """
        if self._spent >= BUDGET_NS:
            return
        start, used = self._state.now(), time.thread_time_ns()
        file, function, line = self._place()
        for position, (name, array) in enumerate(_named(value, names)):
            if position >= MAX_PARTS:
                break
            found = self._array(array, (position, batch, file, line, of))
            if found is None:
                continue
            spent = self._state.now() - start
            told: dict[str, object] = {"t": "input", "at": start, "of": of, "position": position, "batch": batch}
            told.update(found, name=name, spent_ns=spent)
            told.update(file=file, function=function, line=line)
            self._state.log(told)
        self._spent += time.thread_time_ns() - used

    def call(self, value: object) -> None:
        """Note a call of a method that takes one batch, and examine that."""
        self._calls += 1
        if self._calls in CALLS:
            self.look(value)

    def fed(self, feeds: dict[Foreign, Foreign]) -> None:
        """Note what a run of a session is fed, and examine it."""
        self._calls += 1
        if self._calls in CALLS:
            self.look(list(feeds.values()), names=[str(getattr(key, "name", key)) for key in feeds])

    def _array(self, value: Foreign, where: tuple[object, ...]) -> dict[str, object] | None:
        shape = tuple(value.shape)
        if not shape or not shape[0] or shape[0] < MIN_ROWS:
            return None
        key = (*where, shape[1:])
        looks = self._looks.get(key, 0)
        if looks >= LOOKS or (not looks and len(self._looks) >= MAX_KINDS):
            return None
        array = _in_memory(value)
        if array is None:
            return None
        found = examined(array)
        if found is not None:
            self._looks[key] = looks + 1
        return found


def _named(value: Foreign, names: Sequence[str]) -> Iterator[tuple[str, Foreign]]:
    """The arrays of a structure with their names; of values with names those that are arrays, not lists of rows."""
    if not names:
        for array in _arrays(value, DEPTH):
            yield "", array
    for position, name in enumerate(names):
        if getattr(value[position], "shape", None) is not None:
            yield name, value[position]


def _arrays(value: object, depth: int) -> Iterator[Foreign]:
    """The arrays and tensors of a structure, in TensorFlow's order."""
    if depth and isinstance(value, (tuple, list)):
        for part in value:
            yield from _arrays(part, depth - 1)
    elif depth and isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _arrays(value[key], depth - 1)
    elif getattr(value, "shape", None) is not None:
        yield value


def _in_memory(value: Foreign) -> Foreign:
    """The array of numbers, or of an eager tensor on the host, without a copy; else None."""
    if type(value).__name__ != "ndarray":
        read = getattr(value, "_numpy_internal", None)
        if read is None or "CPU" not in value.device:
            return None
        if not (value.dtype.is_floating or value.dtype.is_integer or value.dtype.is_bool):
            return None  # texts would be copied
        value = read()
    return value if type(value).__name__ == "ndarray" and value.dtype.kind in "fiub" else None


def examined(array: Array) -> dict[str, object] | None:
    """Its shape, the number of rows examined and of those that differ, and the share of zeros; None if all is equal."""
    numpy = sys.modules["numpy"]
    most = min(MAX_ROWS, MAX_BYTES // max(1, array[0].nbytes))
    if most < MIN_ROWS:
        return None
    rows = numpy.ascontiguousarray(array[:most])
    first = rows.flat[0]
    if not (rows[0] != first).any() and not (rows != first).any():
        return None
    known: dict[int, int] = {}
    kinds = [known.setdefault(hash(row.tobytes()), len(known)) for row in rows]
    found: dict[str, object] = {"shape": list(array.shape), "dtype": str(array.dtype)}
    zeros = 1 - int(numpy.count_nonzero(rows)) / rows.size
    found.update(rows=len(rows), distinct=len(known), zeros_ratio=zeros)
    found.update(block=_block(kinds), tiled=all(kind == i % len(known) for i, kind in enumerate(kinds)))
    return found


def _block(kinds: list[int]) -> int:
    """Length of the runs of equal rows, if they are equally long but for the last; else 0."""
    length = next((i for i, kind in enumerate(kinds) if kind), len(kinds))
    return length if all(kind == i // length for i, kind in enumerate(kinds)) else 0
