"""Threads are told by their records in memory, and who waits for a pool's thread by what its stack refers to."""

from __future__ import annotations

import os
import platform
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stepscope.native.cpython.python_memory import Memory
from stepscope.native.formats.perf_data import Sample
from stepscope.native.formats.unwind import Walk
from stepscope.native.windows import thread_stacks
from stepscope.native.windows.thread_stacks import ThreadStack, ThreadStacks

OWN, CALLER, OTHER = (ThreadStack(at, at + 0x10000, at + 0x10000) for at in (0x100000, 0x200000, 0x300000))
TID = 7
STACKS = ThreadStacks({TID: OWN.number}, (OTHER, OWN, CALLER))
TOP = 0x108000


def waiting(*words: int, held: int, tid: int = TID) -> int:
    """For whom a sample works whose stack holds words, the first ``held`` of them in frames of its walk."""
    stack = memoryview(struct.pack(f"<{len(words)}Q", *words))
    sample = Sample(0, 1, 1, tid, 0, 0, 1, (), (), b"", (), stack)
    return STACKS.waiting(sample, Walk(addresses=(1, 2), whole=False, attached=True, pointers=(TOP, TOP + 8 * held)))


def test_addresses_on_one_other_stack_tell_who_waits() -> None:
    """Its own stack, code and numbers tell nothing."""
    assert waiting(1, CALLER.start, TOP, CALLER.end - 8, 0x7F0000000000, held=5) == CALLER.number
    assert waiting(1, TOP, CALLER.end, 2**64 - 1, held=4) == 0


def test_what_leads_to_several_threads_tells_none() -> None:
    """One of them may be of an earlier call."""
    assert waiting(CALLER.start, OTHER.start, held=2) == 0


def test_the_innermost_frame_that_refers_to_another_stack_counts() -> None:
    """Further out are the thread that made the pool's, and what earlier calls have left."""
    stack = memoryview(struct.pack("<6Q", 1, CALLER.start, CALLER.start + 8, OTHER.start, 1, OTHER.start))
    sample = Sample(0, 1, 1, TID, 0, 0, 1, (), (), b"", (), stack)
    pointers = (TOP, TOP + 8, TOP + 24, TOP + 48)
    assert STACKS.waiting(sample, Walk(addresses=(1, 2, 3, 4), whole=False, pointers=pointers)) == CALLER.number
    assert STACKS.waiting(sample, Walk(addresses=(1, 2, 3), whole=False, pointers=(TOP, TOP + 8, TOP + 48))) == 0


def test_words_outside_of_the_frames_do_not_count() -> None:
    """What lies beyond the outermost frame's pointer was left by others, or is the outermost function's own."""
    assert waiting(1, CALLER.start, held=1) == 0
    assert waiting(CALLER.start, held=100) == CALLER.number


def test_a_thread_that_is_not_known_may_wait_for_others() -> None:
    """A thread that began after the look at the process: only its own number is missing."""
    assert waiting(CALLER.start, held=1, tid=TID + 1) == CALLER.number


def test_nothing_is_known_without_stacks_or_callers() -> None:
    """Of a process that is not ours to look at, and of a leaf alone."""
    sample = Sample(0, 1, 1, TID, 0, 0, 1, (), (), b"", (), memoryview(struct.pack("<Q", CALLER.start)))
    alone = Walk(addresses=(1,), whole=False, pointers=(TOP,))
    assert STACKS.waiting(sample, alone) == 0
    assert ThreadStacks({}, ()).waiting(sample, Walk(addresses=(1, 2), whole=False, pointers=(TOP, TOP + 8))) == 0


@contextmanager
def another_thread() -> Iterator[threading.Thread]:
    """A thread that waits."""
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    try:
        yield thread
    finally:
        go_on.set()
        thread.join()


@pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="another machine or libc"
)
def test_threads_are_numbered_as_they_number_themselves() -> None:
    """Python tells what ``pthread_self()`` is; the kernel and the memory say the same from outside."""
    memory = Memory(os.getpid())
    try:
        with another_thread() as thread:
            found = thread_stacks.read(os.getpid(), memory)
            main = threading.main_thread()
            assert found.numbers[thread.native_id or 0] == thread.ident
            assert found.numbers[main.native_id or 0] == main.ident
            inside = Sample(0, 1, 1, main.native_id or 0, 0, 0, 1, (), (), b"", (), memoryview(b""))
            stack = memoryview(struct.pack("<Q", (thread.ident or 0) - 4096))
            walk = Walk(addresses=(1, 2), whole=False, pointers=(TOP, TOP + 8))
            assert found.waiting(inside._replace(stack=stack), walk) == thread.ident
    finally:
        memory.close()


def test_a_process_that_has_ended_has_no_threads() -> None:
    """Its window is decoded all the same."""
    memory = Memory(2**22 + 1)
    try:
        assert thread_stacks.read(2**22 + 1, memory).numbers == {}
    finally:
        memory.close()
