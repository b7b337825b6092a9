"""Shapes of what calls are given: each has a number, which records of calls carry in bits 8-15 of their flags.

A process that meets many shapes is described by sizes rounded up to powers of two; beyond ``MOST`` of these, by
nothing. So the log stays short whatever a job is given.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stepscope.wire.kinds import OTHER_SHAPE, SHAPE_SHIFT

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Dims = tuple[int, ...]

EXACT = 96
"""Shapes that have their own number; further ones are rounded."""
MOST = OTHER_SHAPE - 1
MAX_KNOWN = 4096
"""Shapes whose number is remembered."""
MAX_RANK = 5
"""Sizes kept of a shape, the first ones."""
LEAST_NS = 200_000
"""Calls shorter than this are not asked for their shape: asking takes up to a microsecond."""


class Shapes:
    """Numbers of the shapes that one process was given."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._flags: dict[Dims, int] = {}
        """Shape -> bits of the flags."""
        self._numbers: dict[tuple[Dims, bool], int] = {}
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """In a forked child: it has another log."""
        self._flags, self._numbers = {}, {}

    def flags(self, shape: Dims) -> int:
        """The bits that stand for a shape; 0 for none."""
        found = self._flags.get(shape)
        return found if found is not None else self._meet(shape)

    def _meet(self, shape: Dims) -> int:
        if not shape or None in shape:  # a model that is called while another one is built has no batch yet
            return 0
        dims = tuple(int(size) for size in shape[:MAX_RANK])
        rounded = len(self._numbers) >= EXACT and (dims, False) not in self._numbers
        if rounded:
            dims = tuple(1 << max(0, size - 1).bit_length() for size in dims)
        number = self._numbers.get((dims, rounded))
        if number is None:
            number = len(self._numbers) + 1
            if number > MOST:
                number, dims = OTHER_SHAPE, ()
            if number <= MOST or ((), True) not in self._numbers:
                self._numbers[dims, rounded] = number
                line = {"t": "shape", "at": self._state.now(), "id": number, "dims": list(dims), "rounded": rounded}
                self._state.log(line)
        flags = number << SHAPE_SHIFT
        if len(self._flags) < MAX_KNOWN:
            self._flags[shape] = flags
        return flags


def shapes_of(state: AgentState) -> Shapes:
    """The one ``Shapes`` of this process's agent."""
    attributes = vars(state)
    found: Shapes | None = attributes.get("shapes")
    if found is None:
        found = attributes["shapes"] = Shapes(state)
    return found


def varies(spec: object, depth: int = 3) -> bool:
    """Whether a tensor of a signature leaves a size open."""
    if isinstance(spec, (tuple, list, dict)):
        parts = list(spec.values()) if isinstance(spec, dict) else list(spec)
        return depth > 0 and any(varies(part, depth - 1) for part in parts[:4])
    shape = getattr(spec, "shape", None)
    try:
        return shape is not None and any(size is None for size in shape)
    except (TypeError, ValueError):  # of unknown rank
        return True


def shape_of(value: Foreign, depth: int = 2) -> Dims:
    """Shape of the first array or tensor of rank 1 or more in ``value``; () if there is none. A list is one array."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return _shape_inside(value, depth)
    if type(shape) is tuple:  # NumPy
        return shape
    if hasattr(value, "assign_add"):
        return ()
    quick = getattr(value, "_shape_tuple", None)
    dims: Dims = quick() if quick is not None else tuple(shape() if callable(shape) else shape)  # OrtValue: a method
    return dims if all(type(size) is int for size in dims) else ()


def _shape_inside(value: Foreign, depth: int) -> Dims:
    if not depth or not isinstance(value, (tuple, list, dict)):
        return ()
    parts = list(value.values())[:4] if isinstance(value, dict) else value[:4]
    if type(value) is list and parts and isinstance(parts[0], (int, float, str, bytes)):
        return (len(value),)
    return next((found for part in parts if (found := shape_of(part, depth - 1))), ())
