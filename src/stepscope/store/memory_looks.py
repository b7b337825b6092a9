"""A look at an address space as one Parquet file: its mappings are the rows, the rest is in the file's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.store import tables
from stepscope.tables import layout, nesting
from stepscope.tables.address_space import FreeZone, MappingTable, MemoryLook, PageSize

if TYPE_CHECKING:
    from pathlib import Path

_KEY = "look"


class LookHead(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a look other than its mappings; as in ``tables.address_space.MemoryLook``."""

    pid: int
    at_ns: int
    page_bytes: int
    huge_page_bytes: int
    mode: str = ""
    names: tuple[str, ...] = ()
    counters: dict[str, int] = {}
    zones: tuple[FreeZone, ...] = ()
    page_sizes: tuple[PageSize, ...] = ()
    hardware: dict[str, int] = {}
    wall_ns: int = 0
    longest_ns: int = 0
    cpu_ns: int = 0


def write(session: Path, name: str, look: MemoryLook) -> None:
    """Store a look in the session directory ``session``; ``name`` (like "4711-0001") distinguishes it from the others.

    Raises:
        OSError: no space, or no rights.
    """
    path = session / layout.MEMORY / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    layout.write_atomic(path, encode(look))


def encode(look: MemoryLook) -> bytes:
    """The file's bytes."""
    head = LookHead(
        pid=look.pid,
        at_ns=look.at_ns,
        page_bytes=look.page_bytes,
        huge_page_bytes=look.huge_page_bytes,
        mode=look.mode,
        names=tuple(look.names),
        counters=dict(look.counters),
        zones=tuple(look.zones),
        page_sizes=tuple(look.page_sizes),
        hardware=dict(look.hardware),
        wall_ns=look.wall_ns,
        longest_ns=look.longest_ns,
        cpu_ns=look.cpu_ns,
    )
    return tables.encode(tables.columns_of(look.mappings), {_KEY: msgspec.json.encode(head).decode()})


def decode(data: bytes) -> MemoryLook:
    """The inverse of ``encode``.

    Raises:
        ValueError: it is damaged, or not a look.
    """
    columns, metadata = tables.read_columns(data)
    try:
        with nesting.bounded():
            head = msgspec.json.decode(metadata.get(_KEY, ""), type=LookHead)
    except msgspec.DecodeError as error:
        raise ValueError(f"its metadata {_KEY!r} is missing or damaged: {error}") from error
    if head.page_bytes <= 0 or head.huge_page_bytes < 0 or head.huge_page_bytes % head.page_bytes:
        raise ValueError(f"pages of {head.page_bytes} and {head.huge_page_bytes} bytes")
    if any(count < 0 for zone in head.zones for count in zone.blocks) or any(one.bytes <= 0 for one in head.page_sizes):
        raise ValueError("a zone's free blocks, or a size of pages, are negative")
    if any(count < 0 for count in head.hardware.values()):
        raise ValueError("a hardware counter is negative")
    table = tables.to_table(MappingTable, [columns])
    if len(table) and not (table.name.min() >= 0 and table.name.max() < len(head.names)):
        raise ValueError(f"a mapping's name is none of the {len(head.names)} that it has")
    if (table.start < 0).any() or (table.end <= table.start).any() or (table.start[1:] < table.end[:-1]).any():
        raise ValueError("its mappings are not in the order of addresses")
    return MemoryLook(mappings=table, **{f: getattr(head, f) for f in head.__struct_fields__})
