"""Calls that return memory, of a real process, one by one."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from stepscope.native.kernel import release_calls
from stepscope.native.kernel.perf import CALLS
from stepscope.native.kernel.release_calls import ReleaseCall, ReleaseCalls

PAGE, BLOCK = mmap.PAGESIZE, 64 * mmap.PAGESIZE


@pytest.fixture
def calls() -> Iterator[ReleaseCalls]:
    """Those of this process."""
    try:
        found = ReleaseCalls(os.getpid(), CALLS)
    except OSError as error:
        pytest.skip(f"BPF: {error.strerror or error}")
    yield found
    found.close()


def block() -> mmap.mmap:
    """Memory that the kernel has given."""
    return mmap.mmap(-1, BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def seen(calls: ReleaseCalls, began_ns: int) -> list[ReleaseCall]:
    """Those of blocks of this size, since then."""
    calls.update()
    return [one for one in calls.between(began_ns, time.monotonic_ns()) if one.arguments[1] in {BLOCK, PAGE}]


@pytest.mark.parametrize("advice", [mmap.MADV_DONTNEED, mmap.MADV_WILLNEED])
def test_each_call_has_its_arguments(calls: ReleaseCalls, advice: int) -> None:
    """In their order, with the thread that made them; those before are left out."""
    block().close()
    began = time.monotonic_ns()
    mine = block()
    mine.madvise(advice, PAGE, PAGE)
    other = threading.Thread(target=mine.close)
    other.start()
    other.join()
    first, second = seen(calls, began)
    assert (first.name, first.arguments[1:], first.native) == ("madvise", (PAGE, advice), threading.get_native_id())
    assert (second.name, second.arguments[:2]) == ("munmap", (first.arguments[0] - PAGE, BLOCK))
    assert second.native not in {first.native, 0}
    assert began <= first.at_ns <= second.at_ns


def test_other_processes_are_left_out(calls: ReleaseCalls) -> None:
    """Whatever they return."""
    began = time.monotonic_ns()
    code = f"import mmap\nfor _ in range(50): mmap.mmap(-1, {BLOCK}).close()"
    subprocess.run([sys.executable, "-S", "-c", code], check=True)
    assert seen(calls, began) == []


@pytest.mark.parametrize(("at_once", "in_all"), [(100, 10**6), (10**6, 100)])
def test_too_many_are_said_to_be(
    calls: ReleaseCalls, monkeypatch: pytest.MonkeyPatch, at_once: int, in_all: int
) -> None:
    """Between two looks, which fills the ring, or in a window."""
    monkeypatch.setattr(release_calls, "_RING_ROWS", at_once)
    monkeypatch.setattr(release_calls, "MAX_CALLS", in_all)
    mine = block()
    for _ in range(60):
        mine.madvise(mmap.MADV_DONTNEED)
    calls.update()
    assert not calls.full
    for _ in range(60 if in_all == 100 else 120):
        mine.madvise(mmap.MADV_DONTNEED)
    calls.update()
    assert calls.full
