"""Code cells of a Jupyter notebook as Python text, line for line.

Magics and shell lines, with their continuations, become ``pass`` (or blank, in cells of another language), so that
every line keeps its number. A cell that is not Python is blank, and the others are read. Outputs are skipped: only the
code of a notebook counts.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Sequence

import msgspec
from msgspec import Struct

_LINE_MAGIC = re.compile(r"^(\s*)(?:[%!].*|.*[^\s?]\?{1,2}\s*|\?{1,2}\s*[\w.]+\s*)$")
_INSTALL = re.compile(
    r"^(\s*)(?:pip3?|conda|mamba)\s+(?:install|uninstall|list|show|freeze|update|upgrade)\b(?!\s*[=(.]).*$"
)
"""Pattern of a command that IPython runs as its magic of the same name."""
_TIMED = re.compile(r"^(\s*)%time\s+(?=\S)")
_ASSIGNED = re.compile(r"^(\s*[\w.,\s]+=\s*)[%!].*$")
_PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun", "%%memit", "%%python", "%%python3")


class Cell(Struct, frozen=True):
    """A code cell: its number among all cells from 1, and its text, which ends in a newline."""

    number: int
    text: str


class LeftOut(Struct, frozen=True):
    """A code cell that is not Python: its number, the line in it, and what the parser says."""

    number: int
    line: int
    reason: str


class _Cell(msgspec.Struct):
    """The fields read from a cell, with values as in the file."""

    cell_type: msgspec.Raw = msgspec.Raw(b"null")
    source: msgspec.Raw | None = None
    input: msgspec.Raw | None = None


class _Sheet(msgspec.Struct):
    cells: list[_Cell]


class _Info(msgspec.Struct):
    kernelspec: msgspec.Raw = msgspec.Raw(b"null")


class _Book(msgspec.Struct):
    """The fields read from a notebook; no objects are made of the rest."""

    cells: list[_Cell] | None = None
    worksheets: list[_Sheet] | None = None
    metadata: _Info | None = None


_BOOK = msgspec.json.Decoder(_Book)


def code(data: bytes) -> bytes:
    """The text of a notebook's code cells; empty if the file is not a notebook."""
    try:
        return "".join(cell.text for cell in cells(data)).encode("utf-8", "surrogatepass")
    except ValueError:
        return b""


def cells(data: bytes) -> tuple[Cell, ...]:
    """The code cells of a notebook, formats 3 and 4.

    Raises:
        ValueError: it is not a notebook, or one of another language.
    """
    return tuple(Cell(number, _python(_text(source))) for number, source in _code_cells(data))


def readable(found: Sequence[Cell]) -> tuple[tuple[Cell, ...], tuple[LeftOut, ...]]:
    """The cells with those blank that are not Python 3, and these cells; as they are if together they are Python."""
    kept, bad = [], []
    if _refused("".join(cell.text for cell in found)) is None:
        return tuple(found), ()
    for cell in found:
        error = _refused(cell.text)
        if error is not None:
            bad.append(LeftOut(cell.number, getattr(error, "lineno", None) or 1, getattr(error, "msg", str(error))))
        kept.append(cell if error is None else Cell(cell.number, "\n" * cell.text.count("\n")))
    return tuple(kept), tuple(bad)


def _refused(text: str) -> Exception | None:
    """Why the parser refuses a text; None if it does not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error
    return None


def texts(data: bytes) -> tuple[tuple[int, str], ...]:
    """Number and text of each code cell, as a kernel gets it; otherwise like ``cells``."""
    return tuple((number, _joined(source)) for number, source in _code_cells(data))


def _code_cells(data: bytes) -> list[tuple[int, object]]:
    """Number and source of each code cell."""
    return [
        (number, cell.get("source", cell.get("input", "")))
        for number, cell in enumerate(_raw_cells(_python_book(data)), 1)
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]


def _python_book(data: bytes) -> dict[str, object]:
    """The notebook, which is one of Python."""
    try:
        book = _book(data)
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    info = book.get("metadata")
    kernel = info.get("kernelspec") if isinstance(info, dict) else None
    language = kernel.get("language") if isinstance(kernel, dict) else None
    if isinstance(language, str) and language.lower() not in {"python", "python3", "ipython"}:
        raise ValueError(f"its language is {language}")
    return book


def _book(data: bytes) -> dict[str, object]:
    """The notebook without its outputs; read by Python's own parser if it is not strict JSON (``NaN``)."""
    try:
        slim = _BOOK.decode(data)
        return {
            "cells": None if slim.cells is None else [_fields(cell) for cell in slim.cells],
            "worksheets": [{"cells": [_fields(cell) for cell in sheet.cells]} for sheet in slim.worksheets or ()],
            "metadata": {} if slim.metadata is None else {"kernelspec": json.loads(bytes(slim.metadata.kernelspec))},
        }
    except (msgspec.DecodeError, ValueError):
        book = json.loads(data)
        return book if isinstance(book, dict) else {}


def _fields(cell: _Cell) -> dict[str, object]:
    kind = json.loads(bytes(cell.cell_type))
    given = {"source": cell.source, "input": cell.input} if kind == "code" else {}
    return {"cell_type": kind, **{key: json.loads(bytes(raw)) for key, raw in given.items() if raw is not None}}


def _raw_cells(book: dict[str, object]) -> list[object]:
    raw = book.get("cells")
    if isinstance(raw, list):
        return raw
    sheets = book.get("worksheets")
    if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) and isinstance(sheets[0].get("cells"), list):
        return list(sheets[0]["cells"])
    raise ValueError("it has no cells")


def _joined(source: object) -> str:
    return "".join(str(part) for part in source) if isinstance(source, list) else str(source)


def _text(source: object) -> str:
    return _joined(source).replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")


def _python(text: str) -> str:
    lines = text.split("\n")
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and first.split()[0] not in _PYTHON_CELLS:
        return "\n" * len(lines)
    masked, of_magic = [], False
    for line in _without_indent(lines):
        new = "" if of_magic else _mask(line)
        of_magic = (of_magic or (new != line and not new.endswith("\\"))) and line.endswith("\\")
        masked.append(new)
    return "".join(f"{line}\n" for line in masked)


def _without_indent(lines: list[str]) -> list[str]:
    """The lines without the indentation of the first one, as IPython runs them."""
    first = next((line for line in lines if line.strip()), "")
    space = first[: len(first) - len(first.lstrip())]
    return [line.removeprefix(space) for line in lines] if space else lines


def _mask(line: str) -> str:
    if _INSTALL.match(line):
        return _INSTALL.sub(r"\1pass", line)
    if "%" not in line and "!" not in line and "?" not in line:
        return line
    if _TIMED.match(line):
        return _TIMED.sub(r"\1", line)
    if line.lstrip().startswith("#"):
        return line
    magic = _LINE_MAGIC.match(line)
    if magic and ("#" not in line or line.lstrip()[0] in "%!?") and not line.rstrip().endswith(("'?", '"?')):
        return f"{magic.group(1)}pass"
    return _ASSIGNED.sub(r"\1None", line)
