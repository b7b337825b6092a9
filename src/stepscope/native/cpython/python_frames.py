"""The Python functions that CPython's loop runs, for each of its frames on a native stack.

The loop keeps the address of its next instruction in a register or at one place of its C stack frame; both are in the
sample. The address lies in a code object of the process, which is read from its memory after the window: it has file,
function and lines. The running function is thus known for the exact moment of the sample, even if Python's own stack
could not be sampled in time. CPython up to 3.10 runs each function in a separate C frame: then all are known. Later
versions run calls from Python to Python in one: then the innermost function of each C frame is known.

The compiler chooses where the loop keeps its address, which may differ from place to place in the loop. The right place
is the one that points into the code of the function's frame, which is still in memory if the function still runs; up to
3.10, to a code object in nearly all of the window's stacks. If none does, or several disagree, the function is unknown.

Known limits: a code object that was freed after the sample is not found, or another one at its address is mistaken for
it.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from stepscope.native.cpython.frame_gaps import Beds, SeenFrame
from stepscope.native.formats.python_code import PythonCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.native.cpython.python_memory import Codes
    from stepscope.native.formats.perf_data import Sample
    from stepscope.native.formats.unwind import Walk

_REGISTERS = (3, 6, 12, 13, 14, 15)
"""Registers that calls preserve, by DWARF number. Source: System V ABI AMD64, 3.2.1."""
_FRAME_BYTES = 640
"""Bytes of the loop's frame, from its caller's side: 400 to 500 in the versions seen."""
_LEARNT_FROM = 400
"""Number of loops examined to learn where the address is kept."""
_PROVEN_BY = 2000
"""Number of loops examined to prove it."""
_ALWAYS = 0.9
"""Share of the loops in which the place that keeps it points into code."""
_LEAST_LOOPS = 10
_SEED = 0.5
"""Share for places that help to find the one of the frame."""
_LEAST_SITE = 3
"""Number of loops at one place of the interpreter that prove where it keeps the address there."""
_LEAF = 1
"""Value that stands for all places in the loop itself."""
_PAGE = 4096
_WORD = 8
_U64 = struct.Struct("<Q")
_FIRST_FRAME = 32
"""Offset of a thread's outermost frame in the first of its chunks. Source: CPython, Python/pystate.c, push_chunk."""
_CHUNK = 16_384
"""Size of a chunk, in which frames are contiguous. Source: CPython, Python/pystate.c."""

Place = tuple[str, int]
"""A place: "register" and its number, or "stack" and its distance below the caller's stack pointer."""


class RunningFunction(NamedTuple):
    """A function that the loop runs."""

    file: str
    function: str
    """Name of the function; "" unknown."""
    line: int
    """Line number; 0 unknown."""
    alone: bool
    """Flag: this loop runs only this function and ``callers``; else there may be more."""
    callers: tuple[tuple[str, str, int], ...] = ()
    """(file, function, line) of other functions that this loop runs, root to leaf; line 0 unknown."""


class _Loop(NamedTuple):
    """A loop of CPython 3.11 or later."""

    site: int
    words: dict[Place, int]
    code: PythonCode | None
    """Code of the innermost function."""
    seen: SeenFrame | None
    """Position of its frame, as far as known."""


