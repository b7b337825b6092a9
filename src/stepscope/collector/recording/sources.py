"""Stores copies of the user's own source files that the session names, so that sources accompany it.

Bounded (200 files of 1 MB), masked, never a framework's, an interpreter's or an installed package's file.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.collector.launch.mask import mask_source
from stepscope.wire.env import ARM_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.store.writer import SessionWriter

MAX_FILES = 200
MAX_BYTES = 1_000_000
_OWN = Path(__file__).resolve().parents[2]
_RUN_PREFIX = "stepscope-"
_FOREIGN_PARTS = frozenset({"site-packages", "dist-packages"})


def is_user_file(name: str) -> bool:
    """Whether a path may be the user's own source: absolute, real, Python, not installed, not the interpreter's."""
    if not name.startswith("/") or not name.endswith((".py", ".pyw")):
        return False
    path = Path(name)
    parts = path.parts
    if _FOREIGN_PARTS.intersection(parts) or path.is_relative_to(_OWN):
        return False
    if any(part.startswith(_RUN_PREFIX) and inner == ARM_NAME for part, inner in pairwise(parts)):
        return False
    return not any(
        before in ("lib", "lib64") and part.startswith(("python3", "pypy3")) for before, part in pairwise(parts)
    )


def store_sources(writer: SessionWriter, names: Iterable[str], cwd: str) -> list[str]:
    """Copy the sources; return lines about those omitted.

    Args:
        writer: the session's writer.
        names: files that records and log lines name.
        cwd: the job's working directory: files below it come first.
    """
    wanted = sorted({n for n in names if is_user_file(n)}, key=lambda n: (not n.startswith(cwd + "/"), n))
    problems = []
    if len(wanted) > MAX_FILES:
        problems.append(
            f"{len(wanted) - MAX_FILES} of {len(wanted)} source files were not stored: {MAX_FILES} are kept"
        )
    index = []
    for number, name in enumerate(wanted[:MAX_FILES]):
        try:
            path = Path(name)
            if not path.is_file():
                continue
            with path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            problems.append(f"{name} was not stored: {error.strerror}")
            continue
        if len(data) > MAX_BYTES:
            problems.append(f"{name} was not stored: larger than {MAX_BYTES} bytes")
            continue
        file = f"{number:03d}-{_safe(path.name)}"
        writer.write_source(file, mask_source(data.decode("utf-8", "replace")).encode())
        index.append({"path": name, "file": file})
    if index:
        writer.write_source("index.json", json.dumps({"files": index}, indent=1).encode())
    return problems


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[-80:]
