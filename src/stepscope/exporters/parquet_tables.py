"""The tables of a session as Parquet files in a folder, one for each of ``arrow_tables.SCHEMAS``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from stepscope.exporters import arrow_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stepscope.derive.view import SessionView
    from stepscope.exporters.ranges import Range
    from stepscope.tables.findings import Finding


def write(view: SessionView, folder: Path, within: Range | None, findings: Sequence[Finding]) -> dict[str, int]:
    """Write the tables into a folder; returns their numbers of rows. Findings are those of the whole session.

    Raises:
        OSError: no space.
        SessionError: the session is damaged.
    """
    files = {name: _File(folder / f"{name}.parquet", columns) for name, columns in arrow_tables.SCHEMAS.items()}
    try:
        arrow_tables.fill(files, view, within, findings)
    finally:
        for file in files.values():
            file.close()
    return {name: file.rows for name, file in files.items()}


class _File:
    """A table in the making."""

    def __init__(self, path: Path, columns: Mapping[str, pa.DataType]) -> None:
        self._schema = pa.schema(list(columns.items()))
        numbers = [name for name, kind in columns.items() if pa.types.is_integer(kind)]
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            compression="zstd",
            use_dictionary=[name for name, kind in columns.items() if pa.types.is_string(kind)],
            column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        )
        self._waiting: list[pa.Table] = []
        self.rows = 0

    def add(self, count: int, columns: Mapping[str, pa.Array]) -> None:
        """Rows; a column that is not given is null."""
        self._waiting.append(arrow_tables.rows_of(self._schema, count, columns))
        self.rows += count
        if sum(len(table) for table in self._waiting) >= arrow_tables.ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=arrow_tables.ROWS)
            self._waiting.clear()

    def close(self) -> None:
        """Write what waits, and the file's end."""
        try:
            self._flush()
        finally:
            self._writer.close()
