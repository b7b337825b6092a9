"""Sessions opened by a server: read and analysed once, cached while they are used. Read-only.

A finished session is read again when it changes. A session that is still being written is analysed again only as
often as a hundredth of one core allows, however many clients watch it.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import OrderedDict
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from stepscope import store
from stepscope._version import __version__
from stepscope.server.session_catalogue import MAX_REPORT_BYTES, REPORT
from stepscope.store import bundle
from stepscope.store.manifests import read_manifest
from stepscope.tables import layout
from stepscope.tables.errors import SessionError, StepscopeError

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.derive.view import SessionView
    from stepscope.model.report.report import Report
    from stepscope.model.session.session import Manifest, Session
    from stepscope.server.session_catalogue import ListedSession

MAX_OPEN = 4
"""Sessions kept in memory."""
MAX_ANSWERS = 32
"""Most cached answers per session, stored as they were sent."""
LIVE_CORE_RATIO = 0.01
"""Share of one core for analysing a growing session again."""
LIVE_MIN_S = 10.0
Stage = tuple[int, bool]
"""Of a running job: its finished captures, and whether the parts of its step are known."""
NO_STAGE: Stage = (0, False)


class OpenSession:
    """One session at one moment. Each part is computed once, on first use."""

    def __init__(self, path: Path, revision: str, stage: Stage = NO_STAGE) -> None:
        """Represent the session at ``path``; nothing is read yet. ``stage``: of its running job."""
        self.path = path
        self.stage = stage
        self.revision = revision
        """A tag that changes when the session does."""
        self.born_s = time.monotonic()
        self.cpu_s = 0.0
        """CPU time of reading and analysing it."""
        self.answers: dict[str, bytes] = {}
        """Answers by key of the request, shared by all clients."""
        self._lock = Lock()

    @cached_property
    def session(self) -> Session:
        """All data of the session.

        Raises:
            SessionError: it is damaged.
        """
        return self._timed_session()

    @cached_property
    def view(self) -> SessionView:
        """The view with all derived data.

        Raises:
            SessionError: it is damaged.
        """
        from stepscope.derive.view import SessionView

        return SessionView(self.session)

    @cached_property
    def report(self) -> Report:
        """Its report: the stored one if this version wrote it, else a new one.

        Raises:
            SessionError: it is damaged.
        """
        stored = self._stored_report()
        if stored is not None:
            return stored
        from stepscope.diagnosis import analyze
        from stepscope.report import json_report

        session = self.session
        began = time.thread_time()
        report = json_report.finite(analyze.report_of(session))
        self.cpu_s += time.thread_time() - began
        return report

    @cached_property
    def manifest(self) -> Manifest:
        """Its manifest.

        Raises:
            SessionError: it is damaged.
        """
        return read_manifest(self.path)

    @property
    def damage(self) -> str:
        """Damage found while reading it, in one sentence; empty: none so far."""
        session: Session | None = self.__dict__.get("session")
        if session is None or not session.lost_files:
            return ""
        more = f" and {len(session.lost_files) - 1} more" if len(session.lost_files) > 1 else ""
        return f"damaged: {self.path}: {session.lost_files[0]}{more} cannot be read; stepscope report shows why"

    def _timed_session(self) -> Session:
        began = time.thread_time()
        session = store.open_session(self.path)
        self.cpu_s += time.thread_time() - began
        return session

    def _stored_report(self) -> Report | None:
        from stepscope.report import json_report

        if self.manifest.state == "running" or self.manifest.stepscope_version != __version__:
            return None
        data = _report_bytes(self.path)
        try:
            return json_report.decode(data) if data else None
        except StepscopeError:  # damaged, or of another version: it is made anew
            return None

    def keep(self, word: str, answer: bytes) -> None:
        """Cache an answer; when there are too many, all are dropped."""
        if len(self.answers) >= MAX_ANSWERS:
            self.answers.clear()
        self.answers[word] = answer

    def locked(self) -> Lock:
        """Lock held while something is computed, so that it is computed only once."""
        return self._lock


def _report_bytes(path: Path) -> bytes:
    """The report stored in a session; empty without one."""
    try:
        if path.is_dir():
            return bundle.DirectoryFiles(path).read(REPORT, MAX_REPORT_BYTES)
        with bundle.PackedFiles(path) as files:
            return files.read(REPORT, MAX_REPORT_BYTES)
    except (OSError, ValueError):
        return b""


class OpenSessions:
    """The open sessions."""

    def __init__(self) -> None:
        """Start without open sessions."""
        self._open: OrderedDict[str, OpenSession] = OrderedDict()
        self._lock = Lock()

    def open(self, entry: ListedSession) -> OpenSession:
        """The current state of an entry's session.

        Raises:
            SessionError: it no longer exists.
        """
        with self._lock:
            kept = self._open.get(entry.key)
            if kept is not None and entry.job and _young(kept) and kept.stage == _stage(entry):
                self._open.move_to_end(entry.key)
                return kept
        now = revision_of(entry.path)
        with self._lock:
            kept = self._open.get(entry.key)
            if kept is None or kept.revision != now:
                kept = self._open[entry.key] = OpenSession(entry.path, now, _stage(entry))
            self._open.move_to_end(entry.key)
            while len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
            return kept


def _stage(entry: ListedSession) -> Stage:
    """What of its job is shown at once, whatever an analysis costs: captures that were asked for, the first steps."""
    if entry.job is None:
        return NO_STAGE
    status = entry.job.status
    return sum(capture.state == "done" for capture in status.captures), bool(status.anatomy)


def _young(opened: OpenSession) -> bool:
    """Whether it is shown as it is. One in which no steps were seen is looked at again soon: little was analysed."""
    report: Report | None = opened.__dict__.get("report")
    pause_s = opened.cpu_s / LIVE_CORE_RATIO if report is None or report.session.steps else 0.0
    return time.monotonic() - opened.born_s < max(LIVE_MIN_S, pause_s)


def revision_of(path: Path) -> str:
    """A tag that changes when a file of the session does. Cost: one directory listing per folder.

    Raises:
        SessionError: it no longer exists.
    """
    digest = hashlib.sha256(__version__.encode())
    try:
        if path.is_file():
            about = path.stat()
            digest.update(b"%d %d %d" % (about.st_mtime_ns, about.st_size, about.st_ino))
        else:
            workers = path / layout.WORKERS
            folders = [path, path / layout.TABLES, path / layout.CAPTURES, path / layout.STACKS, path / layout.OPTRACES]
            if workers.is_dir():
                folders += sorted(p for p in workers.iterdir() if p.is_dir())
            for folder in folders:
                digest.update(_look(folder))
    except OSError as error:
        raise SessionError(f"{path}: {error.strerror}; expected a session") from error
    return digest.hexdigest()[:20]


def _look(folder: Path) -> bytes:
    if not folder.is_dir():
        return b"-"
    with os.scandir(folder) as found:
        rows = sorted((os.fsencode(e.name), e.stat(follow_symlinks=False)) for e in found if e.is_file())
    return b"".join(b"%s %d %d\n" % (name, about.st_size, about.st_mtime_ns) for name, about in rows)
