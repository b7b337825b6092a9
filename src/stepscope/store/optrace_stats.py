"""Stats of op traces in Parquet: a row group is a piece of one stat, so that one is read without the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stepscope.errors import SessionError
from stepscope.model.optrace_stats import StatColumn, joined, no_stat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from stepscope.model.records import I64

_SCHEMA = pa.schema([("row", pa.int64()), ("value", pa.int64()), ("text", pa.dictionary(pa.int32(), pa.string()))])
_FULL = 1 << 16
"""Values that are collected before they become a row group."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """What a row group holds."""

    name: str
    kind: Literal["int", "float", "text"]


class StatWriter:
    """Writes columns, or pieces of them, in any order; small ones of a name are put together."""

    def __init__(self, path: Path) -> None:
        """Make the file."""
        self._writer = pq.ParquetWriter(
            path,
            _SCHEMA,
            compression="zstd",
            compression_level=1,
            use_dictionary=["text"],
            column_encoding={"row": "DELTA_BINARY_PACKED", "value": "DELTA_BINARY_PACKED"},
            write_statistics=False,
        )
        self._waiting: dict[Piece, list[StatColumn]] = {}
        self.pieces: list[Piece] = []
        """What each row group holds, complete once the writer is closed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            for piece in list(self._waiting):
                self._flush(piece)
        self._writer.close()

    def add(self, column: StatColumn) -> None:
        """Write a column, or a piece of one."""
        kind: Literal["int", "float", "text"] = "text" if column.texts is not None else "int"
        if kind == "int" and column.values.dtype == np.float64:
            kind = "float"
        piece = Piece(column.name, kind)
        waiting = self._waiting.setdefault(piece, [])
        waiting.append(column)
        if sum(map(len, waiting)) >= _FULL:
            self._flush(piece)

    def _flush(self, piece: Piece) -> None:
        columns = self._waiting.pop(piece)
        rows = np.concatenate([column.rows for column in columns])
        if piece.kind == "text":
            texts = pa.chunked_array([_as_dictionary(column) for column in columns]).unify_dictionaries()
            values: I64 = np.zeros(len(rows), np.int64)
        else:
            texts = pa.nulls(len(rows), pa.string()).dictionary_encode()
            values = np.concatenate([column.values for column in columns]).view(np.int64)
        table = pa.table([rows, values, texts], schema=_SCHEMA)
        self._writer.write_table(table, row_group_size=max(1, len(rows)))
        self.pieces.append(piece)


def _as_dictionary(column: StatColumn) -> pa.DictionaryArray:
    codes = pa.array(column.values.astype(np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.texts or ("",), pa.string()))


class StoredStats:
    """A ``StatReader`` over the two files. Nothing is read before it is asked for.

    Raises (every reading method): SessionError: the file is damaged.
    """

    def __init__(self, events: StatFile, metas: StatFile) -> None:
        """Of the stats of events, and of metas."""
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

    def of_metas(self, name: str) -> StatColumn:
        """See ``StatReader``."""
        return self._metas.read(name)

    def columns(self) -> Iterator[StatColumn]:
        """See ``StatReader``."""
        for name in self.event_names():
            yield self.of_events(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatFile:
    """One of the files: how its bytes are had, what its row groups hold, and how many events (or metas) there are."""

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
        groups = [i for i, piece in enumerate(self.pieces) if piece.name == name]
        if not groups:
            return no_stat(name)
        try:
            parquet = pq.ParquetFile(pa.BufferReader(self.content()))
            parts = [_column(parquet.read_row_group(i, use_threads=False), self.pieces[i]) for i in groups]
        except (ValueError, IndexError, KeyError, pa.ArrowException) as error:
            raise SessionError(f"the stat {name!r} of an op trace is damaged: {str(error).splitlines()[0]}") from error
        column = joined(name, parts)
        if len(column) and (int(column.rows[0]) < 0 or int(column.rows[-1]) >= self.count):
            rows = f"rows {int(column.rows[0])} to {int(column.rows[-1])}"
            raise SessionError(f"the stat {name!r} of an op trace is damaged: {rows}, expected 0 to {self.count - 1}")
        return column


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
