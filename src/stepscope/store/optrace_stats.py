"""Stats of op traces in Parquet: a row group is a piece of one stat, so that one is read without the others.

A row group costs some 400 bytes before it holds a value, so stats with few values share the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from stepscope.tables.errors import SessionError
from stepscope.tables.optrace_stats import StatColumn, joined, no_stat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from stepscope.tables.records import I64

_SCHEMA = pa.schema([("row", pa.int64()), ("value", pa.int64()), ("text", pa.dictionary(pa.int32(), pa.string()))])
_FULL = 1 << 16
"""Values collected before they become a row group."""
_FEW = 64
"""Number of values below which a stat shares a row group."""
_Kind = Literal["int", "float", "text"]


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """A piece of a stat, and its position."""

    name: str
    kind: _Kind
    group: int = -1
    """Row group; -1, in schema 1: the one at the piece's own position."""
    first: int = 0
    count: int = -1
    """Number of rows of the group; -1: all."""


class StatWriter:
    """Writes columns, or pieces of them, in any order; small pieces of a name are combined."""

    def __init__(self, path: Path) -> None:
        """Make the file."""
        self._writer = pq.ParquetWriter(
            path,
            _SCHEMA,
            compression="zstd",
            compression_level=1,
            use_dictionary=["text"],
            column_encoding={"row": "DELTA_BINARY_PACKED", "value": "PLAIN"},
            write_statistics=False,
            write_page_checksum=True,
            store_schema=False,
        )
        self._waiting: dict[tuple[str, _Kind], list[StatColumn]] = {}
        self._groups = 0
        self.pieces: list[Piece] = []
        """Pieces written, complete once the writer is closed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            few = {key: columns for key, columns in self._waiting.items() if sum(map(len, columns)) < _FEW}
            for key in [key for key in self._waiting if key not in few]:
                self._flush(key)
            self._write_few(few)
        self._writer.close()

    def add(self, column: StatColumn) -> None:
        """Write a column, or a piece of one."""
        kind: _Kind = "text" if column.texts is not None else "int"
        if kind == "int" and column.values.dtype == np.float64:
            kind = "float"
        waiting = self._waiting.setdefault((column.name, kind), [])
        waiting.append(column)
        if sum(map(len, waiting)) >= _FULL:
            self._flush((column.name, kind))

    def _flush(self, key: tuple[str, _Kind]) -> None:
        self._write(self._waiting.pop(key))
        self.pieces.append(Piece(*key, group=self._groups - 1))

    def _write_few(self, few: Mapping[tuple[str, _Kind], Sequence[StatColumn]]) -> None:
        first = 0
        for key, columns in few.items():
            count = sum(map(len, columns))
            self.pieces.append(Piece(*key, group=self._groups, first=first, count=count))
            first += count
        if few:
            self._write([column for columns in few.values() for column in columns])

    def _write(self, columns: Sequence[StatColumn]) -> None:
        """Write one row group."""
        rows = np.concatenate([column.rows for column in columns])
        values = np.concatenate([_numbers(column) for column in columns])
        texts = pa.chunked_array([_texts(column) for column in columns]).unify_dictionaries()
        table = pa.table([rows, values, texts], schema=_SCHEMA)
        self._writer.write_table(table, row_group_size=max(1, len(rows)))
        self._groups += 1


def _numbers(column: StatColumn) -> I64:
    if column.texts is not None:
        return np.zeros(len(column), np.int64)
    return column.values.view(np.int64)


def _texts(column: StatColumn) -> pa.DictionaryArray:
    if column.texts is None:
        return pa.nulls(len(column), pa.string()).dictionary_encode()
    codes = pa.array(column.values.astype(np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.texts or ("",), pa.string()))


class StoredStats:
    """A ``StatReader`` over the two files. Nothing is read before it is requested.

    Raises (every reading method): SessionError: the file is damaged.
    """

    def __init__(self, events: StatFile, metas: StatFile) -> None:
        """Read the stats of events, and of metas."""
        self._events = events
        self._metas = metas

    def event_names(self) -> Sequence[str]:
        """See ``StatReader``."""
        return self._events.names()

    def meta_names(self) -> Sequence[str]:
        """See ``StatReader``."""
        return self._metas.names()

    def of_events(self, name: str, first: int = 0, last: int | None = None) -> StatColumn:
        """See ``StatReader``."""
        column = self._events.read(name)
        return column if first == 0 and last is None else column.between(first, last)

    def of_rows(self, name: str, rows: I64) -> StatColumn:
        """See ``StatReader``."""
        return self.of_events(name).of(rows)

    def of_metas(self, name: str) -> StatColumn:
        """See ``StatReader``."""
        return self._metas.read(name)

    def columns(self) -> Iterator[StatColumn]:
        """See ``StatReader``."""
        for name in self.event_names():
            yield self.of_events(name)


class StatFile(Struct, frozen=True, kw_only=True):
    """One of the files: access to its bytes, the content of its row groups, and the number of events (or metas)."""

    content: Callable[[], bytes]
    pieces: Sequence[Piece]
    count: int

    def names(self) -> tuple[str, ...]:
        """The stats that it holds."""
        return tuple(dict.fromkeys(piece.name for piece in self.pieces))

    def read(self, name: str) -> StatColumn:
        """One stat; empty if it has none of that name.

        Raises:
            SessionError: the file is damaged.
        """
        mine = [(i, piece) for i, piece in enumerate(self.pieces) if piece.name == name]
        if not mine:
            return no_stat(name)
        try:
            parquet = pq.ParquetFile(pa.BufferReader(self.content()), page_checksum_verification=True)
            parts = [_part(parquet, piece, i if piece.group < 0 else piece.group) for i, piece in mine]
        except (OSError, ValueError, IndexError, KeyError, pa.ArrowException) as error:
            raise SessionError(f"the stat {name!r} of an op trace is damaged: {str(error).splitlines()[0]}") from error
        column = joined(name, parts)
        if len(column) and (int(column.rows[0]) < 0 or int(column.rows[-1]) >= self.count):
            rows = f"rows {int(column.rows[0])} to {int(column.rows[-1])}"
            raise SessionError(f"the stat {name!r} of an op trace is damaged: {rows}, expected 0 to {self.count - 1}")
        return column


def _part(parquet: pq.ParquetFile, piece: Piece, group: int) -> StatColumn:
    table = parquet.read_row_group(group, use_threads=False)
    if piece.count >= 0:
        if piece.first + piece.count > table.num_rows:
            raise ValueError(f"rows up to {piece.first + piece.count} of {table.num_rows}")
        table = table.slice(piece.first, piece.count)
    return _column(table, piece)


def _column(table: pa.Table, piece: Piece) -> StatColumn:
    rows = table.column("row").to_numpy().astype(np.int64, copy=False)
    if piece.kind != "text":
        values = table.column("value").to_numpy().astype(np.int64, copy=False)
        return StatColumn(
            name=piece.name, rows=rows, values=values.view(np.float64) if piece.kind == "float" else values
        )
    texts = table.column("text").combine_chunks()
    if texts.null_count:
        raise ValueError("a text is missing")
    encoded = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    return StatColumn(name=piece.name, rows=rows, values=codes, texts=tuple(encoded.dictionary.to_pylist()))
