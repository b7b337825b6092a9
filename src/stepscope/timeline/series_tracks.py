"""The resources of a session's machine over time, for the timeline: CPU, memory, network, disks, GPUs.

A rate holds between two samples. Where a burst sampled more often (``BurstTable``), its rates replace the mean of that
second, and the remainder is spread over the unsampled part of the second, so that the area stays equal to what was
counted. Unknown times have no value. A resource that never changes has no series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.system.resources import BURST_GAP_NS
from stepscope.derive.machine import counters, tcp_links
from stepscope.timeline.series_levels import Held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.session.session import Session
    from stepscope.tables.records import F64, I64, GpuTable

NS = 1e9
MOST_NS = 1 << 53
MOST_CONNECTIONS = 6
"""Connections with tracks."""
LAST_HELD_NS = 1_000_000_000
"""A single sampled value holds for this long: about one sampling interval."""


class SeriesTrack(Struct, frozen=True, kw_only=True):
    """One resource of a machine over time."""

    key: str
    group: str
    title: str
    unit: str
    about: str
    held: Held


def tracks(session: Session) -> list[SeriesTrack]:
    """All resources that were sampled and that changed."""
    group = group_of(session)
    made = [
        SeriesTrack(key=key, group=group, title=title, unit=unit, about=about, held=ordered(held))
        for key, title, unit, about, held in _all(session)
    ]
    return [track for track in made if len(track.held) and track.held.value.max() > 0]


def group_of(session: Session) -> str:
    """The group of a session's machine."""
    machine = session.manifest.host.name
    return f"resources of {machine}" if machine else "resources"


def _all(session: Session) -> Iterator[tuple[str, str, str, str, Held]]:
    """Yields key, title, unit, how it was sampled, values."""
    bursts = session.bursts
    yield "cpu", "CPU", "cores", "of the job's measured processes", _cpu(session)
    host = counters.host(session)
    host = host.take(host.others_cpu_ns >= 0)
    yield (
        "cpu-others",
        "CPU of others",
        "cores",
        "of all other processes",
        rates(host.at_ns, host.others_cpu_ns, per=1.0),
    )
    about = "resident in the job's measured processes; what they share counts in each"
    yield "memory", "memory", "bytes", about, _resident(session)
    wire = counters.wire(session)
    if wire is not None:
        about = "all interfaces but the loopback"
        for key, title, own, close in (
            ("net-in", "network in", wire.rx_bytes, bursts.rx_bytes),
            ("net-out", "network out", wire.tx_bytes, bursts.tx_bytes),
        ):
            yield key, title, "bytes/s", about, closer(rates(wire.at_ns, own), bursts.at_ns, close)
    devices = [disk for disk in counters.disks(session) if disk.whole] or counters.disks(session)
    if devices:
        about = "by everybody on " + ", ".join(disk.name for disk in devices)
        read = [rates(disk.at_ns, disk.read_bytes) for disk in devices]
        written = [rates(disk.at_ns, disk.write_bytes) for disk in devices]
        yield "disk-read", "disk read", "bytes/s", about, added(read)
        yield "disk-written", "disk written", "bytes/s", about, added(written)
    yield from _gpus(session)
    yield from _tcp(session)


def ordered(held: Held) -> Held:
    """Values sorted, without overlaps and within countable bounds, whatever a damaged or hostile table holds."""
    start, end = np.clip(held.start, -MOST_NS, MOST_NS), np.clip(held.end, -MOST_NS, MOST_NS)
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    before = np.append(-MOST_NS, np.maximum.accumulate(end)[:-1])[: len(end)]
    good = (end > start) & (start >= before) & np.isfinite(held.value[order])
    return Held(start[good], end[good], held.value[order][good])


def _cpu(session: Session) -> Held:
    host = counters.host(session)
    known = host.take(host.job_cpu_ns >= 0)
    return rates(known.at_ns, known.job_cpu_ns, per=1.0)  # bursts sample fewer processes


def rates(at: I64, counter: I64, per: float = NS) -> Held:
    """Growth between samples, per ``per``: a second, or 1 for nanoseconds of CPU per nanosecond."""
    if len(at) < counters.DIFFERENCE:
        return _none()
    real = np.flatnonzero(np.diff(at) > 0)
    value = counters.growth(counter)[real] / np.diff(at)[real] * per
    return Held(at[:-1][real], at[1:][real], value)


