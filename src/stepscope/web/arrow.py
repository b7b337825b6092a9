"""Large answers as an Arrow IPC stream (https://arrow.apache.org/docs/format/Columnar.html, metadata version 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.web.operation import ARROW, Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa


def columns(values: Mapping[str, Sequence[float]]) -> Answer:
    """Columns of equal length, float64[row]."""
    import pyarrow as pa

    return _stream(pa.table({name: pa.array(column, pa.float64()) for name, column in values.items()}))


def rows(kind: type[msgspec.Struct], items: Sequence[msgspec.Struct]) -> Answer:
    """One row per struct, one column (int64 or bool) per field of ``kind``."""
    import pyarrow as pa

    types = {int: pa.int64(), bool: pa.bool_()}
    return _stream(
        pa.table(
            {
                field.name: pa.array([getattr(item, field.name) for item in items], types[field.type])
                for field in msgspec.structs.fields(kind)
            }
        )
    )


def _stream(table: pa.Table) -> Answer:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Answer(content=bytes(sink.getvalue()), media=ARROW)
