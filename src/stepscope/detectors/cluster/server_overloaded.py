"""Workers wait for a parameter server whose CPUs or link are at their limit.

## What it detects
A job with parameter servers, one of which uses nearly all CPUs that it may use, waits for CPUs that others use, or
holds a link to the workers back, while the steps of a worker lie in exchanges with servers for a quarter of their time
or more.

## Why it matters
Every worker needs every server in every step. A server at its limit serves them one after the other; more workers make
each of them slower, and the job no faster.

## Evidence
`exchange_ratio`: share of the traced steps of the worker that waits most. `server_cpu_ratio`: share of its CPUs that
the server uses during these steps; `waiting_threads`: its threads that wait for a CPU which others use. Of a link:
`busy_ratio`, the share of the time with data under way, or `unread_ratio`, that of the looks that found unread data; a
worker that finds the server's window full shows the same.

## Known limits
Needs the server's own session; without an op trace of a worker it is undecided. What part of the exchange the limit
makes is not known: the share is an upper bound. Wall clocks of the hosts say which time is meant.

## Remedy
More servers, with large variables in parts on all of them; more CPUs or a faster link for this one; fewer bytes.

## References
Scaling Distributed Machine Learning with the Parameter Server (Li et al., OSDI 2014); tf.distribute, "Parameter server
training": variable sharding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.cluster import members, servers
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, severity_of
from stepscope.tables.findings import Cost, Evidence, Remedy
from stepscope.tables.units import Ratio, format_rate, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.cluster.servers import Server
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.25)
    """Share of a worker's traced steps in which it exchanges data."""
    min_cpu: Ratio = Ratio(0.9)
    """Share of its CPUs that a server at its limit uses: the rest is what no process reaches on a shared host."""
    min_waiting: float = 0.5
    """Threads of it that wait for a CPU in the mean, and at least as many as run, where others use its CPUs."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield a finding for each server that is at its limit, or that whether workers wait for it is unknown."""
    for server in view.get(servers.build):
        why, waits = _why(server, params), server.exchange_ratio
        if why and waits is None:
            hint = f"{server.name} is at its limit, {why}; whether workers wait for it, an op trace of one would say"
            yield Undecided(missing=Signal.OP_TRACE, hint=hint)
        elif why and waits is not None and waits >= params.min_ratio:
            yield _finding(server, params, why, waits)


def _finding(server: Server, params: Params, why: str, waits: float) -> Seen:
    evidence = [
        Evidence(metric="exchange_ratio", value=waits, unit="ratio", threshold=params.min_ratio),
        Evidence(metric="server_cpu_ratio", value=server.cpu_ratio, unit="ratio", threshold=params.min_cpu),
    ]
    if _starved(server, params):
        evidence.append(
            Evidence(metric="waiting_threads", value=server.waiting, unit="threads", threshold=params.min_waiting)
        )
    elif server.limit is not None and server.cpu_ratio < params.min_cpu:
        unread = server.limit.reason == "we-read-slowly"
        name, value = ("unread_ratio", server.limit.use.unread_ratio) if unread else ("busy_ratio", _busy(server))
        evidence.append(Evidence(metric=name, value=value, unit="ratio"))
    return Seen(
        title=f"{server.name} is at its limit, {why}: {server.client} spends "
        f"{format_ratio(waits)} of its step exchanging data with servers, and does not compute",
        confidence=0.8,
        severity=severity_of(waits),
        evidence=tuple(evidence),
        cost=Cost(ratio=0.0, low=0.0, high=waits, basis="unknown"),
        remedies=(
            Remedy(
                id="more-servers",
                text="use more parameter servers, with large variables in parts on all of them (a partitioner); or "
                "more CPUs, or a faster link, for this one",
            ),
            Remedy(
                id="exchange-less",
                text="or fewer bytes for each sample: larger batches, only the rows that a step uses (sparse "
                "gradients), values of half the width",
            ),
        ),
    )


def _busy(server: Server) -> float:
    return server.limit.use.busy_ratio if server.limit is not None else 0.0


def _starved(server: Server, params: Params) -> bool:
    return server.cpu_ratio < params.min_cpu and server.waiting >= max(params.min_waiting, server.cores)


def _why(server: Server, params: Params) -> str:
    """What its limit is; "" if there is none."""
    if server.cpu_ratio >= params.min_cpu:
        cpus = "CPU" if server.allowed == 1 else "CPUs"
        return f"it uses {format_rate(server.cores)} of its {server.allowed:g} {cpus}"
    if _starved(server, params):
        return f"others use its CPUs, it gets {format_rate(server.cores)} of {server.allowed:g}"
    if server.limit is None:
        return ""
    there = server.limit.link.there
    if server.limit.reason == "we-read-slowly":
        return f"it reads what {there} sends late"
    return f"its link to {there} carries no more"


DETECTOR = Detector(
    code="DST007",
    name="server-overloaded",
    cause="Data: inefficient data transmission",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="gradient-sharing",
    needs=frozenset({Signal.MEMBERS}),
    params=Params(),
    detect=detect,
    applies=members.why_not,
)
