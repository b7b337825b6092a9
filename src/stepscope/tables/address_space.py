"""A process's address space at one moment: its mappings, and the kernel's counters up to then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from stepscope.tables.records import I64, Table


class MappingTable(Table, frozen=True, kw_only=True):
    """Mappings by rising address, without overlap. Shapes: int64[mapping]. -1: unknown."""

    start: I64
    end: I64
    """First address after it."""
    name: I64
    """Index into ``MemoryLook.names``: a file, "[heap]", "[stack]" ...; "" for memory without a name."""
    writable: I64
    """Flag 1: the program may write there."""
    readable: I64
    """Flag 0: reserved only, as allocators do, or a guard page."""
    private: I64
    rss_bytes: I64
    anonymous_bytes: I64
    """Resident pages that do not belong to a file."""
    huge_bytes: I64
    """Anonymous memory in huge pages (AnonHugePages)."""
    swap_bytes: I64
    eligible: I64
    """Flag 1: the kernel would use huge pages: THPeligible; if smaps is not read, where it has used them, and under
    "always" wherever a block fits."""
    full_blocks: I64
    """Aligned blocks of a huge page's size with all pages present; -1: the page map was not read."""
    part_blocks: I64
    """Blocks with some pages present."""
    block_pages: I64
    """Small pages in full and part blocks together."""


class FreeZone(Struct, frozen=True, kw_only=True):
    """Free memory of a zone of the host's physical memory, as its allocator holds it."""

    node: int
    zone: str
    """Name: DMA32 | Normal | Movable ..."""
    blocks: tuple[int, ...] = ()
    """Free blocks by order: block i has 2^i pages. A larger block can be split, a smaller one cannot be joined."""


class PageSize(Struct, frozen=True, kw_only=True):
    """A size of anonymous pages that the kernel can allocate at a fault (multi-size huge pages), on the whole host."""

    bytes: int
    mode: str
    """Mode: always | inherit (the mode of ``MemoryLook``) | madvise | never."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """Totals by the kernel's names: ``native.memory.host_memory`` lists them; a missing one is unknown."""


class MemoryLook(Struct, frozen=True, kw_only=True):
    """One look at one process."""

    pid: int
    at_ns: int
    """Nanoseconds since session start."""
    page_bytes: int
    huge_page_bytes: int
    """Size of the huge pages of a page table's second level; 0: this kernel has none."""
    mode: str = ""
    """Mode: always | madvise | never of /sys/kernel/mm/transparent_hugepage/enabled; "" without it."""
    mappings: MappingTable = field(default_factory=MappingTable.empty)
    names: Sequence[str] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    """Totals of the process and of the host, by name: ``native.memory.memory_look`` lists them."""
    zones: Sequence[FreeZone] = ()
    """Free memory of the host; empty: unknown."""
    page_sizes: Sequence[PageSize] = ()
    """By size; empty before Linux 6.8."""
    hardware: Mapping[str, int] = field(default_factory=dict)
    """Hardware counters of the process over the seconds before, by name: ``native.memory.hardware_counters`` lists
    them. Empty if the processor has none."""
    wall_ns: int = 0
    """Duration of the look, including its pauses."""
    longest_ns: int = 0
    """Longest of its calls: an upper bound of how long any thread waited for it. 0: unknown."""
    cpu_ns: int = 0
    """CPU time of the looking process."""
