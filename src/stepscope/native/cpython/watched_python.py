"""The Python functions of each CPython loop, as seen at the moment of a sample (``bpf_attach``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.native.cpython.python_frames import RunningFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.native.cpython.bpf_attach import FrameWatch
    from stepscope.native.cpython.bpf_program import WatchedFrame
    from stepscope.native.cpython.python_memory import Codes
    from stepscope.native.formats.perf_data import Sample
    from stepscope.native.formats.python_code import PythonCode
    from stepscope.native.formats.unwind import Walk

_Told = tuple["RunningFunction | None", ...]
_NOT_KNOWN = RunningFunction("", "", 0, alone=False)
BEGINS_OR_ENDS = RunningFunction("", "[call begins or ends]", 0, alone=True)
"""Stand-in for a loop that does not yet run a function, or no longer does."""


class WatchedPython:
    """The Python functions in the stacks of one window."""

    def __init__(self, codes: Codes, watch: FrameWatch) -> None:
        """Use the rows that ``watch`` saw during the window."""
        self._codes = codes
        self._watch = watch

    def running(self, sample: Sample, walk: Walk, told: _Told) -> _Told:
        """The functions of each loop of a stack, leaf first; ``told``: those known from the stack itself."""
        row = self._watch.row(sample.tid, sample.at_ns)
        if row is None or not walk.loops:
            return told
        seen, loops = row.loops, len(walk.loops)
        told = told or (_NOT_KNOWN,) * loops
        inside = walk.loops[0].frame == 0
        if not (walk.whole or walk.attached):
            fits = len(seen) >= loops and (not inside or self._agree(seen[0], told[0]))
            return self._named(seen[:loops], told) if fits else told
        if inside and row.whole and loops == len(seen) + 1:  # the innermost loop begins or ends at this moment
            return (BEGINS_OR_ENDS, *self._named(seen, told[1:]))
        return self._named(seen, told) if row.whole and loops == len(seen) else told

    def _agree(self, frames: Sequence[WatchedFrame], told: RunningFunction | None) -> bool:
        """Whether the innermost function of a loop is the one that the stack shows."""
        run = self._run(frames)
        return run is not None and told is not None and (run.file, run.function) == (told.file, told.function)

    def _named(self, seen: Sequence[Sequence[WatchedFrame]], told: Sequence[RunningFunction | None]) -> _Told:
        return tuple(self._run(frames) or old for frames, old in zip(seen, told, strict=True))

    def _run(self, frames: Sequence[WatchedFrame]) -> RunningFunction | None:
        """The functions of one loop; None if a code object is no longer there."""
        if not frames:  # from 3.12 on the outermost frame is cleared after it has been left
            return BEGINS_OR_ENDS
        known: list[tuple[PythonCode, int]] = []
        for frame in frames:
            code = self._codes.at(frame.code)
            if code is None:
                return None
            known.append((code, code.line_in_frame(frame.at)))
        callers = tuple((code.file, code.function, line) for code, line in reversed(known[1:]))
        code, line = known[0]
        return RunningFunction(code.file, code.function, line, alone=True, callers=callers)
