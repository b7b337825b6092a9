"""Verify listed packed sessions against their digests in the background: one after the other, each once.

Opening a large one does not wait for this; an entry is also verified whenever it is read.
"""

from __future__ import annotations

import os
from queue import SimpleQueue
from threading import Lock, Thread, get_native_id
from typing import TYPE_CHECKING

from stepscope.store import bundle
from stepscope.tables.errors import StepscopeError

if TYPE_CHECKING:
    from pathlib import Path

    Stamp = tuple[int, ...]

NICE = 10
"""Niceness of the verifying thread, so that requests come first."""


class PackChecks:
    """Known state of packed files; thread-safe."""

    def __init__(self) -> None:
        """Start empty; the thread starts with the first file."""
        self._known: dict[Path, tuple[Stamp, str]] = {}
        self._waiting: SimpleQueue[tuple[Path, Stamp]] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    def problem(self, path: Path, stamp: Stamp) -> str:
        """Why the file cannot be trusted; empty: it is fine, or not verified yet.

        ``stamp`` changes when the file does; it is then verified again.
        """
        with self._lock:
            known = self._known.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            self._known[path] = (stamp, "")
            self._waiting.put((path, stamp))
            if self._thread is None:
                self._thread = Thread(target=self._check, name="stepscope-packs", daemon=True)
                self._thread.start()
        return ""

    def _check(self) -> None:
        os.setpriority(os.PRIO_PROCESS, get_native_id(), max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        while True:
            path, stamp = self._waiting.get()
            problem = _problem_of(path)
            with self._lock:
                if self._known[path][0] == stamp:
                    self._known[path] = (stamp, problem)


def _problem_of(path: Path) -> str:
    try:
        with bundle.PackedFiles(path) as files:
            files.check()
    except (StepscopeError, OSError) as error:
        return str(error)
    return ""
