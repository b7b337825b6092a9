"""Makes, describes and removes the run directory (layout: ``stepscope.wire.env``).

Light-weight on purpose: the launcher imports it before the job has started.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.native.cgroups import cgroup
from stepscope.native.process_stat import start_ticks
from stepscope.tables.errors import CaptureError
from stepscope.wire import peers, run_directory
from stepscope.wire.env import CONFIG_NAME, JOB_NAME, RUN_PREFIX, SIGNALLED_NAME
from stepscope.wire.ring import DEFAULT_SLOTS, MIN_SLOTS, RECORD_BYTES
from stepscope.wire.trials import CONFIG_KEY

if TYPE_CHECKING:
    from stepscope.launcher.trial import Trial

ENDED_NAME = "ended.json"
"""Name of the file that the launcher writes when the job has ended."""
SIDECAR_LOG = "sidecar.log"
LOCK_NAME = "sidecar.lock"
RING_DIVISOR = 64
"""Divisor of the memory that the job's control group may hold: a ring counts there, and takes no more of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The facts about a job at its start. ``start_ticks``, in clock ticks since boot, distinguishes reused pids.

    ``launcher_pid`` is 0 for an always-measured job (``mode`` "enable"), which has no launcher.
    """

    pid: int
    start_ticks: int
    launcher_pid: int
    command: tuple[str, ...]
    sources: bool = True
    budget: str = ""
    keep_raw: bool = False
    mode: str = "run"
    cwd: str = ""
    memory_looks_ns: int = 0
    """Time from one look at the memory to the next; 0: by the mode."""
    stacks: bool = False
    """Whether it is run for a window of native stacks, whatever else is seen."""
    replaced: dict[str, str] = field(default_factory=dict)
    """Files that the job sees with another content, each with the file that holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """End of the job. ``exit_code`` is negative for a signal; ``at_ns`` is CLOCK_MONOTONIC."""

    exit_code: int
    at_ns: int


def temporary_directories() -> list[Path]:
    """Places for temporary files, best first: /dev/shm, then local temporary directories."""
    return [Path(name) for name in run_directory.temporary_directories()]


def make(session: Path, origin_ns: int) -> Path:
    """Make a private run directory with its configuration.

    Raises:
        CaptureError: no place can hold one.
    """
    owner = (os.getpid(), start_ticks(os.getpid()))
    try:
        return Path(run_directory.make(str(session), origin_ns, owner, ring_slots()))
    except OSError as error:
        raise CaptureError(str(error)) from error


def ring_slots(host: Path = cgroup.HOST) -> int:
    """Records that a process's ring holds: the usual number, or what the smallest limit of memory leaves for it."""
    limits = [cgroup.memory_limit(folder) for folder in cgroup.folders("self", "memory", host)]
    least = min((limit for limit in limits if limit > 0), default=DEFAULT_SLOTS * RECORD_BYTES * RING_DIVISOR)
    return max(MIN_SLOTS, min(DEFAULT_SLOTS, least // RING_DIVISOR // RECORD_BYTES))


def write_json(path: Path, data: dict[str, object]) -> None:
    """Write a JSON file whole or not at all."""
    run_directory.write_json(str(path), data)


def read_json(path: Path) -> dict[str, object] | None:
    """The object in a JSON file; None if it is missing, or was cut."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def write_job(run: Path, job: JobFacts) -> None:
    """Tell the sidecar which process is the job."""
    data: dict[str, object] = {
        "pid": job.pid,
        "start_ticks": job.start_ticks,
        "launcher_pid": job.launcher_pid,
        "command": list(job.command),
        "sources": job.sources,
        "budget": job.budget,
        "keep_raw": job.keep_raw,
        "mode": job.mode,
        "cwd": job.cwd,
        "memory_looks_ns": job.memory_looks_ns,
        "stacks": job.stacks,
        "replaced": job.replaced,
    }
    write_json(run / JOB_NAME, data)


def read_job(run: Path) -> JobFacts | None:
    """Read the file of ``write_job``; None if it is missing, or was cut."""
    data = read_json(run / JOB_NAME)
    try:
        return data and JobFacts(**{**data, "command": tuple(data["command"])})  # type: ignore[arg-type,return-value]
    except (TypeError, KeyError):
        return None


def arm_first_look(run: Path, bound_ns: int) -> None:
    """Let the job's processes take a first look by themselves, ten steps of which may cost ``bound_ns``.

    Raises:
        OSError: no space, or no rights.
    """
    write_json(run / CONFIG_NAME, {**(read_json(run / CONFIG_NAME) or {}), "first_look_ns": bound_ns})


def arm_peers(run: Path) -> None:
    """Let the job's processes note which peers they want to reach.

    Raises:
        OSError: no space, or no rights.
    """
    peers.arm(str(run))


def arm_trial(run: Path, trial: Trial) -> None:
    """Put a trial's interventions in effect in the job's processes; all their steps are recorded, without gaps.

    Raises:
        OSError: no space, or no rights.
    """
    config = {**(read_json(run / CONFIG_NAME) or {}), "duty_cycle": False, CONFIG_KEY: trial.settings()}
    write_json(run / CONFIG_NAME, config)


def is_trial(run: Path) -> bool:
    """Whether the run is a trial."""
    return CONFIG_KEY in (read_json(run / CONFIG_NAME) or {})


def write_signalled(run: Path) -> None:
    """Tell the job's processes that a signal which ends jobs was passed on: none then waits for anything of ours."""
    try:
        (run / SIGNALLED_NAME).touch()
    except OSError:  # /dev/shm is full: the job may wait for a second
        return


def write_ended(run: Path, exit_code: int) -> None:
    """Tell the sidecar how the job ended."""
    write_json(run / ENDED_NAME, {"exit_code": exit_code, "at_ns": time.monotonic_ns()})


def read_ended(run: Path) -> JobEnd | None:
    """Read the file of ``write_ended``; None while the job runs."""
    data = read_json(run / ENDED_NAME)
    try:
        return data and JobEnd(**data)  # type: ignore[arg-type,return-value]
    except TypeError:
        return None


def remove(run: Path) -> None:
    """Delete a run directory and the ring directories that belong to it."""
    run_directory.remove(str(run))


def forget(ring: Path) -> None:
    """Delete a ring outside its process's directory, if it is one of ours."""
    if ring.parent.name.startswith(RUN_PREFIX) or ring.parent.parent.name.startswith(RUN_PREFIX):
        try:
            ring.unlink()
        except OSError:
            return


def ring_directories(run: Path) -> list[Path]:
    """Every directory that a run's processes write rings to, itself included."""
    found = (read_json(run / CONFIG_NAME) or {}).get("ring_dirs")
    return [run, *(Path(str(path)) for path in found)] if isinstance(found, list) else [run]


def session_of(run: Path) -> str | None:
    """The session that a run directory was made for."""
    session = (read_json(run / CONFIG_NAME) or {}).get("session")
    return session if isinstance(session, str) else None


def set_session(run: Path, session: Path) -> None:
    """Record the session of a run directory, for a later recovery.

    Raises:
        OSError: no space, or no rights.
    """
    write_json(run / CONFIG_NAME, {**(read_json(run / CONFIG_NAME) or {}), "session": str(session)})


def origin_of(run: Path) -> int:
    """CLOCK_MONOTONIC nanoseconds that are the session's zero."""
    origin = (read_json(run / CONFIG_NAME) or {}).get("origin_ns")
    return origin if isinstance(origin, int) else time.monotonic_ns()
