"""The newest moment that a session knows of: when a run ended at the earliest, if nothing says when it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.store import tables
from stepscope.store.segments import counting
from stepscope.tables import layout

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stepscope.tables.records import I64

_SAMPLED = ("host", "process")
"""Tables with a row for each look at the job."""


def newest_ns(root: Path) -> int:
    """End of the newest record, log line or sample that is stored, in ns since the session's start; 0: none is."""
    found = [_newest(root / layout.TABLES, stem) for stem in _SAMPLED]
    workers = root / layout.WORKERS
    for folder in sorted(workers.iterdir()) if workers.is_dir() else []:
        found += [_newest(folder, stem) for stem in (layout.RECORDS, layout.EVENTS)]
    return max(found, default=0)


def _newest(folder: Path, stem: str) -> int:
    """Newest time of a table: that of its last segment that can be read, because rows are stored as they come."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    for segment in reversed(counting(names, stem)):
        try:
            columns, _ = tables.read_columns(folder / segment.name)
            times = np.asarray(columns["at_ns"], np.int64) if "at_ns" in columns else _ends(columns)
        except (OSError, ValueError, KeyError):  # cut short by a full disk
            continue
        if len(times):
            return int(times.max())
    return 0


def _ends(columns: Mapping[str, object]) -> I64:
    return np.asarray(columns["start_ns"], np.int64) + np.asarray(columns["dur_ns"], np.int64)
