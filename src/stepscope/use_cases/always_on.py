"""The use cases ``enable`` and ``disable``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from stepscope.collector.always_on import pth_file, user_page
from stepscope.sessions.fleet.sending import NOT_LEFT
from stepscope.sessions.gathering import asked, sending
from stepscope.tables.errors import UsageError
from stepscope.tables.units import format_bytes, format_number_of, format_ratio
from stepscope.use_cases import switching
from stepscope.use_cases.record import python_of_job
from stepscope.wire import sessions_folder, trouble

BYTES_PER_HOUR = (15 << 20, 150 << 20)
"""Disk use per job and hour, at 100 steps a second and at the governor's limit. Source: docs/always-on.md, measured."""

PAGE_WAIT_S = 10.0
_UNSENT = {sending.NOT_GATHERED: "sessions", NOT_LEFT: "parts"}
"""What could not be sent, by its name in the trouble file."""


class WantedSettings(Struct, frozen=True, kw_only=True):
    """The settings that the user asked for."""

    sessions: Path | None = None
    quota_bytes: int = pth_file.DEFAULT_QUOTA
    job_quota_bytes: int = pth_file.DEFAULT_JOB_QUOTA
    keep_days: float = pth_file.DEFAULT_KEEP_DAYS
    sources: bool = True
    page_module: str = ""
    """Module that serves the page; empty: none is served."""
    page_port: int = 0
    gather: str = ""
    """Where sessions are sent; empty: nowhere."""
    fleet: str = ""
    """Where parts of sessions are left; empty: nowhere."""
    fleet_sources: bool = False
    """Whether they tell arguments and the text of lines."""
    clock_hosts: str = ""
    """Hosts whose clocks are compared; empty: none."""
    key_file: Path | None = None
    ca_file: Path | None = None
    share: float = 1.0
    """Share of the jobs that are measured."""


def enable(python: str | None, wanted: WantedSettings) -> str:
    """Enable an environment; returns lines for the user.

    Raises:
        UsageError: a quota is too small, rights are missing, or sessions could never be sent, or clocks compared.
        TargetError: there is no Python, or it is too old.
    """
    asked.check(wanted.gather, wanted.clock_hosts, wanted.key_file, wanted.ca_file, wanted.fleet)
    if wanted.job_quota_bytes < pth_file.MIN_JOB_QUOTA or wanted.quota_bytes < wanted.job_quota_bytes:
        raise UsageError(
            f"--quota {format_bytes(wanted.quota_bytes)} and --job-quota {format_bytes(wanted.job_quota_bytes)}: "
            f"expected at least {format_bytes(pth_file.MIN_JOB_QUOTA)} per job, and at least as much for all jobs"
        )
    if wanted.keep_days <= 0:
        raise UsageError(f"--keep {wanted.keep_days:g}: expected a number of days above 0")
    environment = pth_file.find_environment(python or python_of_job())
    settings = pth_file.Settings(
        python=sys.executable,
        package=str(Path(__file__).resolve().parent.parent),
        sessions=_absolute(wanted.sessions),
        quota_bytes=wanted.quota_bytes,
        job_quota_bytes=wanted.job_quota_bytes,
        keep_days=wanted.keep_days,
        sources=wanted.sources,
        page_module=wanted.page_module,
        page_port=wanted.page_port,
        gather=wanted.gather if "://" in wanted.gather else _absolute(wanted.gather),
        fleet=wanted.fleet if "://" in wanted.fleet else _absolute(wanted.fleet),
        fleet_sources=wanted.fleet_sources,
        clock_hosts=wanted.clock_hosts,
        key_file=_absolute(wanted.key_file),
        ca_file=_absolute(wanted.ca_file),
        share=wanted.share,
    )
    pth_file.write(environment, settings)
    if settings.page_module:
        _start_page(settings)
    what = "every process of TensorFlow, PyTorch, JAX and ONNX Runtime"
    head = f"enabled: {what} that {environment.python} starts from now on"
    return f"{head}\n{_terms(environment, settings)}"


def _absolute(path: Path | str | None) -> str:
    return os.path.abspath(path) if path else ""  # noqa: PTH100 - links stay


