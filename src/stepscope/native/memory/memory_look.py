"""Examines the address space of a process from outside: its mappings, the page map, and the kernel's counters.

Threads that map or unmap memory wait while these are read, so they are read in short parts (``page_scan``). Linux
before 6.7 reports memory in huge pages only through smaps, which counts a whole mapping at once, 0.08 us for each small
page: a process with a mapping so large that this could take long is not examined there.

Source: proc_pid_maps(5), proc_pid_smaps(5), proc_pid_stat(5), proc_pid_status(5),
Documentation/admin-guide/mm/transhuge.rst.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.native.memory import host_memory, page_scan
from stepscope.native.proc import pagemap, smaps
from stepscope.tables.address_space import MemoryLook
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from stepscope.tables.address_space import MappingTable

THP = Path("/sys/kernel/mm/transparent_hugepage")
VMSTAT = ("thp_", "compact_")
"""Beginnings of the names of the host's counters that are kept: each kernel has some that the one before had not."""
MAX_PAGES = 8 << 20
"""Maximum pages of the page map in one look: 64 MiB of it, 32 GiB of memory."""
MAX_SMAPS_PAGES = 65_536
"""Maximum resident pages of one mapping: smaps counts them in 5 ms."""
_PAGEMAP_PART = 1 << 20
_MINFLT, _MAJFLT = 7, 9
"""Positions in /proc/PID/stat after the command's closing bracket."""


def look(pid: int, origin_ns: int) -> MemoryLook:
    """Examine a process now; ``at_ns`` counts from ``origin_ns``.

    Raises:
        OSError: it has gone, or may not be examined.
        FormatError: this kernel's output has an unknown format, or a look could block the process.
    """
    wall, cpu = time.monotonic_ns(), time.thread_time_ns()
    pace = page_scan.PacedCalls()
    table, names = smaps.read(page_scan.read(f"/proc/{pid}/maps", pace))
    huge = max(0, _number(THP / "hpage_pmd_size"))
    mode = _text(THP / "enabled").partition("[")[2].partition("]")[0]
    counters = _counters(pid)
    if not len(table):
        pass
    elif page_scan.can_scan():
        always = mode == "always" and counters.get("huge_pages_allowed", 1) != 0
        with _page_map(pid) as fd:
            table = page_scan.with_pages(page_scan.Scanner(fd, pace), table, names, huge=huge, always=always)
    else:
        table, names = _by_smaps(pid, table, huge, pace)
    return MemoryLook(
        pid=pid,
        at_ns=wall - origin_ns,
        page_bytes=mmap.PAGESIZE,
        huge_page_bytes=huge,
        mode=mode,
        mappings=table,
        names=names,
        counters=counters,
        zones=host_memory.zones(),
        page_sizes=host_memory.page_sizes(),
        wall_ns=time.monotonic_ns() - wall,
        longest_ns=pace.longest_ns,
        cpu_ns=time.thread_time_ns() - cpu,
    )


@contextmanager
def _page_map(pid: int) -> Iterator[int]:
    fd = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _by_smaps(pid: int, table: MappingTable, huge: int, pace: page_scan.PacedCalls) -> tuple[MappingTable, list[str]]:
    """Mappings and names from smaps.

    Raises:
        FormatError: one of them is so large that smaps could block the process.
    """
    large = np.flatnonzero(table.end - table.start > MAX_SMAPS_PAGES * mmap.PAGESIZE)
    with _page_map(pid) as fd:
        for row in large:
            first, last = int(table.start[row]) // mmap.PAGESIZE, int(table.end[row]) // mmap.PAGESIZE
            if last - first > MAX_PAGES or _blocks(fd, first, last - first, 1).pages > MAX_SMAPS_PAGES:
                raise FormatError(f"reading smaps of process {pid} could delay it by more than 5 ms; needs Linux 6.7")
    table, names = smaps.read(page_scan.read(f"/proc/{pid}/smaps", pace))
    return (_with_blocks(pid, table, huge) if huge else table), names


def _with_blocks(pid: int, table: MappingTable, huge: int) -> MappingTable:
    """Add the counts of blocks to mappings that hold at least a huge page; unknown if the page map is unreadable."""
    full, part, pages = table.full_blocks.copy(), table.part_blocks.copy(), table.block_pages.copy()
    first, last = -(-table.start // huge) * huge, table.end // huge * huge
    wanted = np.flatnonzero((table.anonymous_bytes >= huge) & (last > first) & (table.private == 1))
    left = MAX_PAGES
    try:
        fd = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return table
    try:
        for row in wanted[np.argsort(-table.rss_bytes[wanted], kind="stable")]:
            count = int(last[row] - first[row]) // mmap.PAGESIZE
            left -= count
            if left < 0:
                break
            blocks = _blocks(fd, int(first[row]) // mmap.PAGESIZE, count, huge // mmap.PAGESIZE)
            full[row], part[row], pages[row] = blocks
    except OSError:  # it has ended in the meantime
        return table
    finally:
        os.close(fd)
    return replace(table, full_blocks=full, part_blocks=part, block_pages=pages)


def _blocks(fd: int, page: int, count: int, per_block: int) -> pagemap.Blocks:
    total = pagemap.Blocks(0, 0, 0)
    step = _PAGEMAP_PART // per_block * per_block // pagemap.ENTRY_BYTES
    for at in range(page, page + count, step):
        size = min(step, page + count - at) * pagemap.ENTRY_BYTES
        found = pagemap.count(os.pread(fd, size, at * pagemap.ENTRY_BYTES), per_block)
        total = pagemap.Blocks(*(a + b for a, b in zip(total, found, strict=True)))
    return total


def _counters(pid: int) -> dict[str, int]:
    """Totals by name.

    For the process ``minor_faults``, ``major_faults``, ``page_table_bytes``, ``huge_pages_allowed`` (0: it was set not
    to use them); for the host those whose names begin as in ``VMSTAT``, ``khugepaged_collapsed``, ``pressure_ns``.
    """
    found: dict[str, int] = {}
    stat = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    if len(stat) > _MAJFLT:
        found["minor_faults"], found["major_faults"] = int(stat[_MINFLT]), int(stat[_MAJFLT])
    for line in _text(Path(f"/proc/{pid}/status")).splitlines():
        key, _, value = line.partition(":")
        if key == "VmPTE":
            found["page_table_bytes"] = int(value.split()[0]) << 10
        elif key == "THP_enabled":
            found["huge_pages_allowed"] = int(value)
    for line in _text(Path("/proc/vmstat")).splitlines():
        key, _, value = line.partition(" ")
        if key.startswith(VMSTAT) and value.isdigit():
            found[key] = int(value)
    collapsed = _number(THP / "khugepaged" / "pages_collapsed")
    if collapsed >= 0:
        found["khugepaged_collapsed"] = collapsed
    _, some, total = _text(Path("/proc/pressure/memory")).partition("\n")[0].partition("total=")
    if some and total.isdigit():
        found["pressure_ns"] = int(total) * 1000
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""


def _number(path: Path) -> int:
    text = _text(path).strip()
    return int(text) if text.isdigit() else -1
