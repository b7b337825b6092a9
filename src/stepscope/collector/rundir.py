"""Makes, describes and removes the run directory (layout: ``stepscope.wire.env``).

Light on purpose: the launcher imports it before the job has started.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from stepscope.errors import CaptureError
from stepscope.wire.env import CONFIG_NAME, PROCS_NAME
from stepscope.wire.place import FREE_DIVISOR, is_network, mounts
from stepscope.wire.ring import DEFAULT_SLOTS, HEADER_BYTES, RECORD_BYTES

JOB_NAME = "job.json"
"""Written by the launcher once the job runs: its pid, start and the launcher's own pid."""
ENDED_NAME = "ended.json"
"""Written by the launcher when the job has ended."""
SIDECAR_LOG = "sidecar.log"
LOCK_NAME = "sidecar.lock"

_PREFIX = "stepscope-"
RING_BYTES = HEADER_BYTES + DEFAULT_SLOTS * RECORD_BYTES
_MIN_RUN_BYTES = 4 << 20
_SAMPLE_HZ = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the launcher says about the job. ``start_ticks``: start in clock ticks since boot, tells reused pids."""

    pid: int
    start_ticks: int
    launcher_pid: int
    command: tuple[str, ...]
    sources: bool
    budget: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the job ended. ``exit_code`` is negative for a signal; ``at_ns`` is CLOCK_MONOTONIC."""

    exit_code: int
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory that a run directory could be made in."""

    path: Path
    free_bytes: int


def temporary_directories() -> list[Path]:
    """Places for files that nobody keeps, best first: /dev/shm, then local temporary directories."""
    names = ["/dev/shm", os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"]  # noqa: S108 - private ones are made inside
    found: list[Path] = []
    for name in names:
        if name and (path := Path(name)) not in found:
            found.append(path)
    return found


def places() -> list[Place]:
    """Where a run directory can be made: writable, local, with some room; those with room for rings first."""
    table = mounts()
    usable: list[Place] = []
    devices: set[int] = set()
    for path in temporary_directories():
        try:
            info = os.statvfs(path)
            device = path.stat().st_dev
        except OSError:
            continue
        free = info.f_bavail * info.f_frsize
        good = os.access(path, os.W_OK | os.X_OK) and not is_network(str(path), table) and free >= _MIN_RUN_BYTES
        if good and device not in devices:
            devices.add(device)
            usable.append(Place(path=path, free_bytes=free))
    roomy = [p for p in usable if p.free_bytes >= FREE_DIVISOR * RING_BYTES]
    return roomy + sorted((p for p in usable if p not in roomy), key=lambda p: -p.free_bytes)


def make(session: Path, origin_ns: int) -> Path:
    """Make a private run directory with its configuration.

    Raises:
        CaptureError: no place can hold one.
    """
    candidates = places()
    token = os.urandom(6).hex()
    run: Path | None = None
    rings: list[str] = []
    for place in candidates:
        path = place.path / f"{_PREFIX}{os.getuid()}-{token}"
        try:
            path.mkdir(mode=0o700)
        except OSError:
            continue
        rings.append(str(path))
        if run is None:
            run = path
    if run is None:
        tried = ", ".join(str(p) for p in temporary_directories())
        raise CaptureError(f"no room for a run directory in {tried}; expected {_MIN_RUN_BYTES >> 20} MiB: set TMPDIR")
    (run / PROCS_NAME).mkdir(mode=0o700)
    config = {
        "version": 1,
        "session": str(session),
        "origin_ns": origin_ns,
        "ring_dirs": rings,
        "sample_hz": _SAMPLE_HZ,
        "slots": DEFAULT_SLOTS,
    }
    write_json(run / CONFIG_NAME, config)
    return run


def write_json(path: Path, data: dict[str, object]) -> None:
    """Write a JSON file whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(data), "utf-8")
    temporary.replace(path)


def _read_json(path: Path) -> dict[str, object] | None:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def write_job(run: Path, job: Job) -> None:
    """Tell the sidecar which process is the job."""
    data: dict[str, object] = {
        "pid": job.pid,
        "start_ticks": job.start_ticks,
        "launcher_pid": job.launcher_pid,
        "command": list(job.command),
        "sources": job.sources,
        "budget": job.budget,
    }
    write_json(run / JOB_NAME, data)


def read_job(run: Path) -> Job | None:
    """What ``write_job`` wrote; None when it has not, or was cut."""
    data = _read_json(run / JOB_NAME)
    try:
        return data and Job(**{**data, "command": tuple(data["command"])})  # type: ignore[arg-type,return-value]
    except (TypeError, KeyError):
        return None


def write_ended(run: Path, exit_code: int) -> None:
    """Tell the sidecar how the job ended."""
    write_json(run / ENDED_NAME, {"exit_code": exit_code, "at_ns": time.monotonic_ns()})


def read_ended(run: Path) -> Ended | None:
    """What ``write_ended`` wrote; None while the job runs."""
    data = _read_json(run / ENDED_NAME)
    try:
        return data and Ended(**data)  # type: ignore[arg-type,return-value]
    except TypeError:
        return None


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the command, from the state on; none if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return stat[stat.rindex(b")") + 2 :].split()


def start_ticks(pid: int) -> int:
    """Start of a process in clock ticks since boot, 0 if there is none; with the pid it names a process."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def state(pid: int) -> str:
    """State letter of a process (R, S, T, Z ...), empty if there is none."""
    fields = _stat(pid)
    return fields[0].decode() if fields else ""


def alive(pid: int, ticks: int) -> bool:
    """Whether the process that started at ``ticks`` still runs; a zombie does not."""
    fields = _stat(pid)
    return bool(fields) and int(fields[19]) == ticks and fields[0] not in (b"Z", b"X")


def remove(run: Path) -> None:
    """Delete a run directory and the ring directories that belong to it."""
    config = _read_json(run / CONFIG_NAME) or {}
    directories = config.get("ring_dirs")
    others = [Path(str(d)) for d in directories] if isinstance(directories, list) else []
    for path in [*(p for p in others if p.name == run.name and p != run), run]:
        _remove_tree(path)


def _remove_tree(path: Path) -> None:
    for folder, folders, files in os.walk(path, topdown=False):
        for name in files:
            _quietly(os.unlink, os.path.join(folder, name))
        for name in folders:
            inner = os.path.join(folder, name)
            _quietly(os.unlink if os.path.islink(inner) else os.rmdir, inner)
    _quietly(os.rmdir, str(path))


def _quietly(action: object, path: str) -> None:
    try:
        action(path)  # type: ignore[operator]
    except OSError:
        return


def forget(ring: Path) -> None:
    """Delete a ring that lies outside of its process's directory, if it is one of ours."""
    if ring.parent.name.startswith(_PREFIX) or ring.parent.parent.name.startswith(_PREFIX):
        _quietly(os.unlink, str(ring))


def session_of(run: Path) -> str | None:
    """The session that a run directory was made for."""
    session = (_read_json(run / CONFIG_NAME) or {}).get("session")
    return session if isinstance(session, str) else None
