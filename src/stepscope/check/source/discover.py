"""The files to check: the project's own Python files and notebooks below folders."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

EXCLUDED = frozenset(
    ".git .hg .svn .tox .nox .venv venv env .env node_modules __pycache__ build dist site-packages .eggs .mypy_cache "
    ".ruff_cache .pytest_cache .ipynb_checkpoints __pypackages__".split()
)
"""Names of folders that are never entered below a given path."""
ENDINGS = (".py", ".ipynb")


def _nothing(path: Path) -> bool:
    del path
    return False


def discover(
    paths: Iterable[Path],
    exclude: Iterable[str] = (),
    leave_out: Callable[[Path], bool] = _nothing,
    of_projects: Mapping[Path, Iterable[str]] = MappingProxyType({}),
) -> list[Path]:
    """The files to check, sorted and without repeats.

    Args:
        paths: files (whatever their name, unless excluded) and folders.
        exclude: patterns of paths below a folder, or of folder names: ``examples/old``, ``*_pb2.py``.
        leave_out: folders not to enter, and links to files not to follow.
        of_projects: patterns of settings, by their folder. Of a named file the part below that folder counts, for
            ``exclude`` that below the working directory: what lies above says nothing about the project.
    """
    ours = tuple(exclude)
    theirs = {home: tuple(more) for home, more in of_projects.items()}
    patterns = (*(p for more in theirs.values() for p in more), *ours)
    here = Path.cwd()
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found.update(dict.fromkeys(_walk(path, patterns, leave_out)))
        elif not _named(path, (here, *theirs), ours) and not any(
            _named(path, (home,), more) or (here.is_relative_to(home) and _named(path, (here,), more))
            for home, more in theirs.items()
        ):
            found[path] = None
    return sorted(found)


def _named(path: Path, folders: Iterable[Path], patterns: tuple[str, ...]) -> bool:
    """Whether patterns exclude a named file, by its path from the first of the folders that it lies in."""
    inner = Path(path.name) if path.is_absolute() else path
    whole = Path(os.path.normpath(path.absolute()))
    for folder in folders:
        below = next((way for way in (whole, path.resolve()) if way.is_relative_to(folder)), None)
        if below is not None:
            inner = below.relative_to(folder)
            break
    return any(_excluded(part, patterns) for part in (inner, *inner.parents))


def _walk(root: Path, patterns: tuple[str, ...], leave_out: Callable[[Path], bool]) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        inside = here.relative_to(root)
        folders[:] = [
            name for name in sorted(folders) if name not in EXCLUDED and not _excluded(inside / name, patterns)
            and not (here / name / "pyvenv.cfg").exists()
        ]  # fmt: skip
        if leave_out(here):
            folders.clear()
            continue
        for name in sorted(files):
            path = here / name
            if not name.endswith(ENDINGS) or _excluded(inside / name, patterns):
                continue
            if not path.is_symlink() or not leave_out(path):
                yield path


def _excluded(path: Path, patterns: tuple[str, ...]) -> bool:
    text = path.as_posix()
    return any(fnmatch.fnmatch(text, p) or fnmatch.fnmatch(path.name, p) or text.startswith(f"{p}/") for p in patterns)
