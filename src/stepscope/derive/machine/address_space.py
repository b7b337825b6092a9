"""Summaries of an address space: huge pages, sizes and layout of mappings, growth, faults.

A block is an aligned piece of the address space of a huge page's size. Only memory that fills a whole block within one
mapping can be in a huge page.

Source: Documentation/admin-guide/mm/transhuge.rst. The layouts, and the doubts about them: THP alignment in inference
(linux-mm 2025); commits efa7df3e3bb5, d4148aeab412.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.machine import free_memory, hardware_counts
from stepscope.model.report.machine.memory_map import Layout, LookPoint, MemoryMap, Region, SizeClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.machine.memory_map import Verdict
    from stepscope.model.session.session import Session
    from stepscope.tables.address_space import MappingTable, MemoryLook
    from stepscope.tables.records import Bool

USUAL_HUGE_PAGE = 2 << 20
MIN_PADDED = 4
"""Number of mappings. One in 512 lies on a boundary by chance: two are already unlikely, four are a pattern."""
PADDED_RATIO = 0.5
HOLE_BYTES = 256 << 20
"""Holes larger than this separate regions of the drawing."""
CELLS = 64
MAX_REGIONS = 12
MAX_PROCESSES = 8
_ANONYMOUS = ("", "[heap]", "[stack]")
_KEPT = frozenset(("minor_faults", "major_faults", "page_table_bytes", "huge_pages_allowed"))
"""Counters of the process itself, not of the host."""
_MIN_ROWS = 4


def of_session(session: Session) -> tuple[MemoryMap, ...]:
    """A map of each process with memory samples, the largest first; at most `MAX_PROCESSES`."""
    pids = dict.fromkeys(look.pid for look in session.memory_looks)
    commands = {worker.info.pid: worker.info.command for worker in session.workers}
    maps = []
    for pid in pids:
        looks = [look for look in session.memory_looks if look.pid == pid]
        command = commands.get(pid) or session.manifest.command
        maps.append(build(looks, command=command, kernel=session.manifest.host.kernel, faults=_rates(session, pid)))
    return tuple(sorted(maps, key=lambda one: -one.resident_bytes)[:MAX_PROCESSES])


def build(
    looks: Sequence[MemoryLook],
    *,
    command: tuple[str, ...] = (),
    kernel: str = "",
    faults: tuple[float, float] | None = None,
) -> MemoryMap:
    """The map of one process from its samples, oldest first; at least one.

    Args:
        looks: samples of the process.
        command: the command line of the process.
        kernel: the release of the running kernel.
        faults: (minor, major) faults a second; None: taken from the samples, if there are two.
    """
    first, last = looks[0], looks[-1]
    table, huge = last.mappings, last.huge_page_bytes or USUAL_HUGE_PAGE
    private = anonymous(last)
    eligible = table.eligible > 0
    elapsed = last.at_ns - first.at_ns
    if faults is None and elapsed > 0:
        faults = (_per_s(first, last, "minor_faults"), _per_s(first, last, "major_faults"))
    wasted, unasked, edge, sparse = _small_pages(last)
    regions, hidden = _regions(last)
    return MemoryMap(
        pid=last.pid,
        command=command,
        kernel=kernel,
        mode=last.mode,
        allowed=last.counters.get("huge_pages_allowed", 1) != 0,
        page_bytes=last.page_bytes,
        huge_page_bytes=last.huge_page_bytes,
        resident_bytes=int(table.rss_bytes.sum()),
        anonymous_bytes=int(table.anonymous_bytes.sum()),
        swap_bytes=int(table.swap_bytes.sum()),
        huge_bytes=int(table.huge_bytes.sum()),
        eligible_bytes=int(table.anonymous_bytes[eligible].sum()),
        wasted_bytes=wasted,
        unasked_bytes=unasked,
        edge_bytes=edge,
        sparse_bytes=sparse,
        page_table_bytes=last.counters.get("page_table_bytes", 0),
        mappings=len(table),
        anonymous_mappings=int(private.sum()),
        minor_faults_per_s=faults[0] if faults else None,
        major_faults_per_s=faults[1] if faults else None,
        kernel_work={
            name: value - first.counters[name]
            for name, value in last.counters.items()
            if name not in _KEPT and value > first.counters.get(name, value) and elapsed > 0
        },
        work_ns=elapsed,
        free_memory=free_memory.free_memory(last),
        page_sizes=free_memory.page_sizes(first, last),
        hardware=hardware_counts.build(looks),
        sizes=_sizes(table, private, huge),
        layout=layout(last),
        looks=tuple(_point(look) for look in looks),
        regions=regions,
        hidden_bytes=hidden,
    )


def anonymous(look: MemoryLook) -> Bool:
    """Which mappings are private anonymous memory that the program can use: bool[mapping]."""
    table = look.mappings
    named = np.array([name in _ANONYMOUS or name.startswith("[anon:") for name in look.names], np.bool_)
    return named[table.name] & (table.private == 1) & (table.readable == 1) if len(table) else np.zeros(0, np.bool_)


def layout(look: MemoryLook) -> Layout:
    """The layout of large anonymous mappings, read from the mappings themselves, whatever the kernel."""
    table, huge = look.mappings, look.huge_page_bytes or USUAL_HUGE_PAGE
    size = table.end - table.start
    large = anonymous(look) & (size >= huge)
    odd = large & (size % huge != 0)
    after = np.append(table.start[1:], np.iinfo(np.int64).max) if len(table) else table.start
    boundary = -(-table.end // huge) * huge
    padded = odd & (table.start % huge == 0) & (after == boundary)
    count, odds = int(padded.sum()), int(odd.sum())
    verdict: Verdict
    if not large.any():
        verdict = "none"
    elif count >= MIN_PADDED and count >= PADDED_RATIO * odds:
        verdict = "padded"
    else:
        verdict = "mixed" if count >= MIN_PADDED else "packed"
    return Layout(
        verdict=verdict,
        large=int(large.sum()),
        odd=odds,
        padded=count,
        hole_bytes=int((boundary - table.end)[padded].sum()),
        tail_bytes=int((table.end % huge)[padded].sum()),
    )


def _rates(session: Session, pid: int) -> tuple[float, float] | None:
    """(minor, major) faults a second in the second half of the samples of a process."""
    rows = session.process.take(session.process.pid == pid)
    if len(rows) < _MIN_ROWS:
        return None
    half = rows.take(slice(len(rows) // 2, None))
    seconds = (half.at_ns[-1] - half.at_ns[0]) / 1e9
    if seconds <= 0:
        return None
    minor, major = half.minor_faults[-1] - half.minor_faults[0], half.major_faults[-1] - half.major_faults[0]
    return float(minor / seconds), float(major / seconds)


def _per_s(first: MemoryLook, last: MemoryLook, name: str) -> float:
    return max(0, last.counters.get(name, 0) - first.counters.get(name, 0)) * 1e9 / (last.at_ns - first.at_ns)


def _small_pages(look: MemoryLook) -> tuple[int | None, int | None, int | None, int | None]:
    """Bytes of anonymous memory in small pages: (full blocks that the kernel would make huge, full blocks that it would
    not, outside of blocks, in partial blocks); None each if the page map was not read.
    """
    table, huge = look.mappings, look.huge_page_bytes
    known = table.full_blocks >= 0
    if not huge or not (known.any() or (table.anonymous_bytes < huge).all()):
        return None, None, None, None
    full = np.where(known, table.full_blocks * huge, 0)
    pages = np.where(known, table.block_pages * look.page_bytes, 0)
    small = np.maximum(0, full - table.huge_bytes)
    eligible = table.eligible > 0
    reachable = known | (table.anonymous_bytes < huge)
    edge = np.maximum(0, table.anonymous_bytes - pages)[reachable]
    sparse = np.maximum(0, pages - full)
    return int(small[eligible].sum()), int(small[~eligible].sum()), int(edge.sum()), int(sparse.sum())


def _sizes(table: MappingTable, private: Bool, huge: int) -> tuple[SizeClass, ...]:
    """Size classes around the size of a huge page, without empty ones."""
    size = table.end - table.start
    bounds = (0, huge >> 5, huge >> 2, huge >> 1, huge, huge << 1, huge << 2, huge << 4, 0)
    whole = size % huge == 0
    found = []
    for multiple in (False, True):
        for low, high in pairwise(bounds):
            inside = private & (whole == multiple) & (size >= low) & ((size < high) if high else True)
            if inside.any():
                found.append(
                    SizeClass(
                        from_bytes=low,
                        to_bytes=high,
                        multiple=multiple,
                        mappings=int(inside.sum()),
                        bytes=int(size[inside].sum()),
                        resident_bytes=int(table.rss_bytes[inside].sum()),
                        huge_bytes=int(table.huge_bytes[inside].sum()),
                    )
                )
    return tuple(found)


def _point(look: MemoryLook) -> LookPoint:
    table = look.mappings
    return LookPoint(
        at_ns=look.at_ns,
        mappings=len(table),
        resident_bytes=int(table.rss_bytes.sum()),
        anonymous_bytes=int(table.anonymous_bytes.sum()),
        huge_bytes=int(table.huge_bytes.sum()),
        page_table_bytes=look.counters.get("page_table_bytes", 0),
        wall_ns=look.wall_ns,
        longest_ns=look.longest_ns,
    )


def _regions(look: MemoryLook) -> tuple[tuple[Region, ...], int]:
    """The regions that hold most, by address, and the total of the others."""
    table = look.mappings.take(look.mappings.readable == 1)
    if not len(table):
        return (), 0
    cuts = np.flatnonzero(table.start[1:] - table.end[:-1] > HOLE_BYTES) + 1
    parts = [table.take(slice(a, b)) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)]
    parts.sort(key=lambda part: -int(part.rss_bytes.sum()))
    shown = sorted(parts[:MAX_REGIONS], key=lambda part: int(part.start[0]))
    hidden = sum(int(part.rss_bytes.sum()) for part in parts[MAX_REGIONS:])
    return tuple(_region(part, look) for part in shown), hidden


def _region(part: MappingTable, look: MemoryLook) -> Region:
    start, end = int(part.start[0]), int(part.end[-1])
    cell = -(-(end - start) // (CELLS * look.page_bytes)) * look.page_bytes
    count = -(-(end - start) // cell)
    sums = np.zeros((3, count))
    for row in range(len(part)):
        first, last = int(part.start[row]), int(part.end[row])
        shares = np.array([1.0, part.rss_bytes[row] / (last - first), part.huge_bytes[row] / (last - first)])
        for at in range((first - start) // cell, -(-(last - start) // cell)):
            begin = start + at * cell
            sums[:, at] += shares * (min(last, begin + cell) - max(first, begin)) / cell
    mapped, resident, huge = (tuple(np.minimum(1.0, values).round(4).tolist()) for values in sums)
    return Region(
        start=start,
        end=end,
        cell_bytes=cell,
        mapped=mapped,
        resident=resident,
        huge=huge,
        name=look.names[int(part.name[int(part.rss_bytes.argmax())])],
        resident_bytes=int(part.rss_bytes.sum()),
    )
