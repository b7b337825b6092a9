"""The sessions that a server shows: those in some folders, and those of running jobs. Read-only.

A session is identified by a key derived from its path; an address can name nothing else. The list comes from each
session's manifest and stored report, without analysing or completing it; both are read again when they change. Damage
found when opening a session or in the background is shown in the list.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stepscope.launcher import jobs
from stepscope.model.api.rest_api import Job, SessionBrief
from stepscope.model.api.status import LiveFinding
from stepscope.model.report.report import SessionSummary
from stepscope.model.session.session import Manifest
from stepscope.server.pack_checks import PackChecks
from stepscope.server.session_labels import SessionLabels
from stepscope.store import bundle
from stepscope.tables import layout
from stepscope.tables.errors import StepscopeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.launcher.jobs import RunningJob

MAX_SESSIONS = 10_000
"""Most sessions per folder."""
MAX_REPORT_BYTES = 32 << 20
MAX_MANIFEST_BYTES = 16 << 20
MAX_REMEMBERED = 1_000
"""Most sessions outside the folders, of jobs seen running."""
REPORT = "report.json"
_ENDINGS = (layout.SUFFIX, layout.PACKED_SUFFIX)


class _Cost(msgspec.Struct, frozen=True):
    ratio: float = 0.0


class _Place(msgspec.Struct, frozen=True):
    file: str = ""
    line: int = 0
    function: str = ""


class _Finding(msgspec.Struct, frozen=True):
    code: str
    title: str
    severity: str
    cost: _Cost = _Cost()
    where: tuple[_Place, ...] = ()


class _TraceSteps(msgspec.Struct, frozen=True):
    count: int
    median_ns: int


class _Trace(msgspec.Struct, frozen=True):
    steps: tuple[_TraceSteps, ...] = ()


class _Report(msgspec.Struct, frozen=True):
    """The part of a report that the list shows."""

    session: SessionSummary
    findings: tuple[_Finding, ...]
    op_traces: tuple[_Trace, ...] = ()

    @property
    def steps(self) -> tuple[int, float | None]:
        """Number of steps, and their rate: those of the file that shows most of them where nothing was measured."""
        said, shown = self.session, [trace.steps[0] for trace in self.op_traces if trace.steps]
        if said.processes or said.steps or not shown:
            return said.steps, said.throughput.steps_per_s
        most = max(shown, key=lambda steps: steps.count)
        return most.count, 1e9 / most.median_ns if most.median_ns else None


ROLES = {"training": "training", "evaluation": "evaluation", "prediction": "prediction"}
"""Kinds of steps that are a purpose."""
UNKNOWN = (-1.0, "")
SORTS: dict[str, Callable[[SessionBrief], tuple[float, str]]] = {
    "started": lambda b: (b.started_unix_s or -1.0, ""),
    "name": lambda b: (0.0, (b.label.name or b.name).casefold()),
    "state": lambda b: (0.0, b.state),
    "took": lambda b: (b.wall_ns or -1.0, ""),
    "steps": lambda b: (b.steps or -1.0, ""),
    "steps_per_s": lambda b: (b.steps_per_s or -1.0, ""),
    "samples_per_s": lambda b: (b.samples_per_s or -1.0, ""),
    "cost": lambda b: (b.top.cost_ratio if b.top is not None else -1.0, ""),
}
"""What a list of sessions can be sorted by, or ``UNKNOWN``."""
_MANIFEST = msgspec.json.Decoder(Manifest)
_REPORT = msgspec.json.Decoder(_Report)
"""Created at import, by one thread (see ``launcher.jobs``)."""


class ListedSession(Struct, frozen=True, kw_only=True):
    """A session that clients can request."""

    key: str
    path: Path
    job: RunningJob | None = None
    """The job that writes it, while it runs."""


class SessionCatalogue:
    """All sessions that clients can request."""

    def __init__(self, roots: Sequence[Path], labels: SessionLabels | None = None) -> None:
        """Show these sessions and those in these folders; ``labels``: what the user has written to them."""
        self.labels = labels or SessionLabels()
        self._roots = tuple(Path(os.path.realpath(root)) for root in roots)
        self._briefs: dict[Path, tuple[tuple[int, ...], SessionBrief]] = {}
        self._remembered: dict[str, Path] = {}
        self._paths: dict[str, Path] = {}
        """Result of the last scan."""
        self._looks = jobs.JobWatch()
        self._packs = PackChecks()
        self._damaged: dict[Path, str] = {}
        """Damage found when opening finished sessions."""
        self._lock = Lock()

    def running(self) -> list[Job]:
        """The running jobs, oldest first."""
        return [job_of(job) for job in self._looks.running()]

    def entries(self) -> dict[str, ListedSession]:
        """All sessions by key."""
        live = {Path(job.status.session): job for job in self._looks.running() if job.status.session}
        with self._lock:
            for path in live:
                if len(self._remembered) < MAX_REMEMBERED and path.is_absolute():
                    self._remembered[layout.key_of(path)] = path
            remembered = list(self._remembered.values())
        found: dict[str, ListedSession] = {}
        for path in [*remembered, *self._in_roots()]:
            if _is_session(path):
                found[layout.key_of(path)] = ListedSession(key=layout.key_of(path), path=path, job=live.get(path))
        self._paths = {key: entry.path for key, entry in found.items()}
        return found

    def find(self, key: str) -> ListedSession | None:
        """The session of a key."""
        path = self._paths.get(key)
        if path is None or not _is_session(path):
            return self.entries().get(key)
        job = next((job for job in self._looks.running() if job.status.session == str(path)), None)
        return ListedSession(key=key, path=path, job=job)

    def _in_roots(self) -> Iterator[Path]:
        for root in self._roots:
            if layout.is_session(root) or root.is_file():
                yield root
                continue
            try:
                found = sorted(root.iterdir())
            except OSError:
                continue
            ours = [p for p in found if not p.name.startswith(".") and (p.name.endswith(_ENDINGS) or _is_pack(p))]
            yield from ours[:MAX_SESSIONS]

    def briefs(
        self, words: str = "", state: str = "", sort: str = "started", *, up: bool = False
    ) -> list[SessionBrief]:
        """The sessions whose name, tags, note, command, framework, state or finding hold every one of ``words``.

        ``sort``: one of ``SORTS``, the largest first, or with ``up`` the smallest; those without a value come last.
        """
        wanted = words.casefold().split()
        found = [self.brief(entry) for entry in self.entries().values()]
        kept = [b for b in found if (not state or b.state == state) and all(w in _text(b) for w in wanted)]
        kept.sort(key=lambda b: (-b.started_unix_s, b.key))
        value = SORTS[sort]
        known = [b for b in kept if value(b) != UNKNOWN]
        known.sort(key=value, reverse=not up)
        return [*known, *(b for b in kept if value(b) == UNKNOWN)]

    def brief(self, entry: ListedSession) -> SessionBrief:
        """The current list entry of one session."""
        stamp = _stamp(entry.path)
        kept = self._briefs.get(entry.path)
        if kept is None or kept[0] != stamp:
            kept = self._briefs[entry.path] = (stamp, _read(entry))
        problem = self._damaged.get(entry.path, "") if entry.job is None else ""
        if kept[1].packed and not problem:
            problem = self._packs.problem(entry.path, stamp)
        brief = _with_job(_with_damage(kept[1], problem), entry.job)
        return msgspec.structs.replace(brief, label=self.labels.of(brief.id or brief.key))

    def opened(self, entry: ListedSession, problem: str) -> None:
        """Record damage found in an opened session; empty: none so far."""
        if problem:
            self._damaged[entry.path] = problem
        else:
            self._damaged.pop(entry.path, None)


def _is_session(path: Path) -> bool:
    return layout.is_session(path) or path.is_file()


def _is_pack(path: Path) -> bool:
    """Whether a zip file is a session that was packed under another name."""
    return path.suffix == layout.ZIP_SUFFIX and bundle.begins_as_packed(path)


def job_of(job: RunningJob) -> Job:
    """A running job, as displayed."""
    session = Path(job.status.session)
    return Job(
        pid=job.status.pid,
        name=job.name,
        user=job.user,
        state=job.state,
        session=layout.key_of(session) if session.is_absolute() and layout.is_session(session) else "",
        status=job.status,
        arguments=jobs.script_of(job.status.command)[1],
        role=ROLES.get(job.status.makers[0].kind, "") if job.status.makers else "",
    )


def shown(text: str | Path) -> str:
    """A path as UTF-8."""
    return os.fsencode(text).decode("utf-8", "replace")


def _text(brief: SessionBrief) -> str:
    top = f"{brief.top.code} {brief.top.title} {brief.top.place}" if brief.top else ""
    label = brief.label
    parts = (
        brief.name,
        label.name,
        *label.tags,
        label.note,
        brief.role,
        *brief.command,
        brief.framework,
        brief.state,
        brief.host,
        top,
    )
    return " ".join(parts).casefold()


def _stamp(path: Path) -> tuple[int, ...]:
    stamp: list[int] = []
    for file in (path,) if path.is_file() else (path / layout.MANIFEST, path / REPORT):
        try:
            about = file.stat()
            stamp += [about.st_mtime_ns, about.st_size, about.st_ino]
        except OSError:
            stamp.append(-1)
    return tuple(stamp)


def _read(entry: ListedSession) -> SessionBrief:
    path = entry.path
    name = path.name.removesuffix(layout.PACKED_SUFFIX).removesuffix(layout.ZIP_SUFFIX).removesuffix(layout.SUFFIX)
    brief = SessionBrief(key=entry.key, name=shown(name), path=shown(path), state="damaged", packed=path.is_file())
    try:
        if path.is_dir():
            return _of_files(brief, bundle.DirectoryFiles(path))
        with bundle.PackedFiles(path) as files:
            return _of_files(brief, files)
    except (StepscopeError, OSError, ValueError, msgspec.DecodeError) as error:
        return msgspec.structs.replace(brief, problem=shown(str(error)))


def _of_files(brief: SessionBrief, files: bundle.Files) -> SessionBrief:
    manifest = _MANIFEST.decode(files.read(layout.MANIFEST, MAX_MANIFEST_BYTES))
    brief = msgspec.structs.replace(
        brief,
        id=manifest.id,
        arguments=jobs.script_of(manifest.command)[1],
        state="unfinished" if manifest.state == "running" else manifest.state,
        command=manifest.command,
        mode=manifest.mode,
        host=manifest.host.name,
        role=f"{len(manifest.members)} tasks" if manifest.members else "",
        started_unix_s=manifest.started_unix_ns / 1e9,
        wall_ns=manifest.ended_ns,
        exit_code=manifest.exit_code,
    )
    try:
        report = _REPORT.decode(files.read(REPORT, MAX_REPORT_BYTES))
    except FileNotFoundError:
        return brief
    except (OSError, ValueError, msgspec.DecodeError) as error:
        return msgspec.structs.replace(brief, problem=f"{REPORT}: {shown(str(error))}")
    said, (count, rate) = report.session, report.steps
    return msgspec.structs.replace(
        brief,
        framework=said.framework,
        role=brief.role or _role(said),
        steps=count,
        steps_per_s=rate,
        samples_per_s=said.throughput.samples_per_s,
        findings=len(significant := [one for one in report.findings if one.severity != "info"]),
        top=_top(significant),
    )


def _role(said: SessionSummary) -> str:
    kind = next((ROLES.get(maker.kind, "") for maker in said.step_makers if maker.main), "")
    member = next((one.member for one in said.members if one.role == "steps" and one.member), "")
    return ", ".join(filter(None, (kind, member)))


def _top(findings: Sequence[_Finding]) -> LiveFinding | None:
    if not findings:
        return None
    first = findings[0]
    place = first.where[0] if first.where else None
    return LiveFinding(
        code=first.code,
        title=first.title,
        severity=first.severity,
        cost_ratio=first.cost.ratio,
        place=f"{place.file}:{place.line} {place.function}".strip() if place else "",
    )


def _with_damage(brief: SessionBrief, problem: str) -> SessionBrief:
    """The end of its job does not determine whether it can be read now."""
    if not problem or brief.state == "damaged":
        return brief
    return msgspec.structs.replace(brief, state="damaged", problem=shown(problem))


def _with_job(brief: SessionBrief, job: RunningJob | None) -> SessionBrief:
    """The status of a running job is newer than the stored report."""
    if job is None or brief.state == "damaged":
        return brief
    status = job.status
    return msgspec.structs.replace(
        brief,
        state="running",
        command=status.command or brief.command,
        framework=status.framework or brief.framework,
        started_unix_s=status.started_unix_s or brief.started_unix_s,
        wall_ns=int(max(0.0, status.updated_unix_s - status.started_unix_s) * 1e9),
        steps=status.steps,
        steps_per_s=status.steps_per_s,
        samples_per_s=status.samples_per_s,
        findings=status.findings if status.analysed_unix_s else None,
        top=status.top,
        pid=status.pid,
    )
