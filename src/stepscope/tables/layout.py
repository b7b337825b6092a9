"""Names inside a session directory, and the manifest.

Imports neither numpy nor pyarrow: the launcher uses it before the job has started.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from typing import TYPE_CHECKING

from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".stepscope"
"""Suffix of a session directory's name."""
PACKED_SUFFIX = ".stepscope.zip"
"""Suffix of a packed session's name."""

ZIP_SUFFIX = ".zip"
"""Suffix of a packed session under any name that the user chose."""

MANIFEST = "manifest.json"
WORKERS = "workers"
MEMBERS = "members"
TABLES = "tables"
CAPTURES = "captures"
SOURCES = "captures/sources"
SOURCES_INDEX = "captures/sources/index.json"
STACKS = "captures/stacks"
CALLS = "captures/calls"
OPTRACES = "captures/optraces"
MEMORY = "captures/memory"
REPLAY = "captures/replay.json"
EXPERIMENT = "captures/experiment.json"
PAGE_WALKS = "captures/page_walks.json"
CALLS_PATTERN = re.compile(r"[0-9]+\.json")
STACKS_PATTERN = MEMORY_PATTERN = re.compile(r"[0-9A-Za-z_.-]+\.parquet")

RECORDS = "records"
EVENTS = "events"
GRAPHS = "graphs"
RIVAL_NAMES = "rival_names"
RESOURCE_NAMES = "resource_names"
WORKER_PATTERN = re.compile(r"[0-9A-Za-z_.-]+")
MEMBER_PATTERN = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z_.-]*\.stepscope")


def segment_name(stem: str, first: int, last: int) -> str:
    """The file name of a segment that holds the numbers ``first`` to ``last``."""
    return f"{stem}-{first:012d}-{last:012d}.parquet"


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: readers see the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def key_of(path: Path) -> str:
    """The key by which addresses name the session at an absolute path without links."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def is_session(path: Path) -> bool:
    """Whether a directory holds a session."""
    return (path / MANIFEST).is_file()


def claim(path: Path, option: str = "--session") -> None:
    """Make the directory of a new session; two runs never share one. ``option``: the one that chooses another place.

    Raises:
        SessionError: the path exists already.
        OSError: it cannot be made.
    """
    try:
        path.mkdir(mode=0o755)
    except FileExistsError:
        if path.is_dir() and not any(path.iterdir()):
            return
        raise SessionError(f"{path} already exists; expected a new directory: choose another with {option}") from None
