"""Code cells of a Jupyter notebook as Python text, line for line.

Magics and shell lines become ``pass`` (or blank, in cells of another language), so that every line keeps its number.
Outputs are skipped: only the code of a notebook counts.
"""

from __future__ import annotations

import json
import re

import msgspec
from msgspec import Struct

_LINE_MAGIC = re.compile(r"^(\s*)(?:[%!].*|.*[^\s?]\?{1,2}\s*|\?{1,2}\s*[\w.]+\s*)$")
_TIMED = re.compile(r"^(\s*)%time\s+(?=\S)")
_ASSIGNED = re.compile(r"^(\s*[\w.,\s]+=\s*)[%!].*$")
_PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun", "%%memit", "%%python", "%%python3")


class Cell(Struct, frozen=True):
    """A code cell: its number among all cells from 1, and its text, which ends in a newline."""

    number: int
    text: str


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
    return "".join(_mask(line) + "\n" for line in lines)


def _mask(line: str) -> str:
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
