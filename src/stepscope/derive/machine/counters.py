"""Counters of the host's resources (network, disks, GPUs), merged, and rates between samples.

A name may have several numbers (a restarted sidecar counts anew), and a counter may fall (an interface that was taken
down): both are handled only here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.model.session.session import Session
    from stepscope.tables.records import F64, I64, HostTable

DIFFERENCE = 2
"""Samples needed for a difference."""
MIN_INTERVAL_NS = 250_000_000
"""Minimum time between two samples of a rate. Samples are usually 0.5 to 1 s apart; closer ones occur when a job ends
or a sidecar begins. The kernel counts CPU time in ticks of 10 ms per CPU (source: proc_pid_stat(5)): over 2 ms
a tick too many can read as 10 cores of 4, over 250 ms as 4 % of one."""


class Wire(Struct, frozen=True, kw_only=True):
    """All interfaces of the job's network namespace except loopback. int64[sample], totals that never fall."""

    at_ns: I64
    rx_bytes: I64
    tx_bytes: I64
    speed_bytes_s: float
    """Speed of the interface that received most; -1 if the driver does not state it."""
    busiest: str
    """Name of the interface that received most."""


class Disk(Struct, frozen=True, kw_only=True):
    """One block device. int64[sample]."""

    name: str
    whole: bool
    at_ns: I64
    read_bytes: I64
    write_bytes: I64
    reads: I64
    busy_ns: I64
    queue_ns: I64
    limit_bytes_s: float


def spaced(at: I64) -> I64:
    """Indices of the samples between which rates are taken; an interval that is too short is joined with its neighbour.

    Shapes: ``at`` int64[sample] in order; result: int64[kept].
    """
    if len(at) < DIFFERENCE or int(np.diff(at).min()) >= MIN_INTERVAL_NS:
        return np.arange(len(at))
    kept = [0]
    for row, moment in enumerate(at.tolist()):
        if moment - int(at[kept[-1]]) >= MIN_INTERVAL_NS:
            kept.append(row)
    last = len(at) - 1
    if kept[-1] != last and len(kept) > 1:
        kept[-1] = last
    return np.array(kept, np.int64)


def host(session: Session) -> HostTable:
    """The samples of the host between which rates are taken.

    Samples from after the job's end are left out: CPU time that its processes used since the sample before can no
    longer be read, and would count as that of other processes.
    """
    table, ended_ns = session.host, session.manifest.ended_ns
    if ended_ns > 0:
        table = table.take(table.at_ns <= ended_ns)
    return table.take(spaced(table.at_ns))


def growth(counter: I64) -> I64:
    """Growth between samples; a counter that falls has restarted. int64[sample - 1]."""
    result: I64 = np.maximum(np.diff(counter), 0)
    return result


def rate_at(times: I64, at: I64, counter: I64) -> F64:
    """Growth of a counter per nanosecond within the intervals between ``times``. float64[time - 1].

    A counter is taken to grow evenly between its samples and in the intervals before and after them.
    """
    if len(at) < DIFFERENCE:
        return np.zeros(max(0, len(times) - 1))
    total = np.concatenate(([0], np.cumsum(growth(counter)))).astype(float)
    value = np.interp(times.astype(float), at.astype(float), total)
    result: F64 = np.diff(value) / np.maximum(np.diff(times), 1)
    return result


def _numbers(session: Session, kind: str, numbers: I64) -> dict[str, list[int]]:
    """Names of one kind and their numbers: "net:eth0" is eth0."""
    found: dict[str, list[int]] = {}
    names = session.resource_names
    for number in np.unique(numbers):
        text = names[int(number)] if int(number) < len(names) else ""
        if text.startswith(f"{kind}:"):
            found.setdefault(text.removeprefix(f"{kind}:"), []).append(int(number))
    return found


def wire(session: Session) -> Wire | None:
    """The network counters; None if only loopback moved data, or nothing was sampled twice."""
    links = session.links.take(session.links.loopback == 0)
    at = np.unique(links.at_ns)
    at = at[spaced(at)]
    if len(at) < DIFFERENCE:
        return None
    received = np.zeros(len(at))
    sent = np.zeros(len(at))
    most, busiest, speed = -1, "", -1.0
    for name, numbers in _numbers(session, "net", links.name).items():
        mine = links.take(np.isin(links.name, numbers))
        if len(mine) < DIFFERENCE:
            continue
        rx = np.concatenate(([0], np.cumsum(growth(mine.rx_bytes))))
        tx = np.concatenate(([0], np.cumsum(growth(mine.tx_bytes))))
        received += np.interp(at, mine.at_ns, rx)
        sent += np.interp(at, mine.at_ns, tx)
        if rx[-1] > most:
            stated = int(mine.speed_bits_s[-1])
            most, busiest, speed = int(rx[-1]), name, stated / 8 if stated > 0 else -1.0
    return Wire(
        at_ns=at,
        rx_bytes=np.rint(received).astype(np.int64),
        tx_bytes=np.rint(sent).astype(np.int64),
        speed_bytes_s=speed,
        busiest=busiest,
    )


def disks(session: Session) -> list[Disk]:
    """Every device that was sampled twice."""
    table = session.disks
    found = []
    for name, numbers in _numbers(session, "disk", table.name).items():
        mine = table.take(np.isin(table.name, numbers))
        mine = mine.take(spaced(mine.at_ns))
        if len(mine) < DIFFERENCE:
            continue
        limit = int(mine.limit_bytes_s[-1])
        found.append(
            Disk(
                name=name,
                whole=bool(mine.whole[-1]),
                at_ns=mine.at_ns,
                read_bytes=mine.read_bytes,
                write_bytes=mine.write_bytes,
                reads=mine.reads,
                busy_ns=mine.busy_ns,
                queue_ns=mine.queue_ns,
                limit_bytes_s=float(limit) if limit > 0 else -1.0,
            )
        )
    return found
