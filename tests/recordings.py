"""Runs that many tests read and none changes, made once for all workers of the tests, and kept by what made them.

A recording is a folder that its maker fills. Its key is the hash of the sources that measure and of the interpreter
with its frameworks, its name has that of the program, so a changed byte of a probe makes it again. On CI nothing is
kept: each run of the tests records anew, and its workers share.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import pytest

DONE = "done"
"""File that says that a recording is whole and worth keeping."""
KEPT = 4
"""Keys whose recordings are kept."""


class Recordings:
    """The recordings of one key, in a folder below ``root``."""

    def __init__(self, root: Path, key: str) -> None:
        self._root = root / key
        self._root.mkdir(parents=True, exist_ok=True)
        os.utime(self._root)
        _forget(root)

    def folder(self, name: str, make: Callable[[Path], bool]) -> Path:
        """The folder of a recording, filled by ``make`` if nobody has; made again the next time if ``make`` says no."""
        found = self._root / name
        with _locked(self._root / f"{name}.lock"):
            if not (found / DONE).exists():
                shutil.rmtree(found, ignore_errors=True)
                found.mkdir()
                if make(found):
                    (found / DONE).touch()
        return found


def root(config: pytest.Config, base: Path) -> Path:
    """Where recordings lie: in pytest's cache; on CI in the temporary folder of this run, which its workers share.

    Args:
        config: pytest's.
        base: the temporary folder of this process.
    """
    if not os.environ.get("CI"):
        return config.rootpath / ".pytest_cache" / "recordings"
    return (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "recordings"


def key_of(sources: Iterable[Path], *words: str) -> str:
    """The hash of Python files, given by themselves or by their folders, and of what else a recording depends on."""
    found = hashlib.sha256()
    for source in sources:
        for path in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            found.update(f"{path.relative_to(source.parent)}\0".encode() + path.read_bytes() + b"\0")
    found.update("\0".join(words).encode())
    return found.hexdigest()[:16]


def _forget(root: Path) -> None:
    """Remove recordings of keys that were used longest ago."""
    keys = sorted((one for one in root.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime)
    for old in keys[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
