"""The rows of a part while they are collected, and their Parquet file."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace

from stepscope.fleet import schema
from stepscope.fleet.places import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.tables.place import Place

MOST_TEXT = 4096
"""Characters of a text that are kept: a stack of 60 frames has some 2,000."""


class Row(Struct, frozen=True, kw_only=True):
    """A row; fields as ``schema.COLUMNS``."""

    kind: schema.Kind
    name: str
    text: str = ""
    detail: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    time_ns: int | None = None
    self_ns: int | None = None
    cpu_ns: int | None = None
    number: int | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    def at(self, place: Place | None, cwd: str) -> Row:
        """The same row with a place, as the fleet names its file."""
        if place is None:
            return self
        file = shortened(place.file, cwd)
        return replace(self, file=file, line=max(0, place.line), function=place.function)


def encoded(session: str, rows: Iterable[Row]) -> bytes:
    """The file of a part. The same rows give the same bytes, and so the same name."""
    kept = sorted(rows, key=lambda row: schema.KINDS.index(row.kind))
    columns = {one.name: [_value(getattr(row, one.name)) for row in kept] for one in schema.COLUMNS[1:]}
    table = pa.table({"session": [session] * len(kept), **columns}, schema=schema.ARROW)
    stream = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata({"stepscope.fleet": str(schema.VERSION)}),
        stream,
        compression="zstd",
        compression_level=9,
        write_statistics=["kind"],
        store_schema=False,
        write_page_checksum=True,
    )
    return stream.getvalue()


def _value(value: str | float | None) -> str | float | None:
    """As it is stored: text that UTF-8 can hold, numbers that are some, and none that 64 bits cannot."""
    if isinstance(value, str):
        return value[:MOST_TEXT].encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if value is None else max(-(1 << 63), min((1 << 63) - 1, value))
