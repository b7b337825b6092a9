"""The other tasks of a joint capture: how those of this host are asked, and what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct, field

from stepscope.launcher import jobs
from stepscope.store.manifests import read_manifest
from stepscope.tables.errors import SessionError
from stepscope.wire import commands

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.collector.host_members import MemberSession
    from stepscope.model.api.capture_ask import CaptureAsk
    from stepscope.model.session.session import CaptureInfo
    from stepscope.tables.records import I64

SERVER = "ps"


class Task(Struct, kw_only=True):
    """Another task of the job."""

    name: str
    entry: MemberSession | None = None
    """Its session on this host; None: it is a process of this one, or on another host."""
    worker: str = ""
    """Key of that process."""
    host: str = ""
    """The other host."""
    missed: str = ""
    """Why it is not in the capture."""
    ends: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    """Begin of its first step, and end of each, by this host's clock."""
    steps: int = -1
    """Number of steps that it traced; -1: not known yet."""
    unsure_ns: int = 0
    """How far these times may be off: of another host, by what is known of its clock."""

    @property
    def open(self) -> bool:
        """Whether what became of it is not known yet."""
        return self.steps < 0 and not self.missed

    @property
    def serves(self) -> bool:
        """Whether it is a parameter server, or several of them."""
        return self.name.startswith(SERVER)


def of_entries(entries: Iterable[MemberSession]) -> list[Task]:
    """The tasks of other sessions on this host: a session may have several."""
    return [Task(name=name, entry=entry) for entry in entries for name in dict.fromkeys(entry.names)]


def ask_all(tasks: Iterable[Task], ask: CaptureAsk) -> None:
    """Hand the request to the sidecars of other sessions, once to each."""
    asked: dict[str, str] = {}
    for task in tasks:
        if task.entry is not None:
            if task.entry.run not in asked:
                asked[task.entry.run] = _send(task.entry, ask)
            task.missed = asked[task.entry.run]


def _send(entry: MemberSession, ask: CaptureAsk) -> str:
    """Return why that failed, or ""."""
    try:
        commands.send(str(Path(entry.run) / commands.REQUESTS_NAME), msgspec.to_builtins(ask), ask.id)
    except (OSError, ValueError) as error:
        return f"its sidecar takes no requests: {error}"
    return ""


def look(task: Task, entry: MemberSession, joint: str) -> None:
    """See what has become of the capture of another session."""
    try:
        manifest = read_manifest(Path(entry.session))
    except SessionError:  # it is written at this moment, or has gone
        manifest = None
    made = [capture for capture in (manifest.captures if manifest is not None else ()) if capture.joint == joint]
    if manifest is not None and len(entry.names) > 1:
        keys = {info.key for info in manifest.workers if info.member is not None and info.member.name == task.name}
        made = [capture for capture in made if capture.worker in keys]
    if made and manifest is not None:
        note(task, made[0], manifest.origin_monotonic_ns)
        return
    job = jobs.JobWatch().read(Path(entry.run))
    if job is None:
        task.missed = "it has ended"
        return
    task.missed = next((c.text for c in job.status.captures if c.request == joint and c.state == "failed"), "")


def note(task: Task, done: CaptureInfo, origin_ns: int) -> None:
    """What became of a task's capture, whose times count from ``origin_ns``."""
    if done.outcome != "done":
        task.missed = done.text or done.outcome
        return
    task.steps = done.steps
    task.ends = np.array(done.ends_ns, np.int64) + origin_ns
