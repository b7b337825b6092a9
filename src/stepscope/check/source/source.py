"""Reading one file for the checker: Python or a notebook, as text with lines and columns as people count them.

Python handles encodings, byte-order marks and line endings. A file that Python 3 cannot parse is reported as skipped
with the reason and never raises. The parser counts columns in UTF-8 bytes, people count characters.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.check.source import notebook

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES = 4 << 20
"""Bytes above which a file is data or generated, and is skipped. For a notebook only its code counts."""
_PYTHON2 = re.compile(
    r"^\s*print\s+[^(=\s]|^\s*except\s+[\w.()\s,]+,\s*\w+\s*:|^\s*raise\s+\w+\s*,|^\s*exec\s+[\"'\w]|\bur[\"']|<>|`\w",
    re.MULTILINE,
)


class SkippedError(Exception):
    """Raised for a file that cannot be checked; the text gives the reason."""


class Cells(Struct, frozen=True):
    """Starts of a notebook's code cells in its text; empty for a Python file."""

    starts: tuple[int, ...] = ()
    """First line of each code cell."""
    numbers: tuple[int, ...] = ()
    """Number of each code cell among all cells, from 1."""

    def at(self, line: int) -> tuple[int, int]:
        """The cell's number and the line within it, both from 1; (0, line) for a Python file."""
        found = (0, line)
        for start, number in zip(self.starts, self.numbers, strict=True):
            if start <= line:
                found = (number, line - start + 1)
        return found


@dataclass(frozen=True)
class Source:
    """A file's text and tree."""

    path: str
    """Path as shown."""
    text: str
    tree: ast.Module
    cells: Cells = field(default_factory=Cells)
    left_out: tuple[notebook.LeftOut, ...] = ()
    """Cells of a notebook that are not Python."""

    @cached_property
    def lines(self) -> Sequence[str]:
        """The lines as the parser counts them: form feeds do not end a line."""
        return re.split(r"\r\n|\r|\n", self.text)

    def column(self, line: int, offset: int) -> int:
        """The column, in characters from 1, of a byte offset in a line from 1."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        if text.isascii():
            return offset + 1
        return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")) + 1


def read(path: str, data: bytes) -> Source:
    """Parse the content of a file.

    Raises:
        SkippedError: it is not Python 3 (or a notebook of it), too large, or nested too deeply.
    """
    cells: tuple[notebook.Cell, ...] = ()
    if path.endswith(".ipynb"):
        try:
            cells = notebook.cells(data)
        except ValueError as error:
            raise SkippedError(f"not a readable notebook: {error}") from error
        text = "".join(cell.text for cell in cells)
        _bounded(len(text))
    else:
        _bounded(len(data))
        text = _decode(data)
    left_out: tuple[notebook.LeftOut, ...] = ()
    try:
        tree = _parse(path, text)
    except SkippedError as error:
        cells, left_out = notebook.readable(cells)
        if not left_out:
            raise
        text = "".join(cell.text for cell in cells)
        if not text.strip():
            first = left_out[0]
            what = str(error).partition(" (")[0]
            raise SkippedError(f"{what} (cell {first.number}, line {first.line}: {first.reason})") from error
        tree = _parse(path, text)
    starts = []
    line = 1
    for cell in cells:
        starts.append(line)
        line += cell.text.count("\n")
    return Source(path, text, tree, Cells(tuple(starts), tuple(cell.number for cell in cells)), left_out)


def code(path: str, data: bytes) -> bytes:
    """The relevant content of a file: for a notebook its code; empty for a file that is too large."""
    found = notebook.code(data) if path.endswith(".ipynb") else data
    return found if len(found) <= MAX_BYTES else b""


def _bounded(size: int) -> None:
    if size > MAX_BYTES:
        raise SkippedError(f"larger than {MAX_BYTES >> 20} MiB")


def _decode(data: bytes) -> str:
    if b"\0" in data:
        raise SkippedError("holds NUL bytes")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise SkippedError(f"cannot be decoded: {error}") from error


def _parse(path: str, text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, path)
    except SyntaxError as error:
        old = "Python 2" if _PYTHON2.search(text) else "not valid Python 3"
        raise SkippedError(f"{old} (line {error.lineno}: {error.msg})") from error
    except (RecursionError, MemoryError) as error:
        raise SkippedError("nested too deeply for Python's parser") from error
    except ValueError as error:
        raise SkippedError(f"not valid Python 3 ({error})") from error
