"""A process's address space as it was at one moment: its mappings, and what the kernel counted until then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stepscope.model.records import I64, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingTable(Table):
    """Mappings by rising address, without overlap. Shapes: int64[mapping]. -1: not known."""

    start: I64
    end: I64
    """The first address behind it."""
    name: I64
    """Index into ``MemoryLook.names``: a file, "[heap]", "[stack]" ...; "" for memory without a name."""
    writable: I64
    """1 where the program may write there."""
    readable: I64
    """0: reserved only, as allocators do, or a guard page."""
    private: I64
    rss_bytes: I64
    anonymous_bytes: I64
    """Resident pages that are no file's."""
    huge_bytes: I64
    """Anonymous memory in huge pages (AnonHugePages)."""
    swap_bytes: I64
    eligible: I64
    """1 where the kernel would use huge pages: THPeligible; where smaps is not read, where it has used them, and under
    "always" wherever a block fits."""
    full_blocks: I64
    """Aligned blocks of a huge page's size all of whose pages are there; -1: the page map was not read."""
    part_blocks: I64
    """Those of which some are."""
    block_pages: I64
    """Small pages in full and part blocks together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLook:
    """One look at one process."""

    pid: int
    at_ns: int
    """Nanoseconds since session start."""
    page_bytes: int
    huge_page_bytes: int
    """Size of the huge pages of a page table's second level; 0: this kernel has none."""
    mode: str = ""
    """always | madvise | never of /sys/kernel/mm/transparent_hugepage/enabled; "" without it."""
    mappings: MappingTable = field(default_factory=MappingTable.empty)
    names: Sequence[str] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    """Totals of the process and of the host, by name: ``collector.memory.memory_look`` lists them."""
    wall_ns: int = 0
    """How long the look took, with its rests."""
    longest_ns: int = 0
    """The longest of its calls: an upper bound of how long anybody waited for it. 0: not known."""
    cpu_ns: int = 0
    """CPU time of whoever looked."""
