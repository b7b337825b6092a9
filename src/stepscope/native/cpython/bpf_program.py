"""BPF programs that select a process's samples, and follow CPython's frames at each (``bpf_attach``); their output.

Source: CPython, Include/internal/pycore_frame.h, pycore_interp.h, pycore_runtime.h, Include/cpython/pystate.h, and up
to 3.10 Include/cpython/frameobject.h; bpf-helpers(7).
"""

from __future__ import annotations

import mmap
import platform
import struct
from typing import NamedTuple

from msgspec import Struct

from stepscope.native.kernel.bpf import (
    ADD,
    ADD_REGISTER,
    ALWAYS,
    COPY,
    EXIT,
    IF_EQUAL,
    IF_LESS,
    IF_OTHER,
    IF_SAME,
    LOAD,
    LOAD_32,
    MOVE,
    MULTIPLY_REGISTER,
    SHIFT,
    SHIFT_DOWN,
    STORE,
    TOP,
    WHO_AT,
    Assembler,
    only,
)

MAX_FRAMES = 160
"""Maximum number of frames in a row: outer ones are then missing."""
MAX_THREADS = 256
"""Maximum number of threads searched for the sampled one, newest first."""
_HEAD, _FRAME, _U64 = struct.Struct("<4Q"), struct.Struct("<4Q"), struct.Struct("<Q")
ON_C_STACK = 3
"""Owner value of a frame that stands for a loop. Source: FRAME_OWNED_BY_CSTACK."""
_STATE, _ROW, _AT, _COUNT = 6, 7, 8, 9
"""Registers that calls preserve."""
_WORD = -16
"""Place of a word on the program's stack, below ``WHO_AT``; copies of frames are below."""
_NOW, _READ_USER, _RESERVE, _SUBMIT = 5, 112, 131, 132
_NOBODY_IS_WOKEN = 1


BEHIND, EACH = -1, -2
"""Division of frames among loops. BEHIND: after the outermost frame of a loop is one of the loop itself, on C's stack.
EACH: every frame has its own loop."""


class InterpreterOffsets(Struct, frozen=True, kw_only=True):
    """Offsets of fields. Bytes."""

    interpreter: int
    """Offset of the main interpreter in the runtime."""
    threads: int
    """Offset of an interpreter's first thread state."""
    next_thread: int
    native_id: tuple[int, ...]
    """Offset of the thread's number in a thread state; through a pointer if there are two."""
    frame: tuple[int, ...]
    """Offset of the innermost frame in a thread state; through a pointer if there are two."""
    code: int
    """Offset of the code object in a frame."""
    previous: int
    at: int
    """Offset of the running instruction: its address, up to 3.10 its number."""
    entry: int
    """Offset of the mark byte that is set in the outermost frame of a loop; or ``BEHIND`` or ``EACH``."""
    owner: int = 0
    """Offset of the mark byte that says whose memory the frame is in."""
    head: int = 72
    """Size of the needed part of a frame. The last 8 bytes are its marks (none up to 3.10), with its stack's size
    first."""


LAYOUTS = {
    (3, 10): InterpreterOffsets(
        interpreter=40,
        threads=8,
        next_thread=8,
        native_id=(176,),
        frame=(24,),
        code=32,
        previous=24,
        at=96,
        entry=EACH,
        head=104,
    ),
    (3, 11): InterpreterOffsets(
        interpreter=48,
        threads=16,
        next_thread=8,
        native_id=(160,),
        frame=(56, 8),
        code=32,
        previous=48,
        at=56,
        entry=4,
        owner=5,
    ),
    (3, 12): InterpreterOffsets(
        interpreter=48,
        threads=72,
        next_thread=8,
        native_id=(144,),
        frame=(56, 0),
        code=0,
        previous=8,
        at=56,
        entry=BEHIND,
        owner=6,
    ),
    (3, 13): InterpreterOffsets(
        interpreter=640,
        threads=7344,
        next_thread=8,
        native_id=(160,),
        frame=(72,),
        code=0,
        previous=8,
        at=56,
        entry=BEHIND,
        owner=6,
    ),
}
"""Layouts by version, of 3.10.13, 3.11.7, 3.12.1 and 3.13.0. ``layout_check`` checks whether a process matches."""


