"""Infers the Python frames between two known ones from the size of the gap on CPython's frame stack.

From 3.11 on, frames of Python functions are contiguous in memory, each as large as its code object says. A sample shows
where the frame of a loop's innermost function begins, but not what lies between it and the next outer loop. Other
samples saw functions further out at work: a function whose frame begins where the gap does, and others each beginning
where the previous one ends, up to the innermost one's, fill it; so do frames still in memory after the window, if they
are contiguous. If exactly one row of functions fits, each of which was seen to call the next one or names it in its
code, those are the callers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stepscope.native.formats.python_code import PythonCode

_INIT, _SHIM_BYTES = "__init__", 88
"""Size of the interpreter's own frame that may be below a frame of ``__init__``. Source: CPython, Python/specialize.c,
_Py_InitCleanup (3.12 and later)."""
_MOST_CALLERS = 24


class SeenFrame(NamedTuple):
    """A frame that was seen."""

    before: int
    """Instruction of the outer loop that called native code, which called Python again; 0: the thread's start."""
    offset: int
    """Distance of its beginning from the end of that instruction's frame."""
    code: PythonCode
    frame: int
    """Address of its beginning."""
    leaf: bool
    """Flag: the sample is in the interpreter's loop itself, not in a function called by it."""


class Beds:
    """Places where functions' frames were seen to begin."""

    def __init__(
        self,
        seen: Iterable[SeenFrame],
        names: Callable[[PythonCode], frozenset[str]],
        caller: Callable[[int, PythonCode | None], tuple[int, PythonCode | None] | None],
    ) -> None:
        """Store ``seen`` of all samples; ``names``: the names that a function uses; ``caller``: (address, function) of
        the frame that called a function's frame, in memory after the window.
        """
        seen = list(seen)
        self._names = names
        self._caller = caller
        self._linked: set[tuple[int, int]] = set()
        self._known: dict[tuple[int, int, int], list[tuple[PythonCode, ...]]] = {}
        self._offsets: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
        for one in seen:
            self._offsets[one.before, one.code.address][one.offset] += 1
        self._ends: dict[tuple[int, int], set[tuple[int, PythonCode]]] = defaultdict(set)
        for one in dict.fromkeys(seen):
            if self._is_certain(one):
                self._ends[one.before, one.offset + one.code.frame_size].add((one.offset, one.code))
                self._follow(one)

    def _follow(self, one: SeenFrame) -> None:
        """Follow the callers in memory, if they are contiguous down to the beginning."""
        found: list[tuple[int, PythonCode, PythonCode]] = []
        frame, code, first = one.frame, one.code, one.frame - one.offset
        while frame > first and len(found) < _MOST_CALLERS:
            caller = self._caller(frame, code)
            if caller is not None and caller[1] is None:  # the interpreter's own frame
                frame, caller = caller[0], self._caller(caller[0], None)
            if caller is None or caller[1] is None or caller[0] + caller[1].frame_size != frame:
                return
            found.append((caller[0] - first, caller[1], code))
            frame, code = caller[0], caller[1]
        if frame == first:
            for offset, by, called in found:
                self._ends[one.before, offset + by.frame_size].add((offset, by))
                self._linked.add((by.address, called.address))

    def _is_certain(self, one: SeenFrame) -> bool:
        """Whether function and frame belong together. In the loop itself they may briefly be of different functions,
        during a call: a match is accepted where the function is seen most often.
        """
        offsets = self._offsets[one.before, one.code.address]
        return not one.leaf or (offsets[one.offset] > 1 and offsets.most_common(1)[0][1] == offsets[one.offset])

    def callers(self, one: SeenFrame) -> tuple[PythonCode, ...] | None:
        """The functions between ``before`` and ``code``, root to leaf; None if no row, or several, fit."""
        if not self._is_certain(one):
            return None
        rows = self._rows(one.before, one.offset, one.code, _MOST_CALLERS)
        return rows[0] if len(rows) == 1 else None

    def _rows(self, before: int, offset: int, code: PythonCode, most: int) -> list[tuple[PythonCode, ...]]:
        """At most two fitting rows: more are no better than none."""
        key = before, offset, code.address
        if key in self._known or not most:
            return self._known.get(key, [])
        found: list[tuple[PythonCode, ...]] = [()] if offset == 0 else []
        shim = (_SHIM_BYTES,) if code.function.rpartition(".")[2] == _INIT else ()
        for end in (offset, *(offset - more for more in shim)):
            for start, caller in self._ends.get((before, end), ()):
                if self._names_it(caller, code):
                    found += [(*row, caller) for row in self._rows(before, start, caller, most - 1)]
        self._known[key] = found[:2]
        return self._known[key]

    def _names_it(self, caller: PythonCode, code: PythonCode) -> bool:
        """Whether a function was seen to call the other one, or names it in its code (the class, for ``__init__``)."""
        if (caller.address, code.address) in self._linked:
            return True
        parts = code.function.split(".")
        return (parts[-2] if parts[-1] == _INIT and len(parts) > 1 else parts[-1]) in self._names(caller)
