"""Who ran what, where, on what, how fast and to which end: the rows ``about``, ``amount`` and ``version``."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from stepscope.fleet.rows import Row
from stepscope.launcher.mask import mask_command
from stepscope.model.session.session import CELL
from stepscope.wire import off
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stepscope.model.report.report import Report
    from stepscope.model.session.session import Manifest, Session

_PPM = 1e6
_SAVES_SEEN = frozenset({"tensorflow", "keras", "tf_keras"})
"""Frameworks whose saves are recorded."""


def rows(session: Session, report: Report, *, restarts: str, sources: bool) -> Iterator[Row]:
    """All of them. ``restarts``: the session that this one repeats; ``sources``: arguments are in it, too."""
    words = _words(session, report, restarts=restarts, sources=sources)
    yield from (Row(kind="about", name=name, text=text) for name, text in words.items() if text)
    for name, number in amounts(session, report).items():
        if number is not None:
            yield Row(kind="amount", name=name, number=number)
    cost = report.overhead
    for name, value, ends in (
        ("overhead_ppm", cost.ratio, (cost.low, cost.high)),
        ("captures_ppm", cost.captures_ratio, (None, None)),
    ):
        yield Row(kind="amount", name=name, number=round(value * _PPM), ratio=value, low=ends[0], high=ends[1])
    for name, version in sorted(_versions(session).items()):
        yield Row(kind="version", name=name, text=version)


def day_of(manifest: Manifest) -> str:
    """The day on which the job began (UTC)."""
    return time.strftime("%Y-%m-%d", time.gmtime(max(0, manifest.started_unix_ns) // 10**9))


def _words(session: Session, report: Report, *, restarts: str, sources: bool) -> dict[str, str]:
    manifest = session.manifest
    host, origin = manifest.host, manifest.origin
    members = [worker.member for worker in manifest.workers if worker.member is not None]
    return {
        "user": origin.user,
        "team": origin.team,
        "project": origin.project or PurePath(manifest.cwd).name,
        "commit": origin.commit,
        "program": off.short(off.program_of(manifest.command, manifest.cwd)),
        "command": " ".join(mask_command(manifest.command)) if sources else "",
        "mode": manifest.mode,
        "model": _model(session, report),
        "framework": report.session.framework,
        "host": host.name or f"{report.session.hosts} hosts",
        "cpu": host.cpu,
        "device": _device(session),
        "scheduler_job": next((member.job_id for member in members if member.job_id), ""),
        "end": report.session.end,
        "restarts": restarts,
        "started": day_of(manifest),
    }


def _model(session: Session, report: Report) -> str:
    """The model's file where one is known, else what the steps are of."""
    files = [setup.model for setup in report.session.inference] + [one.model for one in session.manifest.models]
    titles = [maker.title for maker in report.session.step_makers if maker.main]
    return PurePath(next(filter(None, files), "")).name or next(iter(titles), "")


def _device(session: Session) -> str:
    """The name of the first GPU that the job held, else of the first: ``NVIDIA H200`` of ``gpu:0 NVIDIA H200``."""
    gpus = session.gpus
    if not len(gpus):
        return ""
    held = gpus.name[gpus.job_reserved_bytes > 0]
    at = int(held.min() if len(held) else gpus.name[0])
    return session.resource_names[at].partition(" ")[2] if 0 <= at < len(session.resource_names) else ""


def _versions(session: Session) -> Mapping[str, str]:
    found = {"stepscope": session.manifest.stepscope_version}
    for worker in session.manifest.workers:
        found |= worker.frameworks
        if worker.allocator is not None:
            found["allocator"] = worker.allocator.name
    found["kernel"] = session.manifest.host.kernel
    return {name: version for name, version in found.items() if version}


def amounts(session: Session, report: Report) -> dict[str, int | None]:
    """The numbers about a job, by their names; None: not known."""
    manifest, summary = session.manifest, report.session
    wall_ns = summary.wall_ns or manifest.ended_ns
    times, rate = summary.step_times, summary.throughput.samples_per_s
    room, held = report.memory_room, devices(session)
    return {
        "started_unix_s": manifest.started_unix_ns // 10**9,
        "wall_ns": wall_ns,
        "cpu_ns": cpu_ns(session),
        "device_ns": wall_ns * held,
        "saved_ns": _saved_ns(session),
        "devices": held,
        "cpus": manifest.host.cpus,
        "hosts": summary.hosts,
        "processes": summary.processes,
        "steps": summary.steps,
        "step_ns": times.mean_ns if times is not None else None,
        "step_p50_ns": times.p50_ns if times is not None else None,
        "step_p95_ns": times.p95_ns if times is not None else None,
        "milli_samples": round(rate * 1000) if rate is not None else None,
        "unexplained_ns": round(report.unexplained_ratio * wall_ns),
        "memory_peak_bytes": _memory_peak(session),
        "device_memory_peak_bytes": _device_memory_peak(session),
        "memory_limit_bytes": room.limit_bytes if room is not None else None,
        "exit_code": summary.exit_code,
        "lost_records": sum(worker.lost_records for worker in manifest.workers),
    }


def devices(session: Session) -> int:
    """GPUs on which the job held memory; all of the host where NVML does not say which process holds what."""
    gpus = session.gpus
    if not len(gpus) or int(gpus.job_reserved_bytes.max()) < 0:
        return session.manifest.host.gpus
    return len(np.unique(gpus.name[gpus.job_reserved_bytes > 0]))


def cpu_ns(session: Session) -> int | None:
    """CPU time of the measured processes, from the last sample of each; None: none was sampled."""
    process = session.process
    if not len(process):
        return None
    _, at = np.unique(process.pid, return_inverse=True)
    most = np.zeros(int(at.max()) + 1, np.int64)
    np.maximum.at(most, at.reshape(-1), process.cpu_user_ns + process.cpu_system_ns)
    if session.manifest.mode in {"attach", CELL}:  # what the process had used before
        least = np.full(len(most), np.iinfo(np.int64).max)
        np.minimum.at(least, at.reshape(-1), process.cpu_user_ns + process.cpu_system_ns)
        most -= least
    return int(most.sum())


def _saved_ns(session: Session) -> int | None:
    """When the last save of a model or a checkpoint had ended; 0: there was none; None: saves are not recorded."""
    ends = [
        int((records.start_ns + records.dur_ns)[records.kind == Kind.SAVE].max())
        for records in (worker.with_gaps() for worker in session.workers)
        if (records.kind == Kind.SAVE).any()
    ]
    recorded = any(not _SAVES_SEEN.isdisjoint(worker.info.frameworks) for worker in session.workers)
    return max(ends, default=0 if recorded else None)


def _memory_peak(session: Session) -> int | None:
    """Most memory that all processes held together."""
    if not len(session.process):
        return None
    _, at = np.unique(session.process.at_ns, return_inverse=True)
    return int(np.bincount(at.reshape(-1), weights=session.process.rss_bytes).max())


def _device_memory_peak(session: Session) -> int | None:
    """Most device memory that the job held, on the device where it held most."""
    held = session.gpus.job_reserved_bytes
    return int(held.max()) if len(held) and int(held.max()) >= 0 else None
