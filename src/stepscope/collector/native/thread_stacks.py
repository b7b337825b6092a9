"""Whose stack an address lies on: how a sample tells for which thread a pool's thread works.

A pool runs closures, and these refer to variables of the thread that made them, which waits meanwhile: the stack of the
pool's thread holds addresses on the stack of that other thread, at the very moment of the sample. The innermost frame
that holds any counts, if all of its lead to one other thread: further out stand the thread that made the pool's, and
what earlier calls have left.

A thread is told by its ``pthread_self()``, as TensorFlow's profiler tells it. The kernel knows where each thread's list
of robust futexes begins, which glibc keeps in the record that ``pthread_self()`` is the address of, at the upper end of
the thread's stack; the record begins with its own address. Source: get_robust_list(2); glibc,
sysdeps/x86_64/nptl/tls.h, ``tcbhead_t``. x86-64; nothing is known where a C library does otherwise, or the process's
memory cannot be read.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.collector.cpython.python_memory import Memory
    from stepscope.formats.native.perf_data import Sample
    from stepscope.formats.native.unwind import Walk

_GET_ROBUST_LIST = 274
"""Number of the system call, x86-64."""
_RECORD_BYTES = 1024
"""The list begins so far behind the record's begin at most: 736 bytes in glibc 2.28 to 2.39."""
_SELF_AT = 16
"""Of the record's second copy of its own address."""
_ALIGNED = 64
_WORD = 8
_U64 = struct.Struct("<Q")
_MAIN = "[stack]"


class ThreadStack(NamedTuple):
    """The part of an address space that is one thread's stack."""

    start: int
    end: int
    number: int
    """What ``pthread_self()`` is in that thread."""


class ThreadStacks:
    """The stacks of a process's threads."""

    def __init__(self, numbers: dict[int, int], stacks: Iterable[ThreadStack]) -> None:
        """``numbers``: what ``pthread_self()`` is, by thread."""
        self.numbers = numbers
        ordered = sorted(stacks)
        self._starts = np.array([stack.start for stack in ordered], np.uint64)
        self._ends = np.array([stack.end for stack in ordered], np.uint64)
        self._numbers = np.array([stack.number for stack in ordered], np.int64)

    def waiting(self, sample: Sample, walk: Walk) -> int:
        """The one thread, by its number, on whose stack variables lie that a sample's frame refers to; 0: not known."""
        size = min(walk.pointers[-1] - walk.pointers[0], len(sample.stack)) // _WORD * _WORD if walk.pointers else 0
        if not len(self._starts) or size <= 0:
            return 0
        words = np.frombuffer(sample.stack[:size], np.uint64)
        at = np.searchsorted(self._starts, words, side="right") - 1
        others = (at >= 0) & (words < self._ends[np.maximum(at, 0)])
        others &= self._numbers[at] != self.numbers.get(sample.tid, 0)
        held = np.flatnonzero(others)
        if not len(held):
            return 0
        places = (np.array(walk.pointers, np.int64) - walk.pointers[0]) // _WORD
        end = places[np.searchsorted(places, held[0], side="right")]
        found = set(self._numbers[at[held[held < end]]].tolist())
        return found.pop() if len(found) == 1 else 0


def read(pid: int, memory: Memory) -> ThreadStacks:
    """The stacks of the threads that a process has now; none where that is not ours to know."""
    numbers: dict[int, int] = {}
    stacks: list[ThreadStack] = []
    try:
        tids = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        mapped = _writable(Path(f"/proc/{pid}/maps").read_text("utf-8", "replace"))
    except OSError:  # it has ended
        return ThreadStacks({}, ())
    for tid in tids:
        number = _number(tid, memory)
        if not number:
            continue
        numbers[tid] = number
        found = [
            (start, end)
            for start, end, name in mapped
            if (name == _MAIN if tid == pid else start <= number < end and not name)
        ]
        if found:
            start, end = found[0]
            stacks.append(ThreadStack(start, end if tid == pid else number, number))
    return ThreadStacks(numbers, stacks)


def _writable(maps: str) -> list[tuple[int, int, str]]:
    """(start, end, name) of what can be written, of the lines of /proc/PID/maps."""
    found = []
    for line in maps.splitlines():
        parts = line.split(None, 5)
        if len(parts) > 1 and parts[1].startswith("rw"):
            start, end = (int(part, 16) for part in parts[0].split("-"))
            found.append((start, end, "".join(parts[5:])))
    return found


def _number(tid: int, memory: Memory) -> int:
    """What ``pthread_self()`` is in a thread; 0 where that is not known."""
    head = _robust_list(tid)
    if not head:
        return 0
    data = memory.read(head - _RECORD_BYTES, _RECORD_BYTES)
    for offset in range(0, len(data) - _SELF_AT - _WORD + 1, _WORD):
        at = head - _RECORD_BYTES + offset
        if at % _ALIGNED == 0 and at == _word(data, offset) == _word(data, offset + _SELF_AT):
            return at
    return 0


def _word(data: bytes, offset: int) -> int:
    value: int = _U64.unpack_from(data, offset)[0]
    return value


def _robust_list(tid: int) -> int:
    """Where a thread's list of robust futexes begins; 0: none, or not ours to know."""
    if platform.machine() != "x86_64":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    head, size = ctypes.c_uint64(), ctypes.c_size_t()
    failed = libc.syscall(_GET_ROBUST_LIST, tid, ctypes.byref(head), ctypes.byref(size))
    return 0 if failed else head.value
