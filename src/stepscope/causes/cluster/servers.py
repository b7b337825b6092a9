"""Whether parameter servers are at a limit of their own while the workers step: their CPUs, or a link.

A server has no steps. So what it used is taken over the time of the workers' steady steps, by the wall clocks of both
hosts: seconds, for which these are good enough.

Serves DST007.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.cluster import members as of_job
from stepscope.causes.system import link_limits
from stepscope.derive.machine import counters, tcp_links

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.cluster.member import Member
    from stepscope.causes.system.link_limits import LinkLimit
    from stepscope.derive.view import SessionView
    from stepscope.tables.records import I64

ROLE = "ps"
HELD = frozenset({"rate", "send-buffer", "we-read-slowly"})
"""What holds a link, of what is the server's: it sends as fast as it can, or cannot keep up with reading."""
MIN_SAMPLES = 3


class Server(Struct, frozen=True, kw_only=True):
    """A parameter server while the workers step."""

    name: str
    cores: float
    """CPUs that it uses."""
    allowed: float
    """CPUs that it may use, by affinity and quota."""
    waiting: float
    """Threads of it that wait for a CPU, in the mean: others use them."""
    limit: LinkLimit | None
    """The busiest link that it holds; None: none."""
    client: str
    """The worker that waits most; "": no worker has an op trace."""
    exchange_ratio: float | None
    """Share of that worker's traced steps in which it exchanges data and none of its ops runs; None: unknown."""

    @property
    def cpu_ratio(self) -> float:
        """Share of its CPUs that it uses."""
        return self.cores / self.allowed if self.allowed else 0.0


def build(view: SessionView) -> tuple[Server, ...]:
    """The servers of workers that step; those that use most of their CPUs first.

    The time that is looked at is that of the workers with an op trace, if there is one.
    """
    everyone = view.get(of_job.build)
    workers = [member for member in everyone if member.info.role != ROLE]
    traced = [member for member in workers if member.exchange_ratio is not None]
    workers = traced or workers
    span = _span(workers)
    if span is None:
        return ()
    client = max(traced, key=lambda member: member.exchange_ratio or 0.0, default=None)
    found = [_server(member, client, workers, *span) for member in everyone if member.info.role == ROLE]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: -one.cpu_ratio))


def _span(workers: Sequence[Member]) -> tuple[int, int] | None:
    """From the first steady step of the workers to the last, by the wall clock."""
    spans = []
    for member in workers:
        view = member.open()
        if view.steps is not None and view.steps.steady_count:
            first, last = view.steps.span
            spans.append((first + view.session.manifest.started_unix_ns, last + view.session.manifest.started_unix_ns))
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _server(
    member: Member, client: Member | None, workers: Sequence[Member], first_unix_ns: int, last_unix_ns: int
) -> Server | None:
    session = member.open().session
    first, last = (at - session.manifest.started_unix_ns for at in (first_unix_ns, last_unix_ns))
    own = session.process.take(session.process.pid == member.pid)
    own = own.take((own.at_ns >= first) & (own.at_ns <= last))
    host = counters.host(session)
    if len(own) < MIN_SAMPLES or not len(host):
        return None
    seconds = float(own.at_ns[-1] - own.at_ns[0]) / 1e9
    quota = float(host.quota_milli_cpus[-1]) / 1000
    cpus = float(host.cpus[-1])
    limits = link_limits.limits(tcp_links.of(session, first, last))
    held = [limit for limit in limits if limit.reason in HELD]
    held = held or list(_read_late(limits, workers, first_unix_ns, last_unix_ns))
    return Server(
        name=member.name,
        cores=(_growth(own.cpu_user_ns) + _growth(own.cpu_system_ns)) / 1e9 / seconds,
        allowed=min(cpus, quota) if quota > 0 else cpus,
        waiting=_growth(own.wait_ns) / 1e9 / seconds,
        limit=max(held, key=lambda limit: limit.use.busy_ratio, default=None),
        client=client.name if client is not None else "",
        exchange_ratio=client.exchange_ratio if client is not None else None,
    )


def _read_late(
    limits: Sequence[LinkLimit], workers: Sequence[Member], first_unix_ns: int, last_unix_ns: int
) -> Iterator[LinkLimit]:
    """The server's links whose other end, a worker's, finds its window full.

    Looks for unread data, once a second, are too few for short pauses.
    """
    full = set[tuple[str, str]]()
    for worker in workers:
        session = worker.open().session
        first, last = (at - session.manifest.started_unix_ns for at in (first_unix_ns, last_unix_ns))
        for link in tcp_links.of(session, first, last):
            full |= {
                (use.there, use.here) for use in link.connections if link_limits.reason_of(use) == "peer-reads-slowly"
            }
    for limit in limits:
        for use in limit.link.connections:
            if (use.here, use.there) in full:
                yield replace(limit, reason="we-read-slowly", use=use)


def _growth(counter: I64) -> float:
    return float(np.maximum(np.diff(counter), 0).sum())
