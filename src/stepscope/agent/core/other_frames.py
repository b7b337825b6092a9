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

import ctypes
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
_FRAME = 24 if sys.version_info >= (3, 11) else 0
"""Where a frame object points to what it stands for, in bytes from its start; 0: it is that itself.
Source: struct _frame in CPython's Include/internal/pycore_frame.h (3.11, 3.12)."""
_WORDS = 12
"""Words of that in which the pointer to its dictionary is looked for."""
_BYTES = 56
"""Bytes of the object in which the flag is looked for."""
_USED = 2
"""The word of a dictionary that counts its entries. Source: PyDictObject in Include/cpython/dictobject.h."""
_Dictionary = ctypes.POINTER(ctypes.c_ssize_t)
_Frame = ctypes.POINTER(_Dictionary) if _FRAME else _Dictionary * _WORDS


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


def _learned() -> Optional[tuple[int, int]]:
    """The word of a frame that points to its dictionary, and the byte of its object that says since Python 3.11 that
    the dictionary is to be written back, 0 before; None if they cannot be seen.
    """
    if not COPIED or sys.implementation.name != "cpython":
        return None
    frame = sys._getframe()
    words = _Frame.from_address(id(frame) + _FRAME)
    raw = (ctypes.c_byte * _BYTES).from_address(id(frame))
    empty, before = [not words[i] for i in range(_WORDS)], list(raw)
    place = id(frame.f_locals)  # in no variable: those lie in the words too
    after = list(raw)
    found = [i for i in range(_WORDS) if empty[i] and ctypes.cast(words[i], ctypes.c_void_p).value == place]
    flags = [i for i in range(_FRAME, _BYTES) if (before[i], after[i]) == (0, 1)] if _FRAME else [0]
    frame.f_locals.clear()
    del frame  # our own: it would hold itself, and all that called us
    return (found[0], flags[0]) if len(found) == len(flags) == 1 else None


_PLACES = _learned()


def variables(frame: FrameType) -> list[tuple[str, Foreign]]:
    """Names and values of a function's locals; none if reading them might show, or might keep them alive.

    Before Python 3.13 the frame keeps a dictionary of them once asked. It is emptied again, so that nothing lives
    longer for it. Others may need what is in it: the program that called ``locals``, and Python itself, which writes it
    back into the locals after each call of a function for ``sys.settrace`` or ``sys.setprofile``: always until 3.10,
    if somebody has asked for it meanwhile since 3.11. So a frame whose dictionary is filled, or is to be written back,
    is passed over, and one that we asked for is not to be written back. From the question on, nothing is called:
    another thread could run there.
    """
    if not COPIED:
        return list(frame.f_locals.items())
    if _PLACES is None or not frame.f_code.co_flags & _OPTIMIZED:
        return []
    word, byte = _PLACES
    words = _Frame.from_address(id(frame) + _FRAME)
    written_back = ctypes.c_byte.from_address(id(frame) + byte)
    names = words[word]
    if (names and names[_USED]) or (byte and written_back.value):
        return []
    known = frame.f_locals
    found = {**known}
    if byte:
        written_back.value = 0
    known.clear()
    return list(found.items())


def variable(frame: FrameType, name: str) -> Optional[Foreign]:
    """The value of one local; None if there is none, or if ``variables`` does not read that frame."""
    return dict(variables(frame)).get(name)
