"""Files as the fleet names them: the same code has the same name in every environment, and no home is named."""

from __future__ import annotations

import re
from pathlib import PurePath

_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")
_PYTHON = re.compile(r".*/lib/python3(?:\.\d+)?/")
_LIBRARY = re.compile(r".*/(?=[^/]+\.so(?:\.[\d.]+)?$)")


def shortened(file: str, cwd: str) -> str:
    """A file without the folders above its package, Python's library or the job's working directory.

    A file elsewhere keeps its name and its folder's: ``shared/models.py`` of ``/home/NAME/code/shared/models.py``.
    """
    for root in (_PACKAGES, _PYTHON, _LIBRARY):
        if found := root.match(file):
            return file[found.end() :]
    if cwd and file.startswith(cwd.rstrip("/") + "/"):
        return file[len(cwd.rstrip("/")) + 1 :]
    return "/".join(file.split("/")[-2:]) if PurePath(file).is_absolute() else file


def is_library(file: str) -> bool:
    """Whether a file, as it was recorded, is of an installed package or of Python."""
    return file.startswith("<") or any(root.match(file) for root in (_PACKAGES, _PYTHON))
