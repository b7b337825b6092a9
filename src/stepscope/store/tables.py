"""Parquet files of numpy columns, both ways (zstd, delta-encoded integers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stepscope.store import whole_files
from stepscope.tables.layout import write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stepscope.tables.records import Table

T = TypeVar("T", bound="Table")

DICTIONARY_COLUMNS = frozenset({"name", "kind", "flags", "thread", "type", "pid", "child"})
"""Columns with few values, often repeated: a dictionary with run lengths is smaller than deltas."""
MAX_CELLS = 1 << 27
"""Values of a file, 1 GiB of numbers: records of an hour and more at the rate that the governor allows."""
MAX_TEXT_BYTES = 1 << 30
"""Texts of a column, each as often as it occurs."""
_LEVEL = 1
_FORMER_COLUMNS = frozenset({"live_bytes"})
"""Columns written by versions before 0.1 and no longer read."""


def encode(columns: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> bytes:
    """Equally long columns as the bytes of a Parquet file."""
    arrays = {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()}
    table = pa.table(arrays)
    marked = {**(metadata or {}), whole_files.MARK: "1"}
    table = table.replace_schema_metadata({k.encode(): v.encode() for k, v in marked.items()})
    delta = {
        name: "DELTA_BINARY_PACKED"
        for name, values in arrays.items()
        if pa.types.is_integer(values.type) and name not in DICTIONARY_COLUMNS
    }
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=[name for name in arrays if name in DICTIONARY_COLUMNS],
        column_encoding=delta or None,
        write_statistics=False,
        write_page_checksum=True,
    )
    return whole_files.sealed(bytes(sink.getvalue()))


def write(path: Path, columns: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write a Parquet file whole or not at all."""
    write_atomic(path, encode(columns, metadata))


def columns_of(table: Table) -> dict[str, Any]:
    """The columns of a table by name."""
    return {name: getattr(table, name) for name in table.__struct_fields__}


def read_columns(source: Path | bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """Columns (as pyarrow arrays) and metadata of a Parquet file.

    Raises:
        ValueError: the file is damaged (pyarrow's errors derive from it).
        OSError: it cannot be read.
    """
    table = read_table(source)
    metadata = {
        k.decode("utf-8", "replace"): v.decode("utf-8", "replace") for k, v in (table.schema.metadata or {}).items()
    }
    return {name: table.column(name).combine_chunks() for name in table.column_names}, metadata


def read_table(source: Path | bytes) -> pa.Table:
    """A Parquet file that is as it was written; of an earlier version, one whose pages are.

    Raises:
        ValueError: the file is damaged (pyarrow's errors derive from it).
        OSError: it cannot be read.
    """
    data = source if isinstance(source, bytes) else source.read_bytes()
    whole_files.check(data)
    reader = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    for name in _check_size(reader):
        _check_texts(data, name)
    return reader.read(use_threads=False)


def _check_size(reader: pq.ParquetFile) -> set[str]:
    """Refuse a file of too many values, which may cost it nothing. Returns columns whose texts may be too long.

    Raises:
        ValueError: it has more than ``MAX_CELLS``.
    """
    metadata, cells, large = reader.metadata, 0, set()
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            cells += column.num_values
            most = column.num_values * column.total_uncompressed_size
            if column.physical_type == "BYTE_ARRAY" and column.has_dictionary_page and most > MAX_TEXT_BYTES:
                large.add(column.path_in_schema)
    if cells > MAX_CELLS:
        raise ValueError(f"{cells} values; at most {MAX_CELLS} are read")
    return large


def _check_texts(data: bytes, name: str) -> None:
    """Refuse a column whose texts, each of which stands in a dictionary once, are too long together.

    Raises:
        ValueError: they are.
    """
    reader = pq.ParquetFile(pa.BufferReader(data), read_dictionary=[name], page_checksum_verification=True)
    size = 0
    for part in reader.read(columns=[name], use_threads=False).column(0).chunks:
        if pa.types.is_dictionary(part.type):
            uses = np.bincount(part.indices.drop_null().to_numpy(), minlength=len(part.dictionary))
            size += int(uses @ np.array([len(text.as_py() or "") for text in part.dictionary], np.int64))
    if size > MAX_TEXT_BYTES:
        raise ValueError(f"column {name} has {size} bytes of text; at most {MAX_TEXT_BYTES} are read")


def to_table(cls: type[T], parts: Sequence[Mapping[str, Any]]) -> T:
    """Parts of a table as one. A column that an older schema lacks is filled with -1 (unknown).

    Raises:
        ValueError: a column is not numeric, or has a name that no version writes in place of one that all do.
    """
    tables = []
    names = set(cls.__struct_fields__)
    for part in parts:
        missing, unknown = sorted(names - part.keys()), sorted(part.keys() - names - _FORMER_COLUMNS)
        if part and missing and unknown:  # columns are only ever added: an older file lacks some, a newer one has more
            raise ValueError(f"no column {missing[0]}, but {unknown[0]!r}")
        length = len(next(iter(part.values()))) if part else 0
        tables.append(cls(**{name: _column(part, name, length) for name in cls.__struct_fields__}))
    return cls.concat(tables)


def _column(part: Mapping[str, Any], name: str, length: int) -> Any:
    dtype = np.float64 if name.endswith("_ratio") else np.int64
    if name not in part:
        return np.full(length, -1, dtype)
    values = part[name]
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise ValueError(f"column {name} is {values.type}; expected a number")
    if values.null_count:
        values = values.fill_null(-1)
    return values.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
