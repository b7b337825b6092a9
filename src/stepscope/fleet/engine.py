"""DuckDB, behind one class: the texts in ``sql`` keep to what ClickHouse reads as well, and name values as it does.

``{name:Type}`` in a text is a value, ``{name:Identifier}`` one of the column names that a question knows. The latter
are checked, so that no text holds a word of the user's. Decision 0121 says where the engines differ.
"""

from __future__ import annotations

import re
from importlib import import_module, resources
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from stepscope.fleet import schema
from stepscope.tables.errors import FormatError, UsageError, install_command

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from stepscope.tables.records import F64

_VALUE = re.compile(r"\{(\w+):(\w+)\}")
_PATTERN = re.compile(r"[\[*?]")
_COLUMN = re.compile(r"[a-z_]+")
MEMORY = "1GB"
"""Most that a question takes: beyond it DuckDB writes to its temporary folder."""

_SETTINGS = {
    "memory_limit": MEMORY,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "preserve_insertion_order": False,
}

Value = str | int | float | None


class _Result(Protocol):
    description: Sequence[tuple[str, ...]]

    def fetchall(self) -> list[tuple[Value, ...]]: ...

    def fetchnumpy(self) -> dict[str, F64]: ...


class _Connection(Protocol):
    def execute(self, sql: str, values: Mapping[str, object] | Sequence[object] = ...) -> _Result: ...

    def executemany(self, sql: str, values: Sequence[Sequence[object]]) -> _Result: ...

    def close(self) -> None: ...


class UnreadableError(FormatError):
    """DuckDB could not read one of the parts: it does not say which."""


class Engine:
    """A connection with the table ``parts``."""

    def __init__(self) -> None:
        """Nothing is read yet.

        Raises:
            UsageError: DuckDB is not installed.
        """
        try:
            duckdb = import_module("duckdb")
        except ImportError as error:
            raise UsageError(f"DuckDB is not installed; run: {install_command('fleet')}") from error
        self._error: type[Exception] = duckdb.Error
        self._open = cast("_Connection", duckdb.connect(":memory:", config=_SETTINGS))
        self._open.execute("SET enable_progress_bar = false")  # stdout holds the answer

    def close(self) -> None:
        """Free what it holds."""
        self._open.close()

    def load(self, paths: Mapping[int, Sequence[str]], kinds: Collection[str], columns: Collection[str]) -> None:
        """Fill ``parts`` with some columns of the rows of some kinds, of files by the version of their format.

        Each column of each file costs: 5,000 parts take twice as long with all columns as with the six of ``jobs``.

        Columns that came after a file's version are null; columns of later versions are left out.

        Raises:
            UnreadableError: one of the files is damaged.
        """
        texts = [select(version, f"$files{version}", columns) for version in sorted(paths) if paths[version]]
        values = {f"files{version}": list(map(literal, files)) for version, files in paths.items() if files}
        try:
            self._open.execute(
                "CREATE TEMPORARY TABLE parts AS " + " UNION ALL ".join(texts), {**values, "kinds": list(kinds)}
            )
        except self._error as error:
            raise UnreadableError(" ".join(str(error).split())) from error

    def run(self, name: str, values: Mapping[str, Value], columns: Mapping[str, str] | None = None) -> None:
        """A statement of ``sql/NAME.sql`` that gives no rows."""
        self.rows(name, values, columns)

    def rows(
        self, name: str, values: Mapping[str, Value], columns: Mapping[str, str] | None = None
    ) -> list[dict[str, Value]]:
        """The rows of ``sql/NAME.sql`` by column. ``columns``: those that stand for its identifiers."""
        sql, used = bound(text_of(name), columns or {})
        return _by_column(self._open.execute(sql, {key: values[key] for key in used}))

    def arrays(self, name: str, values: Mapping[str, Value]) -> dict[str, F64]:
        """The columns of ``sql/NAME.sql``, numbers that are all known."""
        sql, used = bound(text_of(name), {})
        done = self._open.execute(sql, {key: values[key] for key in used}).fetchnumpy()
        return {column: np.asarray(found, np.float64) for column, found in done.items()}

    def table(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Value]]) -> None:
        """Make a small table. ``columns``: SQL types by name."""
        listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        self._open.execute(f"CREATE TEMPORARY TABLE {name} ({listed})")
        if rows:
            marks = ", ".join("?" for _ in columns)
            self._open.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)  # noqa: S608 - names of ours

    def values_of(self, column: str, table: str) -> list[Value]:
        """The distinct values of a column."""
        done = self._open.execute(f"SELECT DISTINCT {column} FROM {table}")  # noqa: S608 - names of ours
        return [row[0] for row in done.fetchall()]


def _by_column(done: _Result) -> list[dict[str, Value]]:
    names = [column[0] for column in done.description]
    return [dict(zip(names, row, strict=True)) for row in done.fetchall()]


def text_of(name: str) -> str:
    """The text of a question: package data."""
    return resources.files("stepscope.fleet").joinpath("sql").joinpath(f"{name}.sql").read_text("utf-8")


def literal(path: str) -> str:
    """A path that DuckDB takes as it is: in those that it reads, ``[``, ``*`` and ``?`` stand for others."""
    return _PATTERN.sub(r"[\g<0>]", path)


def bound(sql: str, columns: Mapping[str, str]) -> tuple[str, set[str]]:
    """A text for DuckDB, and the names of the values that it wants.

    Raises:
        ValueError: a column's name is none.
    """
    used: set[str] = set()

    def place(found: re.Match[str]) -> str:
        name, kind = found[1], found[2]
        if kind != "Identifier":
            used.add(name)
            return f"${name}"
        if not _COLUMN.fullmatch(columns[name]):
            raise ValueError(f"{columns[name]!r} is no column")
        return columns[name]

    return _VALUE.sub(place, sql), used


def select(version: int, files: str, columns: Collection[str]) -> str:
    """Rows of the kinds ``$kinds`` from files of one version of the format; a column that came later is null."""
    listed = ", ".join(
        one.name if one.since <= version else f"CAST(NULL AS {_SQL_TYPES[str(one.type)]}) AS {one.name}"
        for one in schema.COLUMNS
        if one.name in columns
    )
    read = f"read_parquet({files}, hive_partitioning = false)"  # a folder "kind=x" is no column
    return f"SELECT {listed} FROM {read} WHERE list_contains($kinds, kind)"  # noqa: S608 - names of ours


_SQL_TYPES = {"string": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE"}
