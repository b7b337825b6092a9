"""Where the output of a trial's run goes: into files, so that the terminal has ours alone."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stepscope.tables.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def printing_to(log: Path, out: Path) -> Iterator[None]:
    """Redirect the errors of this process and its children to ``log``, their output to ``out``, which may be the same.

    Raises:
        CaptureError: a file cannot be written.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    files = _open(out), _open(log)
    for number, file in zip((1, 2), files, strict=True):
        os.dup2(file, number)
        os.close(file)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, before in zip((1, 2), kept, strict=True):
            os.dup2(before, number)
            os.close(before)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise CaptureError(f"{path} cannot be written: {error.strerror}") from error