def disable(python: str | None) -> str:
    """Disable an environment; returns a line for the user.

    Raises:
        UsageError: rights are missing, or the file there is not ours.
        TargetError: there is no Python, or it is too old.
    """
    environment = pth_file.find_environment(python or python_of_job())
    if not pth_file.remove(environment):
        return f"was not enabled: {environment.python}"
    return f"disabled: {environment.python}; removed {environment.pth}"


def end_page(python: str | None) -> str:
    """End this user's page, and let jobs that start from now on serve none; returns a line for the user.

    Raises:
        UsageError: rights are missing, or the file there is not ours. The page has ended all the same.
        TargetError: there is no Python, or it is too old.
    """
    ended = "ended: the page of this user" if user_page.end() else "no page of this user was served"
    environment = pth_file.find_environment(python or python_of_job())
    settings = pth_file.read_settings(environment.pth)
    if settings is None or not settings.page_module:
        return ended
    pth_file.write(environment, msgspec.structs.replace(settings, page_module=""))
    return f"{ended}; jobs of {environment.python} that start from now on serve none, and are measured as before"


def _start_page(settings: pth_file.Settings) -> None:
    """Start the page now rather than with the first job, and wait until its address is known."""
    try:
        user_page.start(
            settings.page_module, settings.page_port, Path(settings.sessions) if settings.sessions else None
        )
    except OSError as error:
        raise UsageError(f"the page could not be started: {error.strerror}; it starts with the first job") from error
    deadline = time.monotonic() + PAGE_WAIT_S
    while not user_page.address() and time.monotonic() < deadline:
        time.sleep(0.05)


def describe(python: str | None) -> str:
    """Whether an environment is enabled, and with which settings.

    Raises:
        UsageError: the file there is not ours.
        TargetError: there is no Python, or it is too old.
    """
    environment = pth_file.find_environment(python or python_of_job())
    settings = pth_file.read_settings(environment.pth)
    switched_off = [f"but {line}" for line in switching.lines()]
    if settings is None:
        return "\n".join([f"not enabled: {environment.python}", *switched_off])
    lines = [f"enabled: {environment.python}", _terms(environment, settings), *switched_off]
    if not os.access(settings.python, os.X_OK) or not Path(settings.package).is_dir():
        lines.append(
            f"but nothing is measured: stepscope was removed from {settings.python}; enable it again, or disable"
        )
    told = [line for folder in sessions_folder.candidates(settings.sessions) for line in trouble.read(folder)]
    for where, unit in _UNSENT.items():
        unsent = [text for _, at, text in told if at == where]
        if unsent:
            lines.append(f"not sent since then: {format_number_of(str(len(unsent)), unit)}; the last: {unsent[-1]}")
    failed = [line for line in told if line[1] not in _UNSENT]
    if failed:
        pid, where, text = failed[-1]
        many = format_number_of(str(len(failed)), "processes")
        lines.append(f"not measured since then: {many}; the last, {pid}: {where}: {text}")
    return "\n".join(lines)


def _terms(environment: pth_file.Environment, settings: pth_file.Settings) -> str:
    folder = settings.sessions or sessions_folder.default()
    low, high = (format_bytes(value) for value in BYTES_PER_HOUR)
    job, user = format_bytes(settings.job_quota_bytes), format_bytes(settings.quota_bytes)
    disk = f"about {low} per hour and job at 100 steps/s, at most {high}; quota {job} per job, {user} per user"
    lines = [
        f"  file      {environment.pth}",
        f"  sessions  {folder}{'' if settings.sessions else ' (one folder per user)'}",
        f"  disk      {disk}; finished sessions are deleted after {settings.keep_days:g} days",
        f"  sidecar   {settings.python}",
    ]
    if settings.share < 1.0:
        lines.append(f"  share     {format_ratio(settings.share)} of the jobs, drawn by a hash of the job's id")
    if settings.gather:
        lines.append(f"  gather    {settings.gather}; each session is sent there after its report")
    if settings.fleet:
        lines.append(f"  fleet     {settings.fleet}; a part of each session is left there after its report")
    if settings.clock_hosts:
        lines.append(f"  clocks    {settings.clock_hosts}: compared while a job runs")
    if settings.page_module:
        lines.append(f"  page      {user_page.address() or 'starts with the next job; stepscope ps says its address'}")
    return "\n".join(lines)
