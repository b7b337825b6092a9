"""The thread for which a pool's thread works, found in a sample by whose stack its addresses point to.

A pool runs closures, which refer to variables of the thread that made them, which waits meanwhile: at the moment of the
sample the stack of the pool's thread holds addresses on the stack of that other thread. The innermost frame that holds
any counts, if all of its addresses lead to one other thread: further out are the thread that made the pool's, and
remains of earlier calls.

A thread is identified by its ``pthread_self()``, as in TensorFlow's profiler. The kernel knows the start of each
thread's list of robust futexes, which glibc keeps in the record that ``pthread_self()`` is the address of, at the upper
end of the thread's stack; the record begins with its own address. Source: get_robust_list(2); glibc,
sysdeps/x86_64/nptl/tls.h, ``tcbhead_t``. x86-64; nothing is known if a C library differs, or the process's memory
cannot be read.
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

    from stepscope.native.cpython.python_memory import Memory
    from stepscope.native.formats.perf_data import Sample
    from stepscope.native.formats.unwind import Walk

_GET_ROBUST_LIST = 274
"""Number of the system call, x86-64."""
_RECORD_BYTES = 1024
"""Maximum distance of the list from the record's beginning: 736 bytes in glibc 2.28 to 2.39."""
_SELF_AT = 16
"""Offset of the record's second copy of its own address."""
_ALIGNED = 64
_WORD = 8
_U64 = struct.Struct("<Q")
_MAIN = "[stack]"


class ThreadStack(NamedTuple):
    """The part of an address space that is one thread's stack."""

    start: int
    end: int
    number: int
    """Value of ``pthread_self()`` in that thread."""


class ThreadStacks:
    """The stacks of a process's threads."""

    def __init__(self, numbers: dict[int, int], stacks: Iterable[ThreadStack]) -> None:
        """Store ``numbers``: the value of ``pthread_self()``, by thread."""
        self.numbers = numbers
        ordered = sorted(stacks)
        self._starts = np.array([stack.start for stack in ordered], np.uint64)
        self._ends = np.array([stack.end for stack in ordered], np.uint64)
        self._numbers = np.array([stack.number for stack in ordered], np.int64)

    def waiting(self, sample: Sample, walk: Walk) -> int:
        """Number of the one thread whose stack holds variables that a sample's frame refers to; 0: unknown."""
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
    """The stacks of a process's current threads; none if they may not be read."""
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
    """(start, end, name) of writable mappings in the lines of /proc/PID/maps."""
    found = []
    for line in maps.splitlines():
        parts = line.split(None, 5)
        if len(parts) > 1 and parts[1].startswith("rw"):
            start, end = (int(part, 16) for part in parts[0].split("-"))
            found.append((start, end, "".join(parts[5:])))
    return found


def _number(tid: int, memory: Memory) -> int:
    """The value of ``pthread_self()`` in a thread; 0 if unknown."""
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
    """The start of a thread's list of robust futexes; 0: none, or not readable."""
    if platform.machine() != "x86_64":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    head, size = ctypes.c_uint64(), ctypes.c_size_t()
    failed = libc.syscall(_GET_ROBUST_LIST, tid, ctypes.byref(head), ctypes.byref(size))
    return 0 if failed else head.value
