"""Fragmentation of the host's free memory, and use of each size of huge pages, from looks at memory.

Fragmentation is the kernel's own measure, computed from /proc/buddyinfo because the files that show it are in debugfs.

Source: mm/vmstat.c, __fragmentation_index and unusable_free_index; Documentation/admin-guide/sysctl/vm.rst,
"extfrag_threshold".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.report.machine.memory_map import FreeMemory, PageSizeUse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.tables.address_space import FreeZone, MemoryLook, PageSize

_USUAL_HUGE_PAGE = 2 << 20


def fragmentation_ratio(blocks: Sequence[int], order: int) -> float | None:
    """Whether a request for 2^order pages fails because of fragmentation (near 1) or for want of memory (near 0).

    None if it would not fail: a large enough block is free. 0 if nothing at all is free.
    """
    if any(blocks[order:]):
        return None
    total = sum(blocks)
    return 1.0 - (1.0 + free_pages(blocks) / (1 << order)) / total if total else 0.0


def unusable_ratio(blocks: Sequence[int], order: int) -> float:
    """Share of the free memory in blocks that are too small for 2^order pages; 1 if nothing is free."""
    pages = free_pages(blocks)
    return free_pages(blocks[:order]) / pages if pages else 1.0


def free_pages(blocks: Sequence[int]) -> int:
    """Pages in free blocks; ``blocks`` begins with those of one page."""
    return sum(count << order for order, count in enumerate(blocks))


def free_memory(look: MemoryLook) -> tuple[FreeMemory, ...]:
    """The free memory of each zone, as the kernel has them."""
    order = ((look.huge_page_bytes or _USUAL_HUGE_PAGE) // look.page_bytes).bit_length() - 1
    return tuple(_zone(zone, order, look.page_bytes) for zone in look.zones)


def _zone(zone: FreeZone, order: int, page_bytes: int) -> FreeMemory:
    pages = free_pages(zone.blocks)
    return FreeMemory(
        node=zone.node,
        zone=zone.zone,
        bytes=pages * page_bytes,
        huge_bytes=(pages - free_pages(zone.blocks[:order])) * page_bytes,
        unusable_ratio=unusable_ratio(zone.blocks, order),
        fragmentation_ratio=fragmentation_ratio(zone.blocks, order),
    )


def page_sizes(first: MemoryLook, last: MemoryLook) -> tuple[PageSizeUse, ...]:
    """Use of each size between two looks; numbers are null if there is only one, or the kernel does not count."""
    before = {one.bytes: one.counters for one in first.page_sizes}
    apart = first is not last
    return tuple(_use(one, before.get(one.bytes, {}) if apart else {}, last) for one in last.page_sizes)


def _use(one: PageSize, before: Mapping[str, int], look: MemoryLook) -> PageSizeUse:
    pages = one.counters.get("nr_anon")
    return PageSizeUse(
        bytes=one.bytes,
        mode=look.mode if one.mode == "inherit" else one.mode,
        allocated=_rise("anon_fault_alloc", before, one.counters),
        denied=_rise("anon_fault_fallback", before, one.counters),
        split=_rise("split", before, one.counters),
        split_deferred=_rise("split_deferred", before, one.counters),
        present_bytes=None if pages is None else pages * one.bytes,
    )


def _rise(name: str, before: Mapping[str, int], after: Mapping[str, int]) -> int | None:
    return max(0, after[name] - before[name]) if name in before and name in after else None