def _none() -> Held:
    return Held(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def closer(coarse: Held, at: I64, counter: I64) -> Held:
    """A second's mean, with a burst's samples in place of the parts that the burst covered."""
    fine = rates(at, counter)
    if not len(coarse) or not len(fine):
        return coarse
    close = (fine.end - fine.start < BURST_GAP_NS) & (fine.start >= coarse.start[0]) & (fine.end <= coarse.end[-1])
    fine = Held(fine.start[close], fine.end[close], fine.value[close])
    if not len(fine):
        return coarse
    start, end = _pieces([coarse, fine])
    of = np.searchsorted(coarse.start, start, "right") - 1
    by = np.searchsorted(fine.start, start, "right") - 1
    seen = (by >= 0) & (start < fine.end[np.maximum(by, 0)])
    value = np.where(seen, fine.value[np.maximum(by, 0)], 0.0)
    length = (end - start).astype(np.float64)
    size = len(coarse)
    counted = np.bincount(of[seen], weights=(value * length)[seen], minlength=size)
    unseen = np.bincount(of[~seen], weights=length[~seen], minlength=size)
    left = np.maximum(0.0, coarse.value * (coarse.end - coarse.start) - counted) / np.maximum(unseen, 1.0)
    return Held(start, end, np.where(seen, value, left[of]))


def _pieces(parts: list[Held]) -> tuple[I64, I64]:
    """The times between all edges that lie in the first part."""
    edges = np.unique(np.concatenate([one for part in parts for one in (part.start, part.end)]))
    start, end = edges[:-1], edges[1:]
    first = parts[0]
    of = np.searchsorted(first.start, start, "right") - 1
    inside = (of >= 0) & (start < first.end[np.maximum(of, 0)])
    return start[inside], end[inside]


def added(parts: list[Held]) -> Held:
    """Sum of several series; where one has no value, the others count alone."""
    parts = [part for part in parts if len(part)]
    if len(parts) <= 1:
        return parts[0] if parts else _none()
    return _steps(
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        np.concatenate([part.value for part in parts]),
    )


def _steps(start: I64, end: I64, value: F64) -> Held:
    """Sum of values that each hold for some time and may overlap."""
    at = np.concatenate([start, end])
    order = np.argsort(at, kind="stable")
    change, holding = np.concatenate([value, -value])[order], np.repeat((1, -1), len(start))[order]
    at = at[order]
    last = np.flatnonzero(np.diff(at, append=at[-1] + 1) > 0)
    total, holders = np.cumsum(change)[last], np.cumsum(holding)[last]
    edges = at[last]
    known = holders[:-1] > 0
    return Held(edges[:-1][known], edges[1:][known], np.maximum(0.0, total[:-1][known]))


def _resident(session: Session) -> Held:
    parts = []
    for pid in np.unique(session.process.pid):
        mine = session.process.take(session.process.pid == pid)
        parts.append(_looks(mine.at_ns, mine.rss_bytes))
    return added(parts)


def _looks(at: I64, value: I64) -> Held:
    """Each sampled value holds until the next sample."""
    if not len(at):
        return _none()
    usual = int(np.median(np.diff(at))) if len(at) > 1 else LAST_HELD_NS
    end = np.append(at[1:], at[-1] + max(1, usual))
    known = np.flatnonzero((value >= 0) & (end > at))
    return Held(at[known], end[known], value[known].astype(np.float64))


def _tcp(session: Session) -> Iterator[tuple[str, str, str, str, Held]]:
    """Of each connection that carried most: bytes sent, and bytes sent again."""
    found = tcp_links.by_connection(session, session.peers.tcp)
    moved = [(int(counters.growth(rows.acked_bytes).sum()), ends, rows) for ends, rows in found.items()]
    for index, (sent, (here, there), rows) in enumerate(sorted(moved, key=lambda one: -one[0])[:MOST_CONNECTIONS]):
        if sent <= 0:
            continue
        title, ends = f"to {there}", f"from {here} to {there}"
        about = f"acknowledged bytes of the connection {ends}"
        yield f"tcp{index}-sent", title, "bytes/s", about, rates(rows.at_ns, rows.acked_bytes)
        about = f"sent again on the connection {ends}"
        yield f"tcp{index}-again", f"{title}, again", "bytes/s", about, rates(rows.at_ns, rows.retrans_bytes)


def _gpus(session: Session) -> Iterator[tuple[str, str, str, str, Held]]:
    names = session.resource_names
    gpus = session.gpus
    texts = sorted({names[n] for n in np.unique(gpus.name).tolist() if n < len(names)})
    for index, text in enumerate(texts):
        numbers = [number for number, name in enumerate(names) if name == text]
        mine = gpus.take(np.isin(gpus.name, numbers))
        title = f"GPU {text.removeprefix('gpu:').partition(' ')[0]}"
        about = text.removeprefix("gpu:")
        yield f"gpu{index}-busy", f"{title} busy", "ratio", f"a kernel ran on {about}", _busy(mine)
        yield (
            f"gpu{index}-memory",
            f"{title} memory",
            "bytes",
            f"in use by anybody on {about}",
            _looks(mine.at_ns, mine.reserved_bytes),
        )


def _busy(gpu: GpuTable) -> Held:
    """GPU utilisation by NVML: the share of the time before each sample."""
    if len(gpu) < counters.DIFFERENCE:
        return _none()
    known = np.flatnonzero((gpu.busy_percent[1:] >= 0) & (np.diff(gpu.at_ns) > 0))
    return Held(gpu.at_ns[:-1][known], gpu.at_ns[1:][known], gpu.busy_percent[1:][known] / 100.0)
