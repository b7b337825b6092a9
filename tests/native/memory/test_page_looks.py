"""Looks at the pages of a real process: what came and what went, on this kernel and as on older ones."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from stepscope.native.memory import page_looks, page_scan
from stepscope.native.memory.page_looks import PageLooks
from stepscope.tables.errors import FormatError

HOLDS = """
import mmap, sys
def block(size):
    made = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    made.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, size, 4096):
        made[at] = 1
    return made
first = block(8 << 20)
print("up", flush=True)
for word in sys.stdin:
    if word == "more\\n":
        second = block(16 << 20)
    else:
        first.madvise(mmap.MADV_DONTNEED)
    print("done", flush=True)
"""
MIB = 1 << 20


class Holder:
    """A process that takes and gives memory as it is told."""

    def __init__(self) -> None:
        """Start it."""
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def tell(self, word: str) -> None:
        """Wait until it is done."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        self.process.stdout.readline()


@pytest.fixture(name="holder")
def _holder() -> Iterator[Holder]:
    holder = Holder()
    yield holder
    holder.process.kill()
    holder.process.communicate()


@pytest.mark.parametrize("scans", [True, False])
def test_what_came_and_what_went(holder: Holder, monkeypatch: pytest.MonkeyPatch, *, scans: bool) -> None:
    """16 MiB more, then 8 MiB of the first ones less; a scan of the page map and reading it say the same."""
    if scans and not page_scan.can_scan():
        pytest.skip("this kernel cannot scan the page map (Linux 6.7)")
    monkeypatch.setattr(page_scan, "can_scan", lambda: scans)
    pace = page_scan.PacedCalls()
    first = page_looks.look(holder.process.pid, pace)
    holder.tell("more")
    second = page_looks.look(holder.process.pid, pace)
    holder.tell("less")
    third = page_looks.look(holder.process.pid, pace)
    assert first.bytes > 8 * MIB
    assert second.bytes - second.shared_bytes(first) == pytest.approx(16 * MIB, rel=0.05)
    assert second.bytes - second.shared_bytes(third) == pytest.approx(8 * MIB, rel=0.05)


def test_a_process_of_too_much_address_space_is_refused(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pages are read one by one, a look stays short, and says so."""
    monkeypatch.setattr(page_scan, "can_scan", lambda: False)
    monkeypatch.setattr(page_looks, "MAX_PAGES", 100)
    with pytest.raises(FormatError, match=r"more than 100 pages of address space; needs Linux 6\.7"):
        page_looks.look(holder.process.pid, page_scan.PacedCalls())


def test_the_highest_moment_is_kept(holder: Holder) -> None:
    """The highest look is the one after more came, also when some went; the last is that of the end."""
    looks = PageLooks(holder.process.pid, lambda: 1, 600.0)
    deadline = time.monotonic() + 60
    while looks.base is None and time.monotonic() < deadline:
        pass
    holder.tell("more")
    while time.monotonic() < deadline:
        if looks.base is not None and looks.highest is not None and looks.highest.bytes >= looks.base.bytes + 16 * MIB:
            break
    holder.tell("less")
    looks.stop()
    assert looks.problem == ""
    assert looks.base is not None
    assert looks.highest is not None
    assert looks.last is not None
    assert looks.highest.bytes >= looks.base.bytes + 16 * MIB
    assert looks.last.bytes <= looks.highest.bytes - 8 * MIB * 0.9


def test_a_process_that_has_ended_is_a_problem(holder: Holder) -> None:
    """Without a single look there is nothing to say, but why."""
    holder.process.kill()
    holder.process.wait()
    looks = PageLooks(holder.process.pid, lambda: 1, 600.0)
    looks.stop()
    assert looks.base is None
    assert "No such file" in looks.problem or "No such process" in looks.problem
