"""Edits of a text: ranges and their replacements."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct

_NEWLINE = re.compile(r"\r\n|\r|\n")


class CannotFixError(Exception):
    """Raised if a planned fix is impossible here; the text gives the reason, as the end of "not fixed: ..."."""


class Edit(Struct, frozen=True, order=True):
    """The replacement of characters ``start`` to ``end`` (exclusive, from 0) of a text. An empty range inserts."""

    start: int
    end: int
    text: str

    def touches(self, other: Edit) -> bool:
        """Whether two edits conflict: their ranges overlap, or both insert at the same place."""
        if self.start == other.start:
            return self != other or self.start != self.end
        return self.start < other.end and other.start < self.end


def replacement(text: str, start: int, end: int, new: str) -> tuple[Edit, ...]:
    """The smallest edit that turns a range into ``new``; none if it is equal already.

    Small edits allow several fixes of the same call (keywords of two methods of a chain) in one pass.
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
    """The text after edits that do not conflict."""
    parts = []
    done = 0
    for edit in sorted(set(edits)):
        parts += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join([*parts, text[done:]])


class ParserLines:
    """Lines and columns of a text as the parser counts them: form feeds do not end a line.

    Args:
        text: the text, with whatever line endings it has.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts: Sequence[int] = [0, *(m.end() for m in _NEWLINE.finditer(text))]

    def offset(self, line: int, column: int) -> int:
        """Number of characters before a line and column, both from 1."""
        return self.starts[line - 1] + column - 1 if line <= len(self.starts) else len(self.text)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def begin(self, offset: int) -> int:
        """The start of the line that contains an offset."""
        return self.starts[self.position(offset)[0] - 1]

    def after(self, offset: int) -> int:
        """The start of the next line; the end of the text on the last line."""
        line = self.position(offset)[0]
        return self.starts[line] if line < len(self.starts) else len(self.text)

    @property
    def newline(self) -> str:
        """The first line ending in the text."""
        found = _NEWLINE.search(self.text)
        return found.group(0) if found else "\n"
