"""The sidecar of a job that is always measured (its beginning: ``sidecar.always_on_start``).

The agent starts it, as nobody's child, some seconds after the framework's import. It lives until the job and all of its
measured children have ended, and keeps its session, and the folder of all of them, within the disk's quota. If anything
here fails for good, the run directory goes, the agent sees that and takes itself out; the job goes on.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.clocks import settings as clocks
from stepscope.collector import sweep
from stepscope.collector.always_on import retention, user_page
from stepscope.collector.always_on.session_quota import SessionLimits
from stepscope.collector.recorder import Recording
from stepscope.launcher import rundir
from stepscope.sessions.fleet import sending as fleet_sending
from stepscope.sessions.gathering import sending
from stepscope.sidecar import sidecar
from stepscope.tables.errors import StepscopeError
from stepscope.tables.units import format_ratio
from stepscope.wire import trouble

if TYPE_CHECKING:
    from stepscope.collector.always_on.pth_file import Settings

_KEEP_HOUSE_NS = 600_000_000_000
NOT_COMPARED = "DX190"
"""Clocks of hosts could not be compared."""
SHARE = "DX112"
"""The job was drawn as one of a share."""


def follow_job(run: Path, starts: int) -> None:
    """Record a job to its end. What is said goes to ``sidecar.log`` in the run directory: there is nobody to tell."""
    lock = sidecar.only_one(run)
    settings = retention.settings_of(run)
    if lock < 0 or settings is None:
        return
    try:
        session = _session(run, settings)
    except (StepscopeError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        rundir.remove(run)
        return
    limits = SessionLimits(bytes=retention.keep_house(session.parent, settings, own=session))
    recording = Recording(run, session, starts=starts, limits=limits)
    if settings.share < 1.0:
        recording.note(
            SHARE, f"one of the {format_ratio(settings.share)} of jobs that are measured, drawn by {settings.drawn_by}"
        )
    _compare_clocks(recording, settings)
    _serve_page(settings, session.parent)
    ticks = [*sidecar.ticks_of(recording), _KeepsHouse(session, limits, settings).tick]
    sweep.sweep(run)
    sidecar.follow(recording, ticks, launcher=False)
    for problem in sidecar.complete(recording):
        sys.stderr.write(f"{problem}\n")
    gather(session, settings)
    leave_part(session, settings)
    retention.keep_house(session.parent, settings)


def _compare_clocks(recording: Recording, settings: Settings) -> None:
    """Begin to compare this host's clock with others', if ``enable --clock-hosts`` asked for it."""
    if not settings.clock_hosts:
        return
    try:
        clocks.parse(settings.clock_hosts, _path(settings.key_file)).write(recording.run)
    except (StepscopeError, OSError) as error:  # the key is gone, or was made readable for others, since then
        recording.note(NOT_COMPARED, f"clocks were not compared: {error}")
        return
    recording.sampling.compare_clocks(recording.run)


def gather(session: Path, settings: Settings) -> None:
    """Send the session to where ``enable --gather`` said; what could not be sent, ``enable --status`` says."""
    if not settings.gather:
        return
    arrived, line = sending.outcome(
        session, settings.gather, _path(settings.key_file), str, ca_file=_path(settings.ca_file)
    )
    if not arrived:
        trouble.write(str(session.parent), sending.NOT_GATHERED, line)


def leave_part(session: Path, settings: Settings) -> None:
    """Leave a part of the session where ``enable --fleet`` said; what could not be sent, ``enable --status`` says."""
    if not settings.fleet:
        return
    to = fleet_sending.Destination(
        url=settings.fleet,
        key_file=_path(settings.key_file),
        ca_file=_path(settings.ca_file),
        sources=settings.fleet_sources,
    )
    arrived, line = fleet_sending.outcome(session, to, str(session))
    if not arrived:
        trouble.write(str(session.parent), fleet_sending.NOT_LEFT, line)


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _serve_page(settings: Settings, sessions: Path) -> None:
    """See to it that the user's page is served, if ``enable --ui`` asked for it; it outlives this process."""
    if not settings.page_module:
        return
    try:
        user_page.start(settings.page_module, settings.page_port, sessions)
    except (StepscopeError, OSError) as error:
        sys.stderr.write(f"the page could not be served: {error}\n")


def _session(run: Path, settings: Settings) -> Path:
    """The session of this job: that of an earlier sidecar, else a new one.

    Raises:
        StepscopeError: nothing says what the job is, or no folder takes the session.
    """
    known = rundir.session_of(run)
    if known and Path(known).is_dir():
        return Path(known)
    job = rundir.read_job(run)
    if job is None:
        raise StepscopeError(f"{run}: no job in it; expected what the agent writes")
    session = retention.claim(run, job, settings, rundir.origin_of(run))
    rundir.set_session(run, session)
    return session


class _KeepsHouse:
    """Looks after the folder of sessions now and then."""

    def __init__(self, session: Path, limits: SessionLimits, settings: Settings) -> None:
        self._session = session
        self._limits = limits
        self._settings = settings
        self._next_ns = time.monotonic_ns() + _KEEP_HOUSE_NS

    def tick(self, now_ns: int, state: str) -> None:
        """What is due at this moment."""
        del state
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + _KEEP_HOUSE_NS
            self._limits.bytes = retention.keep_house(self._session.parent, self._settings, own=self._session)
