"""Sentences about an address space, shared by terminal and page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.model.report.remedies import HUGE_PAGES
from stepscope.tables.units import format_bytes, format_ns, format_rate, format_ratio

if TYPE_CHECKING:
    from stepscope.model.report.machine.memory_map import MemoryMap, PageSizeUse, SizeClass

_ALIGNS_ALL, _ALIGNS_MULTIPLES = (6, 7), (6, 12)
"""Kernels that align every anonymous mapping of at least a huge page: first version, and first version without. Commits
efa7df3e3bb5 (6.7) and d4148aeab412 (6.12-rc6). Stable kernels in between may have the second commit, distribution
kernels only the first, so the version proves nothing; it is named only if most mappings that need padding have it."""
_WORK = {
    "thp_fault_alloc": "huge pages allocated at faults",
    "thp_fault_fallback": "huge pages denied at faults because none was free",
    "khugepaged_collapsed": "blocks collapsed into huge pages later (khugepaged)",
    "thp_split_page": "huge pages split",
    "thp_underused_split_page": "huge pages split because most of their bytes were zero",
    "thp_deferred_split_page": "huge pages that were no longer mapped whole, to be split when memory is short",
    "compact_stall": "stalls of programs that had to compact memory (direct compaction)",
    "compact_migrate_scanned": "pages scanned for compaction",
}
_MEASURE = f"stepscope whatif --try {HUGE_PAGES} measures what huge pages would bring"
_SMALL = 0.05
"""Share of anonymous memory below which a figure is not mentioned."""


def facts(one: MemoryMap) -> list[tuple[str, list[str]]]:
    """Names and sentences of all that is known, in their order."""
    said = [
        ("huge pages", huge_pages(one)),
        ("layout", layout(one)),
        ("page faults", [faults(one)]),
        ("page tables", [format_bytes(one.page_table_bytes)]),
        ("processor", hardware(one)),
        ("TLB misses", translation(one)),
        ("swapped out", [format_bytes(one.swap_bytes)] if one.swap_bytes else []),
        ("growth", [text] if (text := growth(one)) else []),
        ("kernel work", [kernel_work(one)]),
        ("page sizes", page_sizes(one)),
        ("free memory", free_memory(one)),
    ]
    return [(title, texts) for title, texts in said if texts]


def size_range(one: SizeClass) -> str:
    """``2 MiB to 4 MiB``."""
    if not one.to_bytes:
        text = f"{format_bytes(one.from_bytes)} and more"
    elif not one.from_bytes:
        text = f"below {format_bytes(one.to_bytes)}"
    else:
        text = f"{format_bytes(one.from_bytes)} to {format_bytes(one.to_bytes)}"
    return f"{text}, whole blocks" if one.multiple else text


def huge_pages(one: MemoryMap) -> list[str]:
    """How much memory is in huge pages, how much could be, and why it is not."""
    if not one.huge_page_bytes:
        return ["this kernel has no transparent huge pages"]
    lines = [
        f"{format_bytes(one.huge_bytes)} of {format_bytes(one.anonymous_bytes)} anonymous memory "
        f"({_percent(one.huge_bytes, one.anonymous_bytes)}) is in huge pages; the kernel would use them for "
        f"{format_bytes(one.eligible_bytes)} of it (host: {one.mode or 'no setting'}"
        + (")" if one.allowed else "; disabled for this process)")
    ]
    if one.wasted_bytes is None or one.unasked_bytes is None or one.edge_bytes is None or one.sparse_bytes is None:
        lines.append("which blocks are filled is unknown: no permission to read the page map")
        return lines
    floor = _SMALL * one.anonymous_bytes
    block = format_bytes(one.huge_page_bytes)
    if one.wasted_bytes > floor:
        lines.append(
            f"{format_bytes(one.wasted_bytes)} fill whole blocks of {block} that are eligible for huge pages, but are "
            "in small pages: they were faulted in too early, or page by page"
        )
    if one.unasked_bytes > floor and one.mode == "madvise":
        lines.append(
            f"{format_bytes(one.unasked_bytes)} fill whole blocks of {block} for which no huge pages were requested: "
            "a run with --apply glibc-hugepages shows whether they would help"
        )
    if one.sparse_bytes > floor:
        lines.append(
            f"{format_bytes(one.sparse_bytes)} lie in partly filled blocks: huge pages there would take more memory"
        )
    if one.edge_bytes > floor:
        lines.append(f"{format_bytes(one.edge_bytes)} lie outside whole blocks and can never be in huge pages")
    return lines


def layout(one: MemoryMap) -> list[str]:
    """How large mappings are aligned, and whether the kernel causes it."""
    seen, block = one.layout, format_bytes(one.huge_page_bytes or 2 << 20)
    if seen.verdict == "none":
        return [f"no anonymous mapping of {block} or more"]
    head = f"{seen.large} anonymous mappings of {block} or more, {seen.odd} of them not a multiple of it"
    if seen.verdict == "packed":
        return [f"packed: {head}; none is padded to start on a boundary" if not seen.padded else f"packed: {head}"]
    holes = (
        f"{seen.padded} start on a boundary of {block} and leave a hole after them: {format_bytes(seen.hole_bytes)} of "
        f"holes in total, and {format_bytes(seen.tail_bytes)} at their ends outside whole blocks"
    )
    return [
        f"{seen.verdict}: {head}; {holes}",
        _kernel(one.kernel, block)
        if seen.verdict == "padded"
        else "most mappings that need padding have none, so the kernel is not the cause: the program requests it",
        "each mapping gains or loses at most one huge page; only a measurement shows whether that costs time here",
    ]


def _kernel(release: str, block: str) -> str:
    found = re.match(r"(\d+)\.(\d+)", release)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if _ALIGNS_ALL <= version < _ALIGNS_MULTIPLES:
        return (
            f"Linux 6.7 to 6.11 align every anonymous mapping of {block} or more this way (efa7df3e3bb5), unless "
            f"d4148aeab412 was backported; this is {release}, and the mappings show the alignment"
        )
    if version < _ALIGNS_ALL:
        return f"the program or its allocator requests it, or {release or 'this kernel'} has efa7df3e3bb5 backported"
    return f"this kernel ({release}) does not align mappings this way: the program or its allocator requests it"


def translation(one: MemoryMap) -> list[str]:
    """The most that TLB misses can cost, or why that is not known."""
    seen = one.translation
    if seen is None:
        return []
    cost = f"a miss costs at most {format_ns(round(seen.walk_ns))} with {format_bytes(seen.small_bytes)} in small pages"
    if seen.counted and seen.ratio is not None:
        return [f"they cannot explain more than {format_ratio(seen.ratio)} of the CPU time, as counted: {cost}"]
    if seen.ratio is not None:
        text = (
            f"they cannot explain more than {format_ratio(seen.ratio)} of the time of the steps: {cost}, and "
            f"{format_ratio(seen.known_ratio)} of the steps is in ops whose memory is known, where they take at most "
            f"{format_ratio(seen.known_lost_ratio)}"
        )
        return [text]
    if not seen.known_ratio:
        return [f"cannot be bounded here: {cost}, but no time is known to be in ops whose memory is known", _MEASURE]
    text = (
        f"cannot be bounded here: {cost}; in ops whose memory is known, {format_ratio(seen.known_ratio)} of the steps, "
        f"they could take {format_ratio(seen.known_lost_ratio)} of the steps, and of the rest nothing is known"
    )
    return [text, _MEASURE]


def hardware(one: MemoryMap) -> list[str]:
    """What the processor counted; nothing if it has no counters."""
    seen = one.hardware
    if seen is None:
        return []
    parts = [
        f"{value:{form}} {text}"
        for value, form, text in (
            (seen.instructions_per_cycle, ".2f", "instructions per cycle"),
            (seen.tlb_misses_per_s, ",.0f", "TLB misses"),
            (seen.cache_misses_per_s, ",.0f", "misses of the last-level cache"),
        )
        if value is not None
    ]
    return [f"{', '.join(parts)} per second of CPU time, in {format_ns(seen.cpu_ns)} of it, without the kernel"]


def faults(one: MemoryMap) -> str:
    """Page faults in steady state."""
    if one.minor_faults_per_s is None:
        return "unknown: only one snapshot, and no samples of the process"
    text = f"{format_rate(one.minor_faults_per_s)} per second" if one.minor_faults_per_s else "none"
    return f"{text}, {format_rate(one.major_faults_per_s)} from disk" if one.major_faults_per_s else text


def kernel_work(one: MemoryMap) -> str:
    """Kernel work for huge pages in the meantime, on the whole host."""
    if not one.work_ns:
        return "unknown: only one snapshot"
    done = [f"{one.kernel_work[name]:,} {text}" for name, text in _WORK.items() if one.kernel_work.get(name)]
    within = f"in {one.work_ns / 1e9:.0f} s, on the whole host"
    return f"{'; '.join(done) or 'none'} ({within})"


def page_sizes(one: MemoryMap) -> list[str]:
    """Sizes of huge pages that are in use or allowed, on the whole host."""
    used = [_page_size(size) for size in one.page_sizes if size.mode != "never" or size.allocated or size.present_bytes]
    never = [size.bytes for size in one.page_sizes if size.mode == "never"]
    names = " to ".join(dict.fromkeys(format_bytes(size) for size in (*never[:1], *never[-1:])))
    return [*used, f"{names}: never"] if never else used


def _page_size(size: PageSizeUse) -> str:
    numbers = [
        f"{count:,} {text}"
        for count, text in (
            (size.allocated, "allocated at faults"),
            (size.denied, "denied"),
            (size.split, "split"),
            (size.split_deferred, "to be split when memory is short"),
        )
        if count
    ]
    if size.present_bytes:
        numbers.insert(0, f"{format_bytes(size.present_bytes)} present")
    counted = ", ".join(numbers) or ("not used" if size.allocated is not None else "not counted")
    return f"{format_bytes(size.bytes)} ({size.mode}): {counted}"


def free_memory(one: MemoryMap) -> list[str]:
    """Free memory of the host in blocks for huge pages, and the zones that have none."""
    if not one.free_memory:
        return []
    block = format_bytes(one.huge_page_bytes or 2 << 20)
    free, huge = (sum(getattr(zone, name) for zone in one.free_memory) for name in ("bytes", "huge_bytes"))
    exhausted = [
        f"zone {zone.zone} of node {zone.node} has no free block of {block}: fragmentation index "
        f"{zone.fragmentation_ratio:.2f} (0: too little memory is free, 1: it is fragmented)"
        for zone in one.free_memory
        if zone.fragmentation_ratio is not None
    ]
    return [f"{format_bytes(free)} on the host, {_percent(huge, free)} of it in blocks of {block} or more", *exhausted]


def growth(one: MemoryMap) -> str:
    """Change of the mappings from the first snapshot to the last; "" for a single snapshot."""
    if len(one.looks) <= 1:
        return ""
    first, last = one.looks[0], one.looks[-1]
    seconds = (last.at_ns - first.at_ns) / 1e9
    return (
        f"{first.mappings} to {last.mappings} mappings, {format_bytes(first.anonymous_bytes)} to "
        f"{format_bytes(last.anonymous_bytes)} anonymous memory in {seconds:.0f} s ({len(one.looks)} snapshots)"
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"
