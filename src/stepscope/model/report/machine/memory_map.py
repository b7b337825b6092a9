"""The description of a process's address space: schema ``stepscope.memory/1``, and part of reports of runs."""

from __future__ import annotations

from typing import Literal

import msgspec

from stepscope.tables.structs import Struct

SCHEMA = "stepscope.memory/1"
Verdict = Literal["padded", "packed", "mixed", "none"]


class SizeClass(Struct, frozen=True, kw_only=True):
    """Anonymous mappings of about one size."""

    from_bytes: int
    to_bytes: int
    """Upper bound, exclusive; 0: no end."""
    multiple: bool
    """Flag: their length is a multiple of a huge page's; these form a separate class."""
    mappings: int
    bytes: int
    resident_bytes: int
    huge_bytes: int


class Region(Struct, frozen=True, kw_only=True):
    """A part of the address space without large holes, in cells of equal size."""

    start: int
    end: int
    cell_bytes: int
    mapped: tuple[float, ...]
    """Mapped share of each cell, 0 to 1; memory that is only reserved does not count."""
    resident: tuple[float, ...]
    huge: tuple[float, ...]
    """Share in huge pages."""
    name: str
    """Name of the mapping that holds most: a file, "[heap]"; "" for memory without a name."""
    resident_bytes: int


class Layout(Struct, frozen=True, kw_only=True):
    """The arrangement of anonymous mappings of at least a huge page's size."""

    verdict: Verdict
    """Verdict. padded: they begin on boundaries of huge pages, with holes between them. packed: they do not. mixed:
    some do. none: there are no such mappings."""
    large: int
    """Number of anonymous mappings of at least a huge page's size."""
    odd: int
    """Number of those whose length is not a multiple of it: only these need padding."""
    padded: int
    """Number of ``odd`` ones that begin on a boundary and are followed by a hole up to the next boundary."""
    hole_bytes: int
    """Bytes of all these holes."""
    tail_bytes: int
    """Bytes of padded mappings after their last whole block, which can never be in a huge page."""


class FreeMemory(Struct, frozen=True, kw_only=True):
    """Free memory of a zone of the host at the newest look."""

    node: int
    zone: str
    """Name: DMA32 | Normal | Movable ..."""
    bytes: int
    huge_bytes: int
    """Bytes in free blocks of at least a huge page's size."""
    unusable_ratio: float
    """Share in smaller blocks, 0 to 1: the kernel's unusable_index."""
    fragmentation_ratio: float | None = None
    """Reason why a huge page cannot be had: 1 fragmentation, 0 too little memory (the kernel's extfrag_index). Null: a
    block is free."""


class PageSizeUse(Struct, frozen=True, kw_only=True):
    """A size of huge pages, on the whole host, between the first look and the last."""

    bytes: int
    mode: str
    """Mode: always | madvise | never; inherit is resolved."""
    allocated: int | None = None
    """Number of pages that faults were given; null: only one look, or not counted by this kernel (before 6.10)."""
    denied: int | None = None
    """Number of faults that got a smaller size instead."""
    split: int | None = None
    """Number of pages that were split into smaller ones."""
    split_deferred: int | None = None
    """Number of pages that were no longer mapped whole, and are split when memory is short; null: not counted by this
    kernel (before 6.11)."""
    present_bytes: int | None = None
    """Anonymous memory in pages of this size at the newest look; null: not counted by this kernel (before 6.12)."""


class Translation(Struct, frozen=True, kw_only=True):
    """What translating addresses (TLB misses) can cost a process at most."""

    small_bytes: int = 0
    """Resident memory that is not in huge pages."""
    walk_ns: float = 0.0
    """The most that a miss costs with so much memory, as measured on this machine."""
    ratio: float | None = None
    """The most of the time of the steps that misses can take; null: it cannot be bounded here."""
    misses_per_step: float = 0.0
    """The most misses of the traced ops whose shapes are known; 0: no op trace."""
    known_ratio: float = 0.0
    """Share of the traced steps in these ops."""
    known_lost_ratio: float = 0.0
    """The most of the traced steps that misses take in these ops."""
    counted: bool = False
    """Flag: hardware counted the misses; ``ratio`` is then a share of the CPU time, whatever ops are known."""


class HardwareCounts(Struct, frozen=True, kw_only=True):
    """What the processor counted of the process's own code in the seconds before the newest look that has it."""

    cpu_ns: int
    """CPU time meanwhile."""
    instructions_per_cycle: float | None = None
    """Null, as in the next fields: this processor does not count it."""
    tlb_misses_per_s: float | None = None
    """Misses of loads and, where they are counted, of stores, per second of CPU time."""
    cache_misses_per_s: float | None = None
    """Misses of the last-level cache, per second of CPU time."""


class LookPoint(Struct, frozen=True, kw_only=True):
    """One look, for growth."""

    at_ns: int
    mappings: int
    resident_bytes: int
    anonymous_bytes: int
    huge_bytes: int
    page_table_bytes: int
    wall_ns: int
    """Duration of the look."""
    longest_ns: int = 0
    """Longest time that the process can have waited for it; 0 unknown."""


class MemoryMap(Struct, frozen=True, kw_only=True):
    """One process. Byte counts are of its newest look."""

    schema: str = SCHEMA
    pid: int
    command: tuple[str, ...] = ()
    kernel: str = ""
    mode: str
    """Mode of huge pages on the host: always | madvise | never; "" if it has none."""
    allowed: bool
    """Flag: false if the process was set not to use huge pages."""
    page_bytes: int
    huge_page_bytes: int
    resident_bytes: int
    anonymous_bytes: int
    swap_bytes: int
    huge_bytes: int
    """Anonymous memory in huge pages."""
    eligible_bytes: int
    """Anonymous memory in mappings for which the kernel would use huge pages."""
    wasted_bytes: int | None
    """Bytes of those that fill whole blocks but are in small pages; null: the page map could not be read."""
    unasked_bytes: int | None
    """Bytes that fill whole blocks of mappings for which the kernel would not use huge pages."""
    edge_bytes: int | None
    """Anonymous memory outside whole blocks: it can never be in a huge page."""
    sparse_bytes: int | None
    """Anonymous memory in partly filled blocks: huge pages would take more memory there."""
    page_table_bytes: int
    mappings: int
    anonymous_mappings: int
    minor_faults_per_s: float | None = None
    """Minor faults per second in the second half of the observed time; null: unknown."""
    major_faults_per_s: float | None = None
    kernel_work: dict[str, int] = msgspec.field(default_factory=dict)
    """Work of the kernel between the first look and the last, for the whole host: counters of /proc/vmstat that rose,
    those of huge pages (``thp_``) and of compaction, ``khugepaged_collapsed`` (blocks that it made huge),
    ``pressure_ns``."""
    work_ns: int = 0
    """Time between these looks; 0: there was only one."""
    free_memory: tuple[FreeMemory, ...] = ()
    """By zone of the host; empty: unknown."""
    page_sizes: tuple[PageSizeUse, ...] = ()
    """Sizes of huge pages, the smallest first; empty before Linux 6.8."""
    translation: Translation | None = None
    """Null: what a miss costs on this machine is not known."""
    hardware: HardwareCounts | None = None
    """Null: the processor has no counters, or this user may not count."""
    sizes: tuple[SizeClass, ...] = ()
    layout: Layout
    looks: tuple[LookPoint, ...] = ()
    regions: tuple[Region, ...] = ()
    """Regions that hold most, at most 12, by address."""
    hidden_bytes: int = 0
    """Resident bytes in regions that are omitted."""
