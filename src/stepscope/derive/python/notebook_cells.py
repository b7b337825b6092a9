"""Names of notebook cells as files: ipykernel compiles each cell under a path that holds its process's number."""

from __future__ import annotations

import re

from stepscope.model.report.place import NOTEBOOK_CELL

_IPYKERNEL = re.compile(r".*[/\\]ipykernel_\d+[/\\](\w+)\.py")
"""ipykernel 6: a hash of the cell's text, the same in every run."""
_IPYTHON = re.compile(r"<ipython-input-(\d+)-\w+>")
"""IPython before it: the number in ``In [3]``."""


def named(file: str) -> str:
    """``notebook cell 253955286`` or ``notebook cell In [3]`` for a cell; other files as they are."""
    cell = _IPYKERNEL.fullmatch(file)
    if cell is not None:
        return f"{NOTEBOOK_CELL}{cell[1]}"
    prompt = _IPYTHON.fullmatch(file)
    return f"{NOTEBOOK_CELL}In [{prompt[1]}]" if prompt is not None else file
