"""Names of notebook cells as files: ipykernel compiles each cell under a path that holds its process's number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.tables.place import NOTEBOOK_CELL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.tables.nearby import NotebookCell

_IPYKERNEL = re.compile(r".*[/\\]ipykernel_\d+[/\\](\w+)\.py")
"""ipykernel 6 and 7: a hash of the cell's text, the same in every run."""
_IPYTHON = re.compile(r"<ipython-input-(\d+)-\w+>")
"""IPython before it: the number in ``In [3]``."""
_SEED, _FACTOR, _WORD = 0xC70F6907, 0x5BD1E995, 0xFFFFFFFF
"""Of the hash. Source: ipykernel 7.4.0, ipykernel/compiler.py, ``get_file_name`` and ``murmur2_x86``."""


def hash_in(file: str) -> str:
    """The hash in a cell's path; "" for another file."""
    cell = _IPYKERNEL.fullmatch(file)
    return cell[1] if cell is not None else ""


def named(file: str, known: Mapping[str, NotebookCell]) -> tuple[str, int]:
    """A file as a report says it, and how many lines of it a kernel did not count.

    ``train.ipynb cell 3`` of a cell that is known, ``notebook cell 253955286`` or ``notebook cell In [3]`` of another;
    other files as they are.
    """
    number = hash_in(file)
    if number:
        cell = known.get(number)
        return (cell.name, cell.above) if cell is not None else (f"{NOTEBOOK_CELL}{number}", 0)
    prompt = _IPYTHON.fullmatch(file)
    return (f"{NOTEBOOK_CELL}In [{prompt[1]}]" if prompt is not None else file), 0


def hash_of(text: str) -> str:
    """The number that ipykernel gives a cell's text, before IPython has changed it: MurmurHash2 of its UTF-8."""
    data = text.encode("utf-8", "surrogatepass")
    whole = len(data) & ~3
    found = _SEED ^ len(data)
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _FACTOR & _WORD
        word = (word ^ word >> 24) * _FACTOR & _WORD
        found = (found * _FACTOR & _WORD) ^ word
    if rest := data[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * _FACTOR & _WORD
    found = (found ^ found >> 13) * _FACTOR & _WORD
    return str(found ^ found >> 15)


def compiled(text: str) -> list[tuple[str, int]]:
    """The texts that a kernel may compile of a cell, with the lines above each: all of it, and the body below a cell
    magic that runs it as a cell (``%%capture``). IPython drops empty lines at the begin of either.
    """
    above = _empty(text)
    head, _, body = text.lstrip().partition("\n")
    if not (head.startswith("%%") and body):
        return [(text, above)]
    return [(text, above), (body.removesuffix("\n") + "\n", above + 1 + _empty(body))]


def _empty(text: str) -> int:
    """Number of empty lines at its begin."""
    return text[: len(text) - len(text.lstrip())].count("\n")
