"""Interned texts, and stat columns made of single values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.model.optrace_stats import StatColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.optrace_stats import PlainStat


class Strings:
    """Interns texts; number 0 is the empty one."""

    def __init__(self) -> None:
        """Begin with the empty text."""
        self._ids = {"": 0}
        self._texts = [""]

    def add(self, text: str) -> int:
        """The number of a text."""
        number = self._ids.get(text)
        if number is None:
            number = self._ids[text] = len(self._texts)
            self._texts.append(text)
        return number

    def has(self, text: str) -> bool:
        """Whether a text was added."""
        return text in self._ids

    def text(self, number: int) -> str:
        """The text of a number."""
        return self._texts[number]

    def all(self) -> tuple[str, ...]:
        """All texts, by number."""
        return tuple(self._texts)


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
    wrapped = np.array([int(v) & 0xFFFF_FFFF_FFFF_FFFF for v in values], np.uint64).astype(np.int64)
    return StatColumn(name=name, rows=rows[order], values=wrapped)