class WatchedFrame(NamedTuple):
    """A Python frame."""

    code: int
    """Address of its code object."""
    at: int
    """Running instruction: its address; up to 3.10 its number, less than 0 before the first."""


class ThreadFrames(NamedTuple):
    """The Python frames of a thread at a moment, grouped by the interpreter loops that run them, both leaf first."""

    at_ns: int
    loops: tuple[tuple[WatchedFrame, ...], ...]
    whole: bool
    """Flag: the outermost frame is included."""


_ADDRESS_AT = {"x86_64": 176, "aarch64": 280}
"""Offset in ``bpf_perf_event_data`` of the address that an event concerns, behind registers and period."""
_SPREAD = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: the upper bits of its products are as good as random (Knuth, 6.4)."""


def some_pages(code: Assembler, one_in: int) -> None:
    """Jump to "other" unless the address of the event is in one of the chosen pages: a page is chosen or not whenever
    it is touched. ``one_in``: a power of two, 1 for all. Must come first: it reads the program's argument.
    """
    if one_in == 1:
        return
    code.add(LOAD, 2, 1, _ADDRESS_AT[platform.machine()])
    code.add(SHIFT_DOWN, 2, value=mmap.PAGESIZE.bit_length() - 1)
    code.number(3, _SPREAD)
    code.add(MULTIPLY_REGISTER, 2, 3)
    code.add(SHIFT_DOWN, 2, value=65 - one_in.bit_length())
    code.jump(IF_OTHER, 2, "other")


def samples_of(pid: int, one_page_in: int = 1) -> bytes:
    """The instructions of a program that passes only the samples of one process, in one of so many pages."""
    code = Assembler()
    some_pages(code, one_page_in)
    only(code, pid)
    _end(code)
    return code.assembled()


def program(layout: InterpreterOffsets, runtime: int, ring: int, pid: int, one_page_in: int = 1) -> bytes:
    """The instructions of a program that also follows frames. ``runtime``: the address of the process's _PyRuntime;
    ``ring``: descriptor of the output ring; ``one_page_in``: see ``some_pages``.
    """
    code = Assembler()
    some_pages(code, one_page_in)
    only(code, pid)
    _find_thread(code, layout, runtime)
    code.map(1, ring)
    code.add(MOVE, 2, value=_HEAD.size + MAX_FRAMES * _FRAME.size)
    code.add(MOVE, 3, value=0)
    code.call(_RESERVE)
    code.jump(IF_EQUAL, 0, "leave")  # the ring is full
    code.add(COPY, _ROW, 0)
    code.call(_NOW)
    code.add(STORE, _ROW, 0, 0)
    code.add(LOAD_32, 1, TOP, WHO_AT)
    code.add(STORE, _ROW, 1, 8)
    _follow_frames(code, layout)
    code.add(STORE, _ROW, _COUNT, 16)
    code.add(STORE, _ROW, _AT, 24)
    code.add(COPY, 1, _ROW)
    code.add(MOVE, 2, value=_NOBODY_IS_WOKEN)
    code.call(_SUBMIT)
    _end(code)
    return code.assembled()


def _end(code: Assembler) -> None:
    code.label("leave")
    code.add(MOVE, 0, value=1)  # the sample passes
    code.add(EXIT)
    code.label("other")
    code.add(MOVE, 0)  # it does not
    code.add(EXIT)


def _find_thread(code: Assembler, layout: InterpreterOffsets, runtime: int) -> None:
    """Put the thread's innermost frame into ``_AT``, or leave. Threads of native code get a state for each call of
    Python, with the newest first.
    """
    code.number(_AT, runtime)
    for offset in (layout.interpreter, layout.threads):
        _follow(code, offset, "leave")
    code.add(MOVE, _COUNT)
    code.label("thread")
    code.jump(IF_EQUAL, _AT, "leave")
    code.add(COPY, _STATE, _AT)
    *pointers, number = layout.native_id
    for offset in pointers:
        _follow(code, offset, "another")
    _read(code, _WORD, _U64.size, number)
    code.jump(IF_OTHER, 0, "another")
    code.add(LOAD_32, 1, TOP, _WORD)
    code.add(LOAD_32, 2, TOP, WHO_AT)
    code.jump(IF_SAME, 1, "found", by=2)
    code.label("another")
    code.add(COPY, _AT, _STATE)
    _follow(code, layout.next_thread, "leave")
    code.add(ADD, _COUNT, value=1)
    code.jump(IF_LESS, _COUNT, "thread", MAX_THREADS)
    code.jump(ALWAYS, 0, "leave")
    code.label("found")
    code.add(COPY, _AT, _STATE)
    for offset in layout.frame:
        _follow(code, offset, "leave")


def _follow(code: Assembler, offset: int, otherwise: str) -> None:
    """Follow the pointer at an offset from ``_AT``, into ``_AT``."""
    _read(code, _WORD, _U64.size, offset)
    code.jump(IF_OTHER, 0, otherwise)
    code.add(LOAD, _AT, TOP, _WORD)


def _follow_frames(code: Assembler, layout: InterpreterOffsets) -> None:
    """Output frame by frame, until there is none; ``_AT`` is the one that could not be written, or 0."""
    copied = _WORD - layout.head
    code.add(MOVE, _COUNT)
    code.label("next")
    code.jump(IF_EQUAL, _AT, "done")
    _read(code, copied, layout.head, 0)
    code.jump(IF_OTHER, 0, "done")
    code.add(COPY, 1, _COUNT)
    code.add(SHIFT, 1, value=_FRAME.size.bit_length() - 1)
    code.add(COPY, 2, _ROW)
    code.add(ADD_REGISTER, 2, 1)
    code.add(STORE, 2, _AT, _HEAD.size)
    for place, offset in enumerate((layout.code, layout.at, layout.head - _U64.size), 1):
        code.add(LOAD, 3, TOP, copied + offset)
        code.add(STORE, 2, 3, _HEAD.size + _U64.size * place)
    code.add(LOAD, _AT, TOP, copied + layout.previous)
    code.add(ADD, _COUNT, value=1)
    code.jump(IF_LESS, _COUNT, "next", MAX_FRAMES)
    code.label("done")


def _read(code: Assembler, to: int, size: int, offset: int) -> None:
    """Copy the process's memory from ``_AT`` plus ``offset`` to the program's stack; register 0: it failed."""
    code.add(COPY, 1, TOP)
    code.add(ADD, 1, value=to)
    code.add(MOVE, 2, value=size)
    code.add(COPY, 3, _AT)
    code.add(ADD, 3, value=offset)
    code.call(_READ_USER)


def rows_of(layout: InterpreterOffsets, told: bytes) -> tuple[int, ThreadFrames]:
    """(thread, row) of the program's output."""
    at_ns, tid, count, rest = _HEAD.unpack_from(told)
    loops: list[tuple[WatchedFrame, ...]] = []
    loop: list[WatchedFrame] = []
    for place in range(min(count, MAX_FRAMES)):
        _, code, at, marks = _FRAME.unpack_from(told, _HEAD.size + place * _FRAME.size)
        if layout.entry == EACH:
            loops.append((WatchedFrame(code, number_of(at)),))
            continue
        owner = marks >> 8 * layout.owner & 0xFF
        own = layout.entry == BEHIND and owner == ON_C_STACK
        if not own:
            loop.append(WatchedFrame(code, at))
        if own or (layout.entry >= 0 and marks >> 8 * layout.entry & 0xFF):
            loops.append(tuple(loop))
            loop = []
    whole = rest == 0 and not loop
    return int(tid), ThreadFrames(at_ns, tuple(loops), whole)


def number_of(word: int) -> int:
    """The number of an instruction: the lower half, signed."""
    return (word & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)
