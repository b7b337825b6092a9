"""Interned strings, and stat columns made of single values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.tables.optrace_stats import StatColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.tables.optrace_stats import PlainStat
    from stepscope.tables.records import I64


class _Numbers(dict[str, int]):
    """The number of each string; a new one gets the next number."""

    def __init__(self) -> None:
        super().__init__({"": 0})
        self.texts = [""]

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self.texts)
        self.texts.append(text)
        return number


class Strings:
    """Interned strings; number 0 is the empty one."""

    def __init__(self) -> None:
        """Begin with the empty string."""
        self._numbers = _Numbers()
        self.add: Callable[[str], int] = self._numbers.__getitem__
        """Function from a string to its number. Most are known, and cost no Python call."""

    def has(self, text: str) -> bool:
        """Whether a string was added."""
        return text in self._numbers

    def text(self, number: int) -> str:
        """The string of a number."""
        return self._numbers.texts[number]

    def all(self) -> tuple[str, ...]:
        """All strings, by number."""
        return tuple(self._numbers.texts)


def column_of_pairs(name: str, pairs: Sequence[tuple[int, PlainStat]]) -> StatColumn:
    """A column of (row, value) in any order."""
    rows = np.array([row for row, _ in pairs], np.int64)
    order = np.argsort(rows, kind="stable")
    values = [pairs[i][1] for i in order]
    if any(isinstance(v, str) for v in values):
        texts = Strings()
        codes = np.array([texts.add(str(v)) for v in values], np.int64)
        return StatColumn(name=name, rows=rows[order], values=codes, texts=texts.all())
    if any(isinstance(v, float) for v in values):
        return StatColumn(name=name, rows=rows[order], values=np.array(values, np.float64))
    return StatColumn(name=name, rows=rows[order], values=np.array([wrapped(int(v)) for v in values], np.int64))


def column_of_codes(name: str, rows: I64, codes: I64, texts: Sequence[str]) -> StatColumn:
    """A column of texts, numbered in the order of the rows: as ``column_of_pairs`` has it."""
    first = np.full(len(texts), len(codes), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    known = Strings()
    numbers = np.zeros(len(texts), np.int64)
    for code in np.argsort(first, kind="stable")[: int((first < len(codes)).sum())].tolist():
        numbers[code] = known.add(texts[code])
    return StatColumn(name=name, rows=rows, values=numbers[codes], texts=known.all())


def wrapped(value: int) -> int:
    """A whole number in 64 bits, as its two's complement if it is larger."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    return value - (1 << 64) if value >> 63 else value
