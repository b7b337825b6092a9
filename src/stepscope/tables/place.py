"""A place in source code, as every part of a report names it."""

from __future__ import annotations

import re

from stepscope.tables.structs import Struct

NOTEBOOK_CELL = "notebook cell "
"""Begin of ``Place.file`` for a cell that ran in a kernel, if it is not known which cell of which notebook it is."""
_KNOWN_CELL = re.compile(r"(?:^|\.ipynb )cell \d+$")


def is_cell(file: str) -> bool:
    """Whether ``Place.file`` is a cell that ran in a kernel: ``train.ipynb cell 3`` if it is known which, ``cell 3``
    (its number in ``In [3]``) if the kernel itself said so.
    """
    return file.startswith(NOTEBOOK_CELL) or _KNOWN_CELL.search(file) is not None


class Place(Struct, frozen=True, kw_only=True):
    """A range of source lines. ``file`` is relative to the job's working directory if it lies below it."""

    file: str
    line: int
    end_line: int | None = None
    function: str = ""
    column: int | None = None
    """First column from 1, in characters; null if only lines are known."""
    end_column: int | None = None
    """End column, exclusive."""
    cell: int | None = None
    """Number of the notebook cell, from 1; ``line`` then counts within it."""
