"""Edits of a text: ranges and what replaces them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NEWLINE = re.compile(r"\r\n|\r|\n")


class CannotFixError(Exception):
    """A planned fix cannot be done here; the text says why, as the end of "not fixed: ..."."""


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Characters ``start`` to ``end`` (exclusive, from 0) of a text are replaced. An empty range: an insertion."""

    start: int
    end: int
    text: str

    def touches(self, other: Edit) -> bool:
        """Whether two edits cannot be done at once: ranges overlap, or both insert at the same place."""
        if self.start == other.start:
            return self != other or self.start != self.end
        return self.start < other.end and other.start < self.end


def replacement(text: str, start: int, end: int, new: str) -> tuple[Edit, ...]:
    """The smallest edit that makes ``new`` of a range; none when it is that already.

    Small edits let fixes at the same call (keywords of two methods of a chain) be done in one go.
    """
    old = text[start:end]
    if old == new:
        return ()
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    return (Edit(start + front, end - back, new[front : len(new) - back]),)


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text after edits that do not touch each other."""
    parts = []
    done = 0
    for edit in sorted(set(edits)):
        parts += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join([*parts, text[done:]])


class Lines:
    """Lines and columns of a text as the parser counts them: form feeds end no line.

    Args:
        text: the text, with whatever line endings it has.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts: Sequence[int] = [0, *(m.end() for m in _NEWLINE.finditer(text))]

    def offset(self, line: int, column: int) -> int:
        """Characters before a line and column, both from 1."""
        return self.starts[line - 1] + column - 1 if line <= len(self.starts) else len(self.text)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def begin(self, offset: int) -> int:
        """Where the line of an offset begins."""
        return self.starts[self.position(offset)[0] - 1]

    def after(self, offset: int) -> int:
        """Where the line after that of an offset begins; the text's end on the last one."""
        line = self.position(offset)[0]
        return self.starts[line] if line < len(self.starts) else len(self.text)

    @property
    def newline(self) -> str:
        """The line ending that comes first in the text."""
        found = _NEWLINE.search(self.text)
        return found.group(0) if found else "\n"
