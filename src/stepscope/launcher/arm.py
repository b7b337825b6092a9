"""Builds the directory that arms a process: the first entry of the job's PYTHONPATH.

Only ``agent`` and ``wire`` are copied, by path, so that the job's interpreter may differ from stepscope's. The agent
itself lists the files and their places (``stepscope.agent.payload``), and ``app`` passes the list: the collector does
not know the agent.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from stepscope.wire.env import ARM_NAME

Payload = Sequence[tuple[str, str]]
"""(source relative to the package, a folder when it ends in "/"; destination relative to the arm directory)."""

_PACKAGE = Path(__file__).resolve().parents[1]


def build(run: Path, payload: Payload) -> Path:
    """Make ``RUN/arm`` (private, and writable so that the job's Python can store compiled files) and return it.

    Raises:
        OSError: no space, or no rights.
    """
    target = run / ARM_NAME
    target.mkdir(mode=0o700)
    for source, destination in payload:
        if source.endswith("/"):
            _copy_folder(_PACKAGE / source, target / destination)
        else:
            _copy_file(_PACKAGE / source, target / destination)
    return target


def _copy_folder(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_dir() and path.name != "__pycache__":
            _copy_folder(path, target / path.name)
        elif path.suffix == ".py":
            _copy_file(path, target / path.name)


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file, and what this Python has compiled of it: a job of the same version accepts that while the source's
    time is the same. Compiled files that only their owner may read are left out.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    status = source.stat()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    name = f"{{}}.{sys.implementation.cache_tag}.pyc"
    compiled = source.parent / "__pycache__" / name.format(source.stem)
    if compiled.exists():
        cache = target.parent / "__pycache__"
        cache.mkdir(exist_ok=True)
        with contextlib.suppress(PermissionError):
            shutil.copyfile(compiled, cache / name.format(target.stem))
