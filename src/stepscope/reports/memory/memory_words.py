"""Sentences about an address space, the same in the terminal and on the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.units import format_bytes, format_rate

if TYPE_CHECKING:
    from stepscope.model.report.memory_map import MemoryMap, SizeClass

_ALIGNS_ALL, _ALIGNS_MULTIPLES = (6, 7), (6, 12)
"""Kernels that place every anonymous mapping of a huge page's size on a boundary: from, and no more from. Commits
efa7df3e3bb5 (6.7) and d4148aeab412 (6.12-rc6). Stable kernels between may have the second, kernels of distributions the
first alone: the version alone tells nothing, and is named only where most mappings that need padding have it."""
_WORK = {
    "thp_fault_alloc": "huge pages given at faults",
    "thp_fault_fallback": "refused at faults, for want of free ones",
    "khugepaged_collapsed": "blocks made huge later (khugepaged)",
    "thp_split_page": "huge pages split",
    "compact_stall": "programs that had to compact memory themselves",
    "compact_migrate_scanned": "pages scanned to compact",
}
_SMALL = 0.05
"""Of anonymous memory: what is less is not worth a sentence."""


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
    """What is in huge pages, what could be, and why it is not."""
    if not one.huge_page_bytes:
        return ["this kernel has no transparent huge pages"]
    lines = [
        f"{format_bytes(one.huge_bytes)} of {format_bytes(one.anonymous_bytes)} anonymous memory "
        f"({_percent(one.huge_bytes, one.anonymous_bytes)}) is in huge pages; the kernel would use them for "
        f"{format_bytes(one.eligible_bytes)} of it (host: {one.mode or 'no setting'}"
        + (")" if one.allowed else "; this process was told to do without)")
    ]
    if one.wasted_bytes is None or one.unasked_bytes is None or one.edge_bytes is None or one.sparse_bytes is None:
        lines.append("which blocks are filled could not be looked at: the page map is not ours to read")
        return lines
    floor = _SMALL * one.anonymous_bytes
    block = format_bytes(one.huge_page_bytes)
    if one.wasted_bytes > floor:
        lines.append(
            f"{format_bytes(one.wasted_bytes)} fill whole blocks of {block} that the kernel would make huge, and are "
            "in small pages: they were faulted in before it could, or page by page"
        )
    if one.unasked_bytes > floor and one.mode == "madvise":
        lines.append(
            f"{format_bytes(one.unasked_bytes)} fill whole blocks of {block}, and nobody asked for huge pages there: "
            "whether they would help, a run with --apply glibc-hugepages shows"
        )
    if one.sparse_bytes > floor:
        lines.append(
            f"{format_bytes(one.sparse_bytes)} lie in blocks that are filled in part: huge pages take more memory"
        )
    if one.edge_bytes > floor:
        lines.append(f"{format_bytes(one.edge_bytes)} lie outside of whole blocks and can never be in huge pages")
    return lines


def layout(one: MemoryMap) -> list[str]:
    """How large mappings lie, and what the kernel has to do with it."""
    seen, block = one.layout, format_bytes(one.huge_page_bytes or 2 << 20)
    if seen.verdict == "none":
        return [f"no anonymous mapping of {block} or more"]
    head = f"{seen.large} anonymous mappings of {block} and more, {seen.odd} of them no multiple of it"
    if seen.verdict == "packed":
        return [f"packed: {head}; none is held apart to begin on a boundary" if not seen.padded else f"packed: {head}"]
    holes = (
        f"{seen.padded} begin on a boundary of {block} with a hole behind them, {format_bytes(seen.hole_bytes)} of "
        f"holes in all, {format_bytes(seen.tail_bytes)} at their ends outside of blocks"
    )
    return [
        f"{seen.verdict}: {head}; {holes}",
        _kernel(one.kernel, block)
        if seen.verdict == "padded"
        else "most that would need it have none, so this is no habit of the kernel's: the program asks for it",
        "at most one huge page is won or lost for each mapping: whether that costs time here, only a measurement shows",
    ]


def _kernel(release: str, block: str) -> str:
    found = re.match(r"(\d+)\.(\d+)", release)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if _ALIGNS_ALL <= version < _ALIGNS_MULTIPLES:
        return (
            f"Linux 6.7 to 6.11 place every anonymous mapping of {block} and more so (efa7df3e3bb5), unless "
            f"d4148aeab412 was taken over; this is {release}, and the mappings show it"
        )
    if version < _ALIGNS_ALL:
        return f"the program or its allocator asks for it, or {release or 'this kernel'} took efa7df3e3bb5 over"
    return f"this kernel ({release}) does not place them so: the program or its allocator asks for it"


def faults(one: MemoryMap) -> str:
    """Page faults in steady state."""
    if one.minor_faults_per_s is None:
        return "not known: one look, and no samples of the process"
    text = f"{format_rate(one.minor_faults_per_s)} a second" if one.minor_faults_per_s else "none"
    return f"{text}, {format_rate(one.major_faults_per_s)} from disk" if one.major_faults_per_s else text


def kernel_work(one: MemoryMap) -> str:
    """What the kernel did for huge pages meanwhile, on the whole host."""
    if not one.kernel_work:
        return "not known: one look only"
    done = [f"{one.kernel_work[name]:,} {text}" for name, text in _WORK.items() if one.kernel_work.get(name)]
    within = f"in {one.work_ns / 1e9:.0f} s, on the whole host"
    return f"{'; '.join(done) or 'none'} ({within})"


def growth(one: MemoryMap) -> str:
    """Mappings between the first look and the last; "" where there was one look."""
    if len(one.looks) <= 1:
        return ""
    first, last = one.looks[0], one.looks[-1]
    seconds = (last.at_ns - first.at_ns) / 1e9
    return (
        f"{first.mappings} to {last.mappings} mappings, {format_bytes(first.anonymous_bytes)} to "
        f"{format_bytes(last.anonymous_bytes)} anonymous memory in {seconds:.0f} s ({len(one.looks)} looks)"
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"
