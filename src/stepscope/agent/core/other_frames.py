"""Frames of other threads: the one way to them. A frame that we hold keeps all that its function holds.

``Stacks`` hands them out for the length of a ``with``; our own frame is never among them, for it would hold the
dictionary that holds it, and with that the frames of every thread until a collection. ``variables`` reads the locals of
a frame and leaves nothing behind in it. Nothing else in the agent asks for either: tests/contract/test_frames.py.

No garbage collection begins while frames of other threads are walked: Python 3.11 would damage memory.

Python 3.11 makes the object of a frame when somebody first asks for it, by ``f_back`` or ``sys._current_frames``, and a
collection may begin in the middle of that. What a collection calls (our own record of it, a finalizer, the deletion of
a tensor) may let go of the interpreter lock. The other thread then returns from the frame, and the object stands for
memory that holds other things: ``f_back`` gave an int, a list, a dict, or the job ended by SIGSEGV
(docs/decisions/0096-frames-of-other-threads.md). Filling ``f_locals`` has the same gap. From 3.12 on collections begin
only between two bytecodes; until 3.10 frames are objects from the start. A thread's own frames are safe.
"""

from __future__ import annotations

import gc
import sys
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

NEEDED = sys.version_info[:2] == (3, 11)
COPIED = sys.version_info < (3, 13)
"""Whether ``f_locals`` is one dictionary that the frame keeps, with the values of when it was asked for."""
_OPTIMIZED = 0x1
"""CO_OPTIMIZED: locals in slots, of which ``f_locals`` is a copy."""
_ASKS = frozenset(("locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"))
"""Names in a function that may ask for the same dictionary."""
_OURS = 3
"""References to a frame's dictionary that no one else has: the frame's, our variable, the argument of the question."""


class Steady:
    """A context in which no collection begins by itself, if this Python needs that. Threads may be in it at once."""

    __slots__ = ("_collects", "_inside")

    def __init__(self) -> None:
        self._inside = 0
        self._collects = False
        """Whether the program had collections on when the first thread came in."""

    def __enter__(self) -> None:
        if not NEEDED:
            return
        self._inside += 1  # before anything that may let another thread run: else collections might stay off
        if self._inside == 1:
            self._collects = gc.isenabled()
            gc.disable()

    def __exit__(self, *_: object) -> None:
        if not NEEDED:
            return
        self._inside -= 1
        if not self._inside and self._collects:
            gc.enable()

    def after_fork(self) -> None:
        """In a forked child: the thread that was inside is not there."""
        if self._inside and self._collects:
            gc.enable()
        self._inside = 0


STEADY = Steady()


class Stacks:
    """``with Stacks() as found``: the innermost frame of each thread but the calling one, by the thread's ident.

    Empty afterwards. A frame that is taken out of it belongs into a variable of a function that ends soon.
    """

    __slots__ = ("_found",)

    def __enter__(self) -> dict[int, FrameType]:
        STEADY.__enter__()
        self._found = found = sys._current_frames()
        del found[get_ident()]
        return found

    def __exit__(self, *_: object) -> None:
        STEADY.__exit__()  # first: what is let go of now may be the job's, and end slowly
        self._found.clear()


def variables(frame: FrameType) -> list[tuple[str, Foreign]]:
    """Names and values of a function's locals; none if reading them might show, or might keep them alive.

    Before Python 3.13 the frame keeps a dictionary of them once asked. It is emptied again, so that nothing lives
    longer for it, unless another part of the program holds it too. A function that might ask itself is passed over: its
    dictionary would get new values behind its back. So is one that is traced: a trace function writes the dictionary
    back into the locals.
    """
    code = frame.f_code
    if not COPIED:
        return list(frame.f_locals.items())
    if frame.f_trace is not None or not code.co_flags & _OPTIMIZED or not _ASKS.isdisjoint(code.co_names):
        return []
    names = frame.f_locals
    found = list(names.items())
    if sys.getrefcount(names) <= _OURS:
        names.clear()
    return found


def variable(frame: FrameType, name: str) -> Optional[Foreign]:
    """The value of one local; None if there is none, or if ``variables`` does not read that frame."""
    return dict(variables(frame)).get(name)
