"""Timelines of sessions: built in separate processes, kept in the user's cache folder, opened on demand.

The timeline of a growing session is built again when an op trace was added, else only as often as a hundredth of one
core allows. The old one is served until the new one is ready.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections import OrderedDict
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stepscope.launcher import scratch
from stepscope.model.api.timeline import Timeline
from stepscope.server.open_sessions import LIVE_CORE_RATIO, LIVE_MIN_S, revision_of
from stepscope.store import span_cache
from stepscope.tables import layout
from stepscope.tables.errors import SessionError, UsageError

if TYPE_CHECKING:
    from stepscope.server.session_catalogue import ListedSession
    from stepscope.store.span_cache import MappedCache

MAX_OPEN = 8
MAX_BYTES = 4 << 30
"""Disk limit for all cached timelines; the least recently used are deleted."""
ABANDONED_S = 86_400.0
"""Age from which an unfinished build counts as left by a killed process."""
RETRY_S = 10.0
"""Delay before a failed build is retried: the disk may have been full."""
_CODE = (
    "import sys; sys.path.pop(0); import json; sys.path[:0] = json.loads(sys.argv.pop(1)); "
    "from stepscope.server.timelines.timeline_build import main; sys.exit(main(sys.argv[1:]))"
)
"""Prevents imports from the folder in which the server was started."""


class Building:
    """A timeline being built."""

    def __init__(self, entry: ListedSession, folder: Path, build: str) -> None:
        """Start a process that builds it into ``folder``."""
        self.build = build
        self.folder = folder
        self.ended_s = 0.0
        self.cpu_s = 0.0
        self.ratio = 0.0
        self.doing = "starting"
        self.problem = ""
        self.done = Event()
        path = [p for p in sys.path if p]
        self._process = subprocess.Popen(
            [sys.executable, "-E", "-c", _CODE, json.dumps(path), str(entry.path), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        Thread(target=self._follow, name="stepscope-timeline", daemon=True).start()

    def _follow(self) -> None:
        process = self._process
        if process.stdout is not None:
            for line in process.stdout:
                ratio, _, words = line.strip().partition(" ")
                try:
                    self.ratio, self.doing = float(ratio), words
                    if self.ratio == 1.0:
                        self.cpu_s = float(words)
                except ValueError:
                    continue
        _, said = process.communicate()
        if process.returncode:
            self.problem = (said.strip().splitlines() or [f"the build process ended with {process.returncode}"])[-1]
        self.ended_s = time.monotonic()
        self.done.set()

    def stop(self) -> None:
        """End it."""
        if not self.done.is_set():
            self._process.terminate()
            self.done.wait(5.0)


class _Kept(Struct):
    """State of one session's timeline."""

    reader: MappedCache | None = None
    build: str = ""
    traces: tuple[str, ...] = ()
    born_s: float = 0.0
    cpu_s: float = 0.0
    building: Building | None = None


