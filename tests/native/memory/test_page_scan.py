"""What a scan of the page map says is what smaps says, mapping by mapping, without its long calls."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from stepscope.native.memory import memory_look, page_scan
from stepscope.native.proc import smaps
from stepscope.tables.address_space import MappingTable
from stepscope.tables.errors import FormatError

BLOCK = 2 << 20
HOLDS = """
import mmap, sys
private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
small, huge, half, read = (mmap.mmap(-1, 8 << 20, flags=private) for _ in range(4))
shared = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
small.madvise(mmap.MADV_NOHUGEPAGE)
huge.madvise(mmap.MADV_HUGEPAGE)
half.madvise(mmap.MADV_NOHUGEPAGE)
read.madvise(mmap.MADV_NOHUGEPAGE)
small[:] = huge[:] = b"x" * len(small)
half[: 3 << 20] = b"x" * (3 << 20)
sum(read[at] for at in range(0, len(read), 4096))
shared[: 1 << 19] = b"x" * (1 << 19)
held = open(sys.executable, "rb")
copied = mmap.mmap(held.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
copied[:5000] = b"x" * 5000
print("up", flush=True)
sys.stdin.read()
"""
needs_scan = pytest.mark.skipif(not page_scan.can_scan(), reason="this kernel cannot scan the page map (Linux 6.7)")


@contextmanager
def holding() -> Iterator[int]:
    """A process with memory of each kind, that does nothing more; its pid."""
    process = subprocess.Popen([sys.executable, "-S", "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process.pid


def by_smaps(pid: int) -> MappingTable:
    """What smaps says."""
    return smaps.read(Path(f"/proc/{pid}/smaps").read_bytes())[0]


@needs_scan
def test_sizes_are_those_of_smaps() -> None:
    """Of small and huge pages, zero pages, shared memory, files and copied pages of files."""
    with holding() as pid:
        for _ in range(20):  # the kernel may still be filling what it reads ahead
            before, look, after = by_smaps(pid), memory_look.look(pid, 0), by_smaps(pid)
            if np.array_equal(before.rss_bytes, after.rss_bytes):
                break
    table = look.mappings
    for column in ("start", "end", "rss_bytes", "anonymous_bytes", "huge_bytes", "swap_bytes"):
        assert getattr(table, column).tolist() == getattr(after, column).tolist(), column
    assert table.rss_bytes.sum() > 19 << 20
    own = (table.anonymous_bytes > 0) & (table.anonymous_bytes < table.rss_bytes)
    assert own.any()
    if look.mode == "madvise":
        assert table.eligible.tolist() == [int(huge > 0) for huge in table.huge_bytes.tolist()]
        assert table.eligible[table.huge_bytes > 0].tolist() == after.eligible[table.huge_bytes > 0].tolist()


@needs_scan
def test_calls_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call tells of more pages than it may, and together they tell of all."""
    monkeypatch.setattr(page_scan, "CALL_PAGES", 300)
    told: list[int] = []
    real = page_scan.Scanner._call

    def call(self: page_scan.Scanner, start: int, end: int) -> object:
        behind, regions = real(self, start, end)
        told.append(int((regions["end"] - regions["start"]).sum()) // 4096)
        return behind, regions

    monkeypatch.setattr(page_scan.Scanner, "_call", call)
    with holding() as pid:
        look = memory_look.look(pid, 0)
        assert look.mappings.rss_bytes.tolist() == by_smaps(pid).rss_bytes.tolist()
    assert max(told) == 300
    assert len(told) >= look.mappings.rss_bytes.sum() // 4096 // 300
    assert look.longest_ns > 0


@needs_scan
def test_a_look_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """More memory than a look may take is told, not read."""
    monkeypatch.setattr(page_scan, "MAX_CALLS", 2)
    with pytest.raises(FormatError, match="too long"):
        memory_look.look(os.getpid(), 0)


def test_calls_are_made_at_once() -> None:
    """With a priority above everybody's, which is given back, also where the call fails; without rights as usual."""
    usual = os.sched_getscheduler(0)
    pace = page_scan.PacedCalls()
    within = pace(lambda: os.sched_getscheduler(0))
    assert within == (os.SCHED_FIFO if pace.realtime.allowed else usual)
    assert os.sched_getscheduler(0) == usual
    with pytest.raises(FileNotFoundError):
        pace(lambda: Path("/no/such/file").stat())
    assert os.sched_getscheduler(0) == usual


def test_reader_without_rights_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sleeps between calls, as often as it has used its share of a time slice, and never inside of one."""
    now = {"cpu": 0}
    slept: list[int] = []
    monkeypatch.setattr("stepscope.native.memory.page_scan.time.thread_time_ns", lambda: now["cpu"])
    monkeypatch.setattr("stepscope.native.memory.page_scan.time.sleep", lambda _: slept.append(now["cpu"]))
    pace = page_scan.PacedCalls()
    pace.realtime.allowed = False
    for _ in range(20):
        pace(lambda: now.update(cpu=now["cpu"] + 100_000))
    assert slept == [0, 500_000, 1_000_000, 1_500_000]
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_older_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their smaps is read, and not where one mapping could hold the process up."""
    monkeypatch.setattr(page_scan, "can_scan", lambda: False)
    with holding() as pid:
        look = memory_look.look(pid, 0)
        assert look.mappings.rss_bytes.tolist() == by_smaps(pid).rss_bytes.tolist()
        assert (look.mappings.full_blocks >= 3).any()
        monkeypatch.setattr(memory_look, "MAX_SMAPS_PAGES", 1000)
        with pytest.raises(FormatError, match=r"reading smaps of process \d+ could delay it"):
            memory_look.look(pid, 0)
