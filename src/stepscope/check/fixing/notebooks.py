"""Edits in a notebook: only the sources of changed cells are rewritten, everything else stays byte for byte.

Rules see all code cells as one text in which magics are ``pass`` (``check.source.notebook``); an edit is made if all
lines that it touches are the cell's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from stepscope.check.fixing.edits import CannotFixError, Edit, ParserLines, apply
from stepscope.check.source import notebook

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)


class Slot(Struct, frozen=True):
    """Position of a code cell's source in the JSON text: a list of lines, or one string."""

    start: int
    end: int
    source: str
    """Source, joined as Jupyter shows it."""


class NotebookContent:
    """The content of a notebook.

    Args:
        data: its bytes.

    Raises:
        CannotFixError: it is not a readable notebook.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._json = data.decode("utf-8-sig")
            self._head = data[: len(data) - len(self._json.encode())]
            cells, _ = notebook.readable(notebook.cells(data.removeprefix(b"\xef\xbb\xbf")))
            slots = dict(_slots(self._json))
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise CannotFixError("it is not a readable notebook") from error
        self._numbers = [cell.number for cell in cells]
        self._slots = [slots[cell.number] for cell in cells]
        self.text = "".join(cell.text for cell in cells)
        self._lines = ParserLines(self.text)
        starts = [0]
        for cell in cells:
            starts.append(starts[-1] + len(cell.text))
        self._starts = starts

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """The notebook's new bytes."""
        by_cell: dict[int, list[Edit]] = {}
        for edit in edits:
            cell = self._cell(edit.start)
            by_cell.setdefault(cell, []).append(self._inside(cell, edit))
        changes = []
        for cell, inside in by_cell.items():
            slot = self._slots[cell]
            new = apply(slot.source + "\n", inside)
            new = new.removesuffix("\n")
            old = self._json[slot.start : slot.end]
            changes.append(Edit(slot.start, slot.end, _rendered(old, new, ascii_only=self._json.isascii())))
        return self._head + apply(self._json, changes).encode()

    def place(self, line: int) -> str:
        """A line of the text as people find it: the cell, and the line in it."""
        cell = self._cell(self._lines.offset(line, 1))
        first, _ = self._lines.position(self._starts[cell])
        return f"cell {self._numbers[cell]}:{line - first + 1}"

    def sources(self) -> list[tuple[int, str]]:
        """The code cells as Jupyter shows them, with their numbers among all cells, from 1."""
        return list(zip(self._numbers, (slot.source for slot in self._slots), strict=True))

    def _cell(self, offset: int) -> int:
        return max(index for index, start in enumerate(self._starts[:-1]) if start <= offset)

    def _inside(self, cell: int, edit: Edit) -> Edit:
        """An edit of the whole text as one of a cell's source with a trailing line ending."""
        start, end = self._starts[cell], self._starts[cell + 1]
        source = self._slots[cell].source + "\n"
        if edit.end > end:
            raise CannotFixError("it spans several cells")
        seen, raw = self.text[start:end].split("\n"), source.split("\n")
        first, column = self._place(start, edit.start)
        last, end_column = self._place(start, edit.end)
        through = last if end_column > 0 or last == first else last - 1
        if len(seen) != len(raw) or seen[first : through + 1] != raw[first : through + 1]:
            raise CannotFixError("the place holds a magic")
        begins = [0]
        for line in raw:
            begins.append(begins[-1] + len(line) + 1)
        return Edit(begins[first] + column, begins[last] + end_column, edit.text)

    def _place(self, start: int, offset: int) -> tuple[int, int]:
        """Line and column, both from 0, of an offset in the cell that begins at ``start``."""
        before = self.text[start:offset]
        return before.count("\n"), offset - start - (before.rfind("\n") + 1)


def _slots(text: str) -> Iterator[tuple[int, Slot]]:
    """The code cells' sources, with the cell's number among all cells."""
    book = dict(_members(text, _skip(text, 0)))
    if "cells" in book:
        at = book["cells"]
    else:
        sheet = next(_items(text, book["worksheets"]))
        at = dict(_members(text, sheet))["cells"]
    for number, cell in enumerate(_items(text, at), 1):
        if text[cell] != "{":
            continue
        parts = dict(_members(text, cell))
        where = parts.get("source", parts.get("input"))
        if where is None:
            continue
        value, end = _DECODER.raw_decode(text, where)
        source = "".join(value) if isinstance(value, list) else value
        yield number, Slot(where, end, source)


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Keys of the JSON object at an offset, each with the start of its value."""
    at = _skip(text, at + 1)
    while text[at] == '"':
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        yield key, at
        at = _next(text, at)


def _items(text: str, at: int) -> Iterator[int]:
    """Starts of the items of the JSON list at an offset."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        yield at
        at = _next(text, at)


def _next(text: str, at: int) -> int:
    """The offset after a value and its comma."""
    at = _skip(text, _DECODER.raw_decode(text, at)[1])
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _rendered(old: str, new: str, *, ascii_only: bool) -> str:
    """A source as JSON, in the layout of the old one."""

    def encode(value: str) -> str:
        return json.dumps(value, ensure_ascii=ascii_only)

    if not old.startswith("["):
        return encode(new)
    lines = new.split("\n")
    parts = [encode(line + "\n") for line in lines[:-1]] + ([encode(lines[-1])] if lines[-1] else [])
    starts = list(_items(old, 0))
    first = _skip(old, 1)
    opening, closing = old[1:first], old[len(old.rstrip("] \t\r\n")) : -1]
    separator = f",{opening}"
    if len(starts) > 1:
        ended = _DECODER.raw_decode(old, starts[0])[1]
        separator = old[ended : starts[1]]
    return f"[{opening}{separator.join(parts)}{closing}]" if parts else "[]"