class Timelines:
    """The timelines opened by a server."""

    def __init__(self, root: Path | None = None) -> None:
        """Start empty. ``root``: folder to use instead of the user's cache folder."""
        self._root = root
        self._temporary: Path | None = None
        self._kept: dict[str, _Kept] = {}
        self._readers: OrderedDict[str, MappedCache] = OrderedDict()
        self._lock = Lock()
        self._shelf = Lock()
        """Protects ``_readers`` only and is held briefly, so that requests for tiles do not wait for a disk."""

    def state(self, entry: ListedSession, wait_s: float = 0.0) -> Timeline:
        """The timeline of a session, or its progress; the first request starts the build.

        Raises:
            SessionError: the session no longer exists.
        """
        with self._lock:
            kept = self._kept.setdefault(entry.key, _Kept())
            self._renew(entry, kept)
            building = kept.building
        if building is not None and kept.reader is None and wait_s:
            building.done.wait(wait_s)
            with self._lock:
                self._renew(entry, kept)
        return self._told(kept)

    def reader(self, key: str, build: str) -> MappedCache:
        """An opened timeline of a session.

        Raises:
            UsageError: there is no build of that name.
        """
        with self._shelf:
            found = self._readers.get(build)
            if found is None or key not in self._kept:
                raise UsageError(f"no timeline {build} of session {key}; expected the build that /timeline says")
            self._readers.move_to_end(build)
            return found

    def close(self) -> None:
        """Stop running builds, and delete timelines kept only for the lifetime of the server."""
        with self._lock:
            for kept in self._kept.values():
                if kept.building is not None:
                    kept.building.stop()
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def _renew(self, entry: ListedSession, kept: _Kept) -> None:
        building = kept.building
        if building is not None:
            if not building.done.is_set():
                return
            if building.problem:
                if time.monotonic() - building.ended_s < RETRY_S:
                    return
            else:
                self._open(kept, building.folder, building.build, building.cpu_s)
            kept.building = None
        traces = _traces(entry.path)
        if entry.job is not None and kept.reader is not None and traces == kept.traces and _young(kept):
            return
        build = _build_of(entry.path)
        if build == kept.build and kept.reader is not None:
            return
        folder = self._folder() / build
        kept.traces = traces
        if (folder / span_cache.INDEX).is_file():
            try:
                self._open(kept, folder, build, 0.0)
            except SessionError:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                return
        self._prune()
        kept.building = Building(entry, folder, build)

    def _open(self, kept: _Kept, folder: Path, build: str, cpu_s: float) -> None:
        reader = span_cache.MappedCache(folder)
        os.utime(folder)
        old = kept.reader
        kept.reader, kept.build, kept.born_s, kept.cpu_s = reader, build, time.monotonic(), cpu_s
        with self._shelf:
            self._readers[build] = reader
            while len(self._readers) > MAX_OPEN:
                self._readers.popitem(last=False)
        if old is not None and old.folder != folder:  # pages that still show it have it mapped
            shutil.rmtree(old.folder, ignore_errors=True)

    def _told(self, kept: _Kept) -> Timeline:
        building = kept.building
        if kept.reader is not None:
            renewing = building is not None and not building.problem
            return msgspec.structs.replace(kept.reader.index.timeline, build=kept.build, renewing=renewing)
        if building is None:
            return Timeline(state="failed", doing="it could not be opened")
        if building.problem:
            return Timeline(state="failed", doing=building.problem)
        return Timeline(state="building", progress_ratio=building.ratio, doing=building.doing)

    def _folder(self) -> Path:
        if self._root is None:
            self._root = _cache_folder()
        if self._root is None:
            self._root = self._temporary = Path(tempfile.mkdtemp(prefix=scratch.prefix("timelines")))
        return self._root

    def _prune(self) -> None:
        """Delete the least recently used timelines down to the limit."""
        left = MAX_BYTES
        with self._shelf:
            mapped = {reader.folder for reader in self._readers.values()}
        for folder, size, age_s in _kept_folders(self._folder()):
            abandoned = folder.name.startswith(".") and age_s > ABANDONED_S
            left -= size
            if abandoned or (left < 0 and folder not in mapped):
                shutil.rmtree(folder, ignore_errors=True)


def _kept_folders(root: Path) -> list[tuple[Path, int, float]]:
    """(folder, bytes, seconds since last use) of every timeline, the most recently used first."""
    found = []
    for folder in root.iterdir():
        try:
            size = sum(file.stat().st_size for file in folder.iterdir())
            found.append((folder, size, time.time() - folder.stat().st_mtime))
        except OSError:  # another server has dropped it meanwhile
            continue
    return sorted(found, key=lambda kept: kept[2])


def _young(kept: _Kept) -> bool:
    """Whether it is too early to build it again; empty timelines are retried soon."""
    empty = kept.reader is not None and kept.reader.index.timeline.spans == 0
    return time.monotonic() - kept.born_s < (LIVE_MIN_S if empty else max(LIVE_MIN_S, kept.cpu_s / LIVE_CORE_RATIO))


def _traces(path: Path) -> tuple[str, ...]:
    """Op traces of a session directory."""
    folder = path / layout.OPTRACES
    return tuple(sorted(f.name for f in folder.iterdir() if not f.name.startswith("."))) if folder.is_dir() else ()


def _build_of(path: Path) -> str:
    about = f"{span_cache.SCHEMA} {path.resolve()} {revision_of(path)}"
    return hashlib.sha256(about.encode("utf-8", "surrogateescape")).hexdigest()[:20]


def _cache_folder() -> Path | None:
    """Folder in the user's cache; None if it is not available or writable by others."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "stepscope" / "timelines"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = folder.stat()
    except OSError:
        return None
    mine = about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return folder if mine and os.access(folder, os.W_OK) else None