class PythonFrames:
    """The Python functions in the stacks of one window."""

    def __init__(self, codes: Codes | None, walks: Sequence[tuple[Sample, Walk]]) -> None:
        """Learn the places. ``codes``: of the process; None: nothing is known."""
        self._codes = codes
        self._places: tuple[Place, ...] = ()
        """All places in use."""
        self._beds = Beds((), lambda _: frozenset(), lambda _frame, _code: None)
        self._frames: list[Place] = []
        """Places that point to the frame of the function, from 3.11 on."""
        self._functions: dict[int, list[Place]] = {}
        """Places that point into the instructions, or up to 3.10 to the code object."""
        self._positions: dict[int, list[Place]] = {}
        """Places that point after the running instruction."""
        if codes is not None:
            self._learn(codes, walks)

    def _learn(self, codes: Codes, walks: Sequence[tuple[Sample, Walk]]) -> None:
        every = sum(len(walk.loops) for _, walk in walks) // _PROVEN_BY + 1
        loops = [(at, words) for sample, walk in walks[::every] for at, words in _words(sample, walk)]
        some = [words for _, words in loops[:: len(loops) // _LEARNT_FROM + 1]]
        if not codes.inside:
            found = [{place: code.start for place, word in words.items() if (code := codes.at(word))} for words in some]
            self._functions = {0: _often(found, _ALWAYS)}
            behind = []
            for words in some:
                code = self._code(0, words)
                if code is not None:
                    behind.append({place: word for place, word in words.items() if code.is_behind(word)})
            self._positions = {0: _often(behind, _ALWAYS)}
            self._places = (*self._functions[0], *self._positions[0])
            return
        found = [
            {place: code.address for place, word in words.items() if (code := codes.around(word))} for words in some
        ]
        self._frames = _frames(codes, some, found)
        self._positions = self._functions = _by_site(codes, self._frames, loops)
        self._places = tuple({*self._frames, *(place for places in self._positions.values() for place in places)})
        seen = (loop.seen for sample, walk in walks for loop in self._loops(sample, walk))
        self._beds = Beds((one for one in seen if one is not None), codes.names, codes.caller)

    def running(self, sample: Sample, walk: Walk) -> tuple[RunningFunction | None, ...]:
        """The functions of each loop of a stack, leaf first; None: one unknown function."""
        if self._codes is None or not self._functions:
            return ()
        if not self._codes.inside:
            found = [(words, self._code(0, words)) for _, words in _words(sample, walk, self._places)]
            return tuple(self._running(0, code, words, ()) if code is not None else None for words, code in found)
        return tuple(
            RunningFunction("", "", 0, alone=False)
            if loop.code is None
            else self._running(
                loop.site, loop.code, loop.words, self._beds.callers(loop.seen) if loop.seen is not None else None
            )
            for loop in self._loops(sample, walk)
        )

    def _loops(self, sample: Sample, walk: Walk) -> list[_Loop]:
        """The loops of a stack from 3.11 on, leaf first, with the positions of their frames."""
        made = []
        before = top = 0
        for i, (site, words) in reversed(list(enumerate(_words(sample, walk, self._places)))):
            code = self._code(site, words)
            frames = {words[place] for place in self._frames if place in words}
            at = frames.pop() if len(frames) == 1 and code is not None and code.frame_size else 0
            if at and i + 1 == len(walk.loops) and (walk.whole or walk.attached):
                top = at // _PAGE * _PAGE + _FIRST_FRAME
            seen = None
            if code is None or not at:
                top = 0
            elif top and 0 <= at - top < _CHUNK:  # otherwise it is a generator's, which is elsewhere
                seen = SeenFrame(before, at - top, code, leaf=walk.loops[i].frame == 0, frame=at)
                before = self._behind(site, code, words)
                top = at + code.frame_size if before else 0
            made.append(_Loop(site, words, code, seen))
        return made[::-1]

    def _running(
        self, site: int, code: PythonCode, words: dict[Place, int], callers: tuple[PythonCode, ...] | None
    ) -> RunningFunction:
        behind = self._behind(site, code, words)
        line = code.line(behind) if behind else 0
        further = tuple((one.file, one.function, 0) for one in callers or ())
        return RunningFunction(code.file, code.function, line, callers is not None, further)

    def _behind(self, site: int, code: PythonCode, words: dict[Place, int]) -> int:
        """The end of the running instruction; 0 if places disagree."""
        places = self._positions.get(site, ())
        found = {words[place] for place in places if place in words and code.is_behind(words[place])}
        return found.pop() if len(found) == 1 else 0

    def _code(self, site: int, words: dict[Place, int]) -> PythonCode | None:
        """The code object that all places agree on."""
        if self._codes is None:
            return None
        look = self._codes.around if self._codes.inside else self._codes.at
        found = {look(words[place]) for place in self._functions.get(site, ()) if place in words}
        return found.pop() if len(found) == 1 else None


def _words(sample: Sample, walk: Walk, places: Sequence[Place] | None = None) -> Iterator[tuple[int, dict[Place, int]]]:
    """The position of each loop of a stack, and the content of its registers and frame, or of ``places`` in them; leaf
    first.
    """
    base = walk.pointers[0] if walk.pointers else 0
    for loop in walk.loops:
        high = walk.pointers[loop.frame + 1] if loop.frame + 1 < len(walk.pointers) else 0
        if places is not None:
            some: dict[Place, int] = {}
            for place in places:
                kind, number = place
                at = high - number - base
                if kind == "register":
                    if number in loop.registers:
                        some[place] = loop.registers[number]
                elif high and walk.pointers[loop.frame] - base <= at <= len(sample.stack) - _WORD:
                    some[place] = _U64.unpack_from(sample.stack, at)[0]
            yield walk.addresses[loop.frame] if loop.frame else _LEAF, some
            continue
        words: dict[Place, int] = {("register", n): loop.registers[n] for n in _REGISTERS if n in loop.registers}
        if high:
            for at in range(max(walk.pointers[loop.frame], high - _FRAME_BYTES), high, _WORD):
                if at - base + _WORD <= len(sample.stack):
                    words["stack", high - at] = _U64.unpack_from(sample.stack, at - base)[0]
        yield walk.addresses[loop.frame] if loop.frame else _LEAF, words


def _often(loops: Sequence[dict[Place, int]], share: float) -> list[Place]:
    """The places present in at least this share of the loops, with more than one value; most frequent first."""
    values: dict[Place, Counter[int]] = defaultdict(Counter)
    for words in loops:
        for place, value in words.items():
            values[place][value] += 1
    least = max(_LEAST_LOOPS, share * len(loops))
    found = [(seen.total(), place) for place, seen in values.items() if len(seen) > 1 and seen.total() >= least]
    return [place for _, place in sorted(found, reverse=True)]


def _frames(codes: Codes, loops: Sequence[dict[Place, int]], found: Sequence[dict[Place, int]]) -> list[Place]:
    """The places that point to the frame of the running function: if it still runs, its code is in the frame, and
    another place points into that code. ``found``: the code objects that places of each loop point into.
    """
    seen: Counter[Place] = Counter()
    often = _often(found, _SEED)
    for words, inside in zip(loops, found, strict=True):
        known = {inside[place] for place in often if place in inside}
        if known:
            seen.update(place for place, word in words.items() if codes.runs(word) in known)
    most = max(seen.values(), default=0)
    return [place for place, times in seen.items() if most >= _LEAST_LOOPS and times >= _ALWAYS * most]


def _by_site(
    codes: Codes, frames: Sequence[Place], loops: Sequence[tuple[int, dict[Place, int]]]
) -> dict[int, list[Place]]:
    """The places that point after the running instruction, by position of the loop: those that point into the code of
    the function's frame. If that memory now holds another frame, hardly any place does.
    """
    right: dict[int, Counter[Place]] = defaultdict(Counter)
    for site, words in loops:
        pointers = {words[place] for place in frames if place in words}
        running = codes.runs(pointers.pop()) if len(pointers) == 1 else 0
        code = codes.at(running) if running else None
        if code is not None:
            right[site].update(place for place, word in words.items() if code.is_behind(word))
    proven = {
        site: [place for place, times in seen.items() if times >= _ALWAYS * max(seen.values())]
        for site, seen in right.items()
        if seen and max(seen.values()) >= _LEAST_SITE
    }
    usual = Counter(place for places in proven.values() for place in places).most_common(1)
    inside: dict[int, list[bool]] = defaultdict(list)
    for site, words in loops:
        if usual and site not in proven:
            word = words.get(usual[0][0], 0)
            inside[site].append(codes.around(word) is not None)
    return proven | {site: [usual[0][0]] for site, seen in inside.items() if sum(seen) >= _ALWAYS * len(seen)}
