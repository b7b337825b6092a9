"""The samplers' rows of the last minutes, in memory, for the live view."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, overload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.tables.records import Table

_KEPT = 8
"""Number of flushes kept of each table: two minutes for those that are stored every 15 s."""


class HasTable(Protocol):
    """Rows that wait to be stored."""

    def table(self) -> Table:
        """The rows as a table."""
        ...


class RecentTables:
    """The newest rows of every table."""

    def __init__(self) -> None:
        self._stored: dict[str, deque[Table]] = {}

    def keep(self, name: str, table: Table) -> None:
        """Keep rows that have just been stored."""
        self._stored.setdefault(name, deque(maxlen=_KEPT)).append(table)

    def all(self, waiting: Mapping[str, HasTable]) -> dict[str, list[Table]]:
        """Tables, oldest first: recently stored rows, then waiting ones."""
        return {name: [*self._stored.get(name, ()), rows.table()] for name, rows in waiting.items()}


class RecentNames(Sequence[str]):
    """Names by number, of which only the newest are known; the others read "?"."""

    def __init__(self, known: Mapping[int, str]) -> None:
        """Use the names in ``known``."""
        self._known = known
        self._length = max(known, default=-1) + 1

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self._known.get(i, "?") for i in range(*index.indices(self._length))]
        return self._known.get(range(self._length)[index], "?")  # IndexError ends an iteration
