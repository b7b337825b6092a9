"""What is said about a process's address space: schema ``stepscope.memory/1``, and part of reports of runs."""

from __future__ import annotations

from typing import Literal

import msgspec

from stepscope.model.structs import Struct

SCHEMA = "stepscope.memory/1"
Verdict = Literal["padded", "packed", "mixed", "none"]


class SizeClass(Struct, frozen=True, kw_only=True):
    """Anonymous mappings of about one size."""

    from_bytes: int
    to_bytes: int
    """Not included; 0: no end."""
    multiple: bool
    """Those whose length is a multiple of a huge page's: a class of their own."""
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
    """Of each cell the share that is mapped, 0 to 1; memory that is only reserved is not."""
    resident: tuple[float, ...]
    huge: tuple[float, ...]
    """The share that is in huge pages."""
    name: str
    """Of the mapping that holds most: a file, "[heap]"; "" for memory without a name."""
    resident_bytes: int


class Layout(Struct, frozen=True, kw_only=True):
    """How anonymous mappings of a huge page's size and more lie beside each other."""

    verdict: Verdict
    """padded: they begin on boundaries of huge pages, with holes between them. packed: they do not. mixed: some do.
    none: there are no such mappings."""
    large: int
    """Anonymous mappings of a huge page's size and more."""
    odd: int
    """Those whose length is no multiple of it: only these need padding."""
    padded: int
    """Those of ``odd`` that begin on a boundary and are followed by a hole up to the next boundary."""
    hole_bytes: int
    """Of all these holes."""
    tail_bytes: int
    """What of padded mappings lies behind their last whole block, and can never be in a huge page."""


class LookPoint(Struct, frozen=True, kw_only=True):
    """One look, for growth."""

    at_ns: int
    mappings: int
    resident_bytes: int
    anonymous_bytes: int
    huge_bytes: int
    page_table_bytes: int
    wall_ns: int
    """How long it took."""
    longest_ns: int = 0
    """The longest that the process can have waited for it; 0 not known."""


class MemoryMap(Struct, frozen=True, kw_only=True):
    """One process. Byte counts are of its newest look."""

    schema: str = SCHEMA
    pid: int
    command: tuple[str, ...] = ()
    kernel: str = ""
    mode: str
    """always | madvise | never: what the host says of huge pages; "" where it has none."""
    allowed: bool
    """False: the process was told to do without huge pages."""
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
    """Of those, what fills whole blocks and is in small pages all the same; null: the page map could not be read."""
    unasked_bytes: int | None
    """What fills whole blocks of mappings for which the kernel would not use huge pages."""
    edge_bytes: int | None
    """Anonymous memory outside of whole blocks: it can never be in a huge page."""
    sparse_bytes: int | None
    """Anonymous memory in blocks that are filled in part: huge pages would take more memory there."""
    page_table_bytes: int
    mappings: int
    anonymous_mappings: int
    minor_faults_per_s: float | None = None
    """In the second half of what was seen; null: not known."""
    major_faults_per_s: float | None = None
    kernel_work: dict[str, int] = msgspec.field(default_factory=dict)
    """What the kernel did between the first look and the last, for the whole host: counters of /proc/vmstat,
    ``khugepaged_collapsed`` (blocks that it made huge), ``pressure_ns``; empty where there was only one look."""
    work_ns: int = 0
    """Time between these."""
    sizes: tuple[SizeClass, ...] = ()
    layout: Layout
    looks: tuple[LookPoint, ...] = ()
    regions: tuple[Region, ...] = ()
    """At most 12, those that hold most, by address."""
    hidden_bytes: int = 0
    """Resident in regions that are left out."""
