"""What the machine did during one step, compared with what it did on average over the steady steps.

Counters are sampled about once a second. For a step shorter than that, a rate is that of the samples around it: it says
what happened around the step, not in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.machine import counters, rivals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.session import Session
    from stepscope.tables.records import I64

NS = 1e9


class Reading(Struct, frozen=True, kw_only=True):
    """One counter around one step."""

    name: str
    """Key in report.json."""
    unit: str
    """cores | /s | MB/s | MB"""
    value: float
    usual: float
    """Mean over the steady steps."""
    interval_ns: int
    """Distance of the samples around the step."""


def build(session: Session, steps: Steps, start: int, end: int) -> tuple[Reading, ...]:
    """All counters that were sampled around the step from ``start`` to ``end``."""
    return tuple(found for source in (_host, _process, _disks, _memory) for found in source(session, steps, start, end))


def rival(session: Session, start: int, end: int) -> tuple[str, float] | None:
    """The process outside of the job that used most CPU around a step, and its cores; None: none was seen."""
    table = rivals.foreign(session)
    around = (table.at_ns > start) & (table.at_ns - table.interval_ns < end)
    table = table.take(around & ~rivals.is_child(table))
    if not len(table):
        return None
    at = int(np.argmax(table.cpu_ns / np.maximum(table.interval_ns, 1)))
    name = int(table.name[at])
    text = session.rival_names[name] if name < len(session.rival_names) else f"process {int(table.pid[at])}"
    return rivals.short_command(text), float(table.cpu_ns[at] / max(1, table.interval_ns[at]))


def _reading(name: str, unit: str, at: I64, counter: I64, times: tuple[I64, float]) -> Iterator[Reading]:
    """The growth of a counter around a step, and on average; ``times``: start and end of the step and of the steady
    steps, and by what a growth per second is divided.
    """
    (start, end, first, last), divisor = times[0].tolist(), times[1]
    if len(at) < counters.DIFFERENCE or start >= at[-1] or end <= at[0]:
        return
    low = max(0, int(np.searchsorted(at, start, side="right")) - 1)
    high = min(len(at) - 1, max(low + 1, int(np.searchsorted(at, end, side="left"))))
    if high <= low:
        return
    around = np.array([at[low], at[high]])
    value = counters.rate_at(around, at, counter)[0] * NS / divisor
    usual = counters.rate_at(np.array([max(first, at[0]), max(first + 1, last)]), at, counter)[0] * NS / divisor
    yield Reading(
        name=name, unit=unit, value=float(value), usual=float(usual), interval_ns=int(np.diff(at[low : high + 1]).max())
    )


def _times(steps: Steps, start: int, end: int) -> I64:
    return np.array([start, end, *steps.span], np.int64)


def _host(session: Session, steps: Steps, start: int, end: int) -> Iterator[Reading]:
    host, when = counters.host(session), _times(steps, start, end)
    for name, counter in (
        ("others_cpu", host.others_cpu_ns),
        ("throttled", host.throttled_ns),
        ("waiting_for_disk", host.iowait_ns),
        ("steal", host.steal_ns),
    ):
        if len(counter) and int(counter.min()) >= 0:
            yield from _reading(name, "cores", host.at_ns, counter, (when, NS))


def _process(session: Session, steps: Steps, start: int, end: int) -> Iterator[Reading]:
    mine = session.process.take(session.process.pid == steps.worker.info.pid)
    mine = mine.take(counters.spaced(mine.at_ns))
    when = _times(steps, start, end)
    yield from _reading("cpu", "cores", mine.at_ns, mine.cpu_user_ns + mine.cpu_system_ns, (when, NS))
    yield from _reading("wait_for_cpu", "cores", mine.at_ns, mine.wait_ns, (when, NS))
    yield from _reading("page_faults", "/s", mine.at_ns, mine.minor_faults, (when, 1.0))
    yield from _reading("major_faults", "/s", mine.at_ns, mine.major_faults, (when, 1.0))
    yield from _reading("written", "MB/s", mine.at_ns, mine.write_bytes, (when, 1e6))
    yield from _reading("read", "MB/s", mine.at_ns, mine.read_bytes, (when, 1e6))


def _disks(session: Session, steps: Steps, start: int, end: int) -> Iterator[Reading]:
    """The busiest of the disks."""
    when = _times(steps, start, end)
    found = [
        reading
        for disk in counters.disks(session)
        for reading in _reading("disk_busy", "disks", disk.at_ns, disk.busy_ns, (when, NS))
    ]
    yield from sorted(found, key=lambda reading: -reading.value)[:1]


def _memory(session: Session, steps: Steps, start: int, end: int) -> Iterator[Reading]:
    memory = session.memory
    if len(memory) and int(memory.swap_used_bytes.min()) >= 0:
        yield from _reading(
            "swapped_out", "MB/s", memory.at_ns, memory.swap_used_bytes, (_times(steps, start, end), 1e6)
        )
