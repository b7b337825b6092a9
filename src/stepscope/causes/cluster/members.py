"""The members of a job whose data a session holds: processes of it that are tasks of a cluster, or its member sessions.

Serves DST001 to DST006 and the report's part on the members.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.causes.cluster import incarnations
from stepscope.causes.cluster.member import Member
from stepscope.derive.clocks import session_links
from stepscope.derive.cluster import clock, member_calls
from stepscope.derive.cluster.clock import ClockOffset
from stepscope.derive.steps import step_makers
from stepscope.derive.view import SessionView
from stepscope.model.log.cluster import ServerStarted
from stepscope.model.report.components import COMPONENTS
from stepscope.model.session import clock_domain
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stepscope.derive.clocks.host_clock import ClockModel
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.member import MemberInfo
    from stepscope.model.session.session import Session, Worker
    from stepscope.tables.records import F64

MOST_KEPT = 64
"""Most views of members that are kept; of more members, a session is read again when it is asked about."""
COLLECTIVE = "collective"
"""Part of traced steps in which members exchange data, waiting included."""
COMPUTING = ("device-compute", "host-compute")
"""Parts in which ops compute. Waiting for a CPU is none: on a full machine it differs from step to step."""
CLOCK_POINTS = 65
"""Points at which a clock is compared over a session: it drifts by less than its bound between them."""
MIN_TRACED = 5
"""Fewest traced steps that say how long a member computes."""


def build(view: SessionView) -> tuple[Member, ...]:
    """The members, by role and number, each with all its incarnations; empty if there is at most one process that is a
    task: then it is what the session is about.
    """
    if not view.session.peers.members and sum(worker.info.member is not None for worker in view.workers) <= 1:
        return ()
    found = incarnations.joined([*_of_sessions(view.session), *_of_processes(view.session, "")])
    if len(found) <= 1 and not view.session.peers.members:
        return ()
    return tuple(sorted(found, key=lambda member: (member.info.rank < 0, member.info.role, member.info.index)))


def why_not(view: SessionView) -> str:
    """Why detectors of the members do not apply; "" if a process is a task of a cluster of several."""
    there = bool(view.session.peers.members) or any(
        w.info.member is not None and w.info.member.tasks > 1 for w in view.workers
    )
    return "" if there else "no process is known as a task of a cluster"


def clocks(members: Sequence[Member]) -> tuple[ClockOffset | None, ...]:
    """Clock of each member against that of the first; None where nothing is known of it.

    Members that read one clock need no comparison; others are compared by what their collectors exchanged.
    """
    first = members[0].info.clock_domain if members else None
    if first is None:
        return (None,) * len(members)
    others = [member for member in members if member.info.clock_domain not in {None, first}]
    sessions = [member.open().session for member in members] if others else []
    model = session_links.model_of(sessions, clock_domain.key(*first)) if others else None
    return tuple(clock.same() if member.info.clock_domain == first else _compared(member, model) for member in members)


def _compared(member: Member, model: ClockModel | None) -> ClockOffset | None:
    """A clock by the exchanges of collectors, at points from the start to the end of the member's session."""
    domain = member.info.clock_domain
    host = model.clocks.get(clock_domain.key(*domain)) if model is not None and domain is not None else None
    if host is None:
        return None
    manifest = member.open().session.manifest
    first, last = manifest.origin_monotonic_ns, manifest.origin_monotonic_ns + max(manifest.ended_ns, 1)
    stamps = np.linspace(first, last, CLOCK_POINTS)
    at, bound = host.to_reference(stamps)
    if not np.isfinite(bound).all():
        return None
    return ClockOffset(times_ns=stamps.astype(np.int64), offset_ns=at - stamps, bound_ns=bound)


def _of_sessions(session: Session) -> Iterator[Member]:
    keep = len(session.peers.members) <= MOST_KEPT
    for stored in session.peers.members:
        loaded = stored.load()
        if keep:
            yield from _of_processes(loaded, stored.folder)
            continue
        for member in _of_processes(loaded, stored.folder):
            yield replace(member, open=partial(_again, stored.load, member.pid))


def _again(load: Callable[[], Session], pid: int) -> SessionView:
    session = load()
    worker = next(worker for worker in session.workers if worker.info.pid == pid)
    return SessionView(replace(session, workers=(worker,)))


def _of_processes(session: Session, folder: str) -> Iterator[Member]:
    for worker in session.workers:
        if worker.info.member is not None:
            yield _member(session, worker, worker.info.member, folder)


def _member(session: Session, worker: Worker, info: MemberInfo, folder: str) -> Member:
    view = SessionView(replace(session, workers=(worker,)))
    steps, anatomy = view.steps, view.anatomy
    origin_ns = session.manifest.started_unix_ns
    return Member(
        began_unix_ns=origin_ns + worker.info.started_ns,
        newest_unix_ns=origin_ns + worker.info.started_ns,
        ended_unix_ns=origin_ns + _end_of(session, worker),
        info=info,
        folder=folder,
        pid=worker.info.pid,
        host=session.manifest.host.name,
        open=lambda: view,
        calls=member_calls.of(steps, session.manifest.origin_monotonic_ns) if steps is not None else (),
        steps=_count(steps) if steps is not None else 0,
        step_ns=steps.steady_ns / steps.steady_count if steps is not None else 0.0,
        samples=_samples(steps) if steps is not None else 0.0,
        components={name: anatomy.mean_ns(name) for name in COMPONENTS} if anatomy is not None else {},
        computes_ns=_computes(view),
        exchange_ratio=_exchange_ratio(view),
        serves=any(server.joined for server in worker.all(ServerStarted)),
    )


NOTICED_NS = 60_000_000_000
"""Longest time after which a collector notices that a process has ended: most write every 30 s, and look then."""


def _end_of(session: Session, worker: Worker) -> int:
    """When a process ended; of one that was killed, when its last record did, unless it ran on without the agent."""
    noticed, records = worker.info.ended_ns, worker.records
    if not len(records) or worker.info.clean_exit:
        return noticed or session.manifest.ended_ns
    lasted = np.where(np.isin(records.kind, kinds_with(Trait.OURS)), 0, records.dur_ns)  # theirs are weights
    last = int((records.start_ns + lasted).max())
    return noticed if noticed - last > NOTICED_NS else last


def _count(steps: Steps) -> int:
    """Number of steps of all equal makers: a coordinator has one for each of its workers."""
    makers = [maker.count for maker in step_makers.build(steps) if maker.main]
    return sum(makers) if len(makers) > 1 else steps.count


def _samples(steps: Steps) -> float:
    """Samples of the mean steady step; 0 if that of any is unknown."""
    samples = steps.samples[steps.steady]
    return float(samples.mean()) if samples.all() else 0.0


def _exchanging(view: SessionView) -> OpView | None:
    """The op trace of the steps, if it has enough of them and an exchange in them."""
    trace = view.traces.main
    if trace is None or not trace.shows_steps or len(trace.periods) < MIN_TRACED:
        return None
    return trace if trace.breakdown.ratio(COLLECTIVE) else None


def _exchange_ratio(view: SessionView) -> float | None:
    trace = _exchanging(view)
    return trace.breakdown.ratio(COLLECTIVE) if trace is not None else None


def _computes(view: SessionView) -> F64 | None:
    trace = _exchanging(view)
    if trace is None:
        return None
    split = trace.breakdown
    total: F64 = np.sum([split.per_step_of(part) for part in COMPUTING], axis=0)
    return total
