"""The use cases ``ps`` and ``top``: the running jobs of this user; for root, of all users.

A job is a run directory whose owner is alive; its sidecar publishes what is shown. Neither numpy nor pyarrow is
loaded. Another user's files are limited in size and shown without control characters.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stepscope.launcher import give_way, mask, run_directories, rundir
from stepscope.model.api.status import MAX_BYTES, Status
from stepscope.tables.errors import TargetError, UsageError
from stepscope.tables.units import format_ns
from stepscope.wire.env import GAVE_WAY_NAME, STATUS_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

_STATUS = msgspec.json.Decoder(Status)
"""Created at import, by one thread: two threads that first decode a type at the same time crash (msgspec 0.22)."""
STALE_S = 30.0
"""Age of a status from which the sidecar counts as stopped or dead."""
_MAX_TEXT = 4_000
_OPTIONS = frozenset({"-m", "-u", "-O", "-B", "-E", "-s"})
MAX_KNOWN = 1_000
"""Number of cached statuses; beyond the number of running jobs they belong to jobs that have ended."""


class RunningJob(Struct, frozen=True, kw_only=True):
    """One job with its newest status."""

    run: Path
    status: Status
    user: str
    age_s: float
    """Age of the status; -1: none has been published yet."""
    left: bool = False
    """Flag: its collector has given its memory back to the job, and publishes no more."""

    @property
    def name(self) -> str:
        """Short name of the job: its script or module."""
        return script_of(self.status.command)[0] or "?"

    @property
    def state(self) -> str:
        """starting, running, ending, or silent if the sidecar no longer publishes."""
        if self.left:
            return "silent"
        if self.age_s < 0:
            return "starting" if time.time() - self.status.started_unix_s < STALE_S else "silent"
        return self.status.state if self.age_s < STALE_S else "silent"


def script_of(command: Sequence[str]) -> tuple[str, str]:
    """Script or module of a command, without its folder, and what follows it."""
    at = 0
    if command and Path(command[0]).name.startswith(("python", "pypy")):
        at = next((i for i, word in enumerate(command[1:], 1) if word not in _OPTIONS), 0)
    return (Path(command[at]).name if command else ""), " ".join(command[at + 1 :])


def running() -> list[RunningJob]:
    """All jobs that this user may see, oldest first."""
    return JobWatch().running()


class JobWatch:
    """Watches the running jobs; an unchanged status is decoded only once."""

    def __init__(self) -> None:
        """Start without any known status."""
        self._known: dict[Path, tuple[tuple[int, ...], Status]] = {}

    def running(self) -> list[RunningJob]:
        """As ``jobs.running``."""
        uid = os.getuid()
        jobs = [job for run in run_directories.listed(None if uid == 0 else uid) if (job := self.read(run)) is not None]
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        return sorted(jobs, key=lambda job: (job.status.started_unix_s, job.status.pid))

    def read(self, run: Path) -> RunningJob | None:
        """The job of a run directory; None when it has ended."""
        job = rundir.read_job(run)
        if job is None or not run_directories.lives(run):
            return None
        age_s = -1.0
        try:
            about = (run / STATUS_NAME).stat()
            stamp = (about.st_mtime_ns, about.st_size, about.st_ino, job.pid, job.start_ticks)
            known = self._known.get(run)
            if known is None or known[0] != stamp:
                known = self._known[run] = (stamp, _status(run, job))
            status = known[1]
            age_s = time.time() - about.st_mtime
        except (OSError, msgspec.DecodeError):
            status = Status(mode=job.mode, command=tuple(mask.mask_command(job.command)), cwd=job.cwd)
            status = msgspec.structs.replace(status, started_unix_s=_made(run), session=rundir.session_of(run) or "")
            status = _of_job(status, run, job)
        found = RunningJob(run=run, status=status, user=_user(status.uid), age_s=age_s, left=_left(run, age_s))
        return _without_now(found) if found.state == "silent" else found


def _left(run: Path, age_s: float) -> bool:
    """Whether a collector gave way since it last published; the one that stores the rest at the end publishes again."""
    try:
        gave_way_s = time.time() - (run / GAVE_WAY_NAME).stat().st_mtime
    except OSError:
        return False
    return age_s < 0 or age_s > gave_way_s


def _without_now(job: RunningJob) -> RunningJob:
    """The job without figures that were of the last seconds when its collector last published, and since when."""
    old = job.status
    gave_way = give_way.read(job.run) if job.left else None
    why = "its collector has left its memory to the job" if job.left else "its collector publishes no more"
    why = (gave_way.off if gave_way is not None else "") or why
    since = f"nothing is known of the last {format_ns(job.age_s * 1e9)}: {why}" if job.age_s >= 0 else why
    status = msgspec.structs.replace(
        old,
        phase="",
        progress=None,
        hang=None,
        steps_per_s=None,
        samples_per_s=None,
        anatomy=(),
        tasks=tuple(msgspec.structs.replace(task, per_s=None) for task in old.tasks),
        makers=tuple(msgspec.structs.replace(maker, rate=None) for maker in old.makers),
        sidecar_core_ratio=0.0,
        bytes_per_hour=None,
        gpus=(),
        problems=(*old.problems, since),
    )
    return replace(job, status=status)


def _status(run: Path, job: rundir.JobFacts) -> Status:
    with (run / STATUS_NAME).open("rb") as stream:
        return _of_job(_STATUS.decode(stream.read(MAX_BYTES)), run, job)


def _of_job(status: Status, run: Path, job: rundir.JobFacts) -> Status:
    return _clean(msgspec.structs.replace(status, pid=job.pid, start_ticks=job.start_ticks, uid=_owner(run)))


def _made(run: Path) -> float:
    try:
        return run.stat().st_mtime
    except OSError:
        return 0.0


def _owner(run: Path) -> int:
    return run_directories.owner_of(run.name)


def _user(uid: int) -> str:
    import pwd  # reports are read where nothing runs, without it

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _clean(status: Status) -> Status:
    """A status without control characters in its texts, which a terminal would interpret."""
    plain = msgspec.to_builtins(status)
    return msgspec.convert(_without_controls(plain), type=Status)


def _without_controls(value: object) -> object:
    if isinstance(value, str):
        return "".join(c if c.isprintable() else " " for c in value[:_MAX_TEXT])
    if isinstance(value, list | tuple):
        return [_without_controls(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_controls(item) for key, item in value.items()}
    return value


def find(wanted: str) -> RunningJob:
    """The job that a user means: by pid, by session path or name, or by script.

    Raises:
        TargetError: there is none.
        UsageError: there are several.
    """
    jobs = running()
    by = [job for job in jobs if wanted in (str(job.status.pid), job.status.session, Path(job.status.session).name)]
    by = by or [job for job in jobs if wanted in (job.name, Path(job.status.session).name.removesuffix(".stepscope"))]
    by = by or [job for job in jobs if os.path.realpath(wanted) == job.status.session]
    if len(by) > 1:
        pids = ", ".join(str(job.status.pid) for job in by)
        raise UsageError(f"{wanted} matches several jobs, pids {pids}; expected one pid")
    if not by:
        raise TargetError(
            f"no running job matches {wanted}; expected a pid, session or script listed by `stepscope ps`"
        )
    return by[0]


def again(job: RunningJob) -> RunningJob | None:
    """The current state of the same job; None if it has ended."""
    return JobWatch().read(job.run)
