"""Lanes of the timeline for what a machine's processes share: CPUs, network, disks, memory and GPUs, as sampled.

A span lasts for as long as samples say the same to two digits; its shade is how much that is of the most that the lane
can hold, or has held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.app import series
from stepscope.app.resource_series import MB
from stepscope.derive.span_tracks import SpanTrack
from stepscope.model.timeline import RESOURCE, SpanName
from stepscope.units import NS_PER_S, format_bytes, format_quantity, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.span_tracks import Names
    from stepscope.derive.view import SessionView
    from stepscope.model.records import F64

MIN_SAMPLES = 2


def _cores(value: float) -> str:
    return format_quantity(value, "cores")


def _rate(value: float) -> str:
    return f"{format_bytes(value * MB)}/s"


def _size(value: float) -> str:
    return format_bytes(value * MB)


def _percent(value: float) -> str:
    return format_ratio(value / 100)


@dataclass(frozen=True, slots=True)
class _Lane:
    key: str
    title: str
    text: Callable[[float], str]
    limit: str = ""


LANES = (
    _Lane("res:cpu_cores", "CPU of the job", _cores, "res:cpu_limit_cores"),
    _Lane("res:others_cores", "CPU of others", _cores, "res:cpu_limit_cores"),
    _Lane("res:wait_cores", "waiting for a CPU", _cores, "res:cpu_limit_cores"),
    _Lane("res:rss_mb", "memory of the process", _size, "res:memory_limit_mb"),
    _Lane("res:net_in_mb_s", "network in", _rate, "res:net_limit_mb_s"),
    _Lane("res:net_out_mb_s", "network out", _rate, "res:net_limit_mb_s"),
    _Lane("res:read_mb_s", "read from disks", _rate, "res:disk_limit_mb_s"),
    _Lane("res:write_mb_s", "written to disks", _rate, "res:disk_limit_mb_s"),
    _Lane("res:disk_busy_percent", "busiest disk", _percent),
    _Lane("res:gpu_busy_percent", "GPUs busy", _percent),
    _Lane("res:gpu_reserved_mb", "memory of GPUs", _size, "res:gpu_limit_mb"),
    _Lane("res:pcie_in_mb_s", "to GPUs", _rate),
    _Lane("res:pcie_out_mb_s", "from GPUs", _rate),
)
"""In the order in which they are drawn."""


def build(view: SessionView, names: Names) -> Iterator[SpanTrack]:
    """A track for each resource that was sampled."""
    found = series.resources(view)
    times = found.get("res_t")
    if times is None or len(times) < MIN_SAMPLES:
        return
    end = np.rint(times * NS_PER_S).astype(np.int64)
    start = np.append(max(0, 2 * end[0] - end[1]), end[:-1])  # a sample speaks of the time since the one before
    host = view.recorded.manifest.host.name
    group = f"resources of {host}" if host else "resources"
    for lane in LANES:
        if lane.key not in found:
            continue
        values = np.array([float(f"{value:.2g}") for value in found[lane.key].tolist()])
        most = _most(values, found.get(lane.limit), percent=lane.text is _percent)
        first = np.flatnonzero(np.append(True, np.diff(values) != 0))
        last = np.append(first[1:], len(values)) - 1
        number = {
            value: names.add(
                SpanName(text=f"{lane.title} {lane.text(value)}", category=RESOURCE, level_ratio=min(1.0, value / most))
            )
            for value in np.unique(values).tolist()
        }
        yield SpanTrack(
            key=lane.key.replace(":", "."),
            group=group,
            title=lane.title,
            kind=RESOURCE,
            start=start[first],
            dur=end[last] - start[first],
            name=np.array([number[value] for value in values[first].tolist()], np.int32),
        )


def _most(values: F64, limit: F64 | None, *, percent: bool) -> float:
    """What a full lane is."""
    if percent:
        return 100.0
    return max(float(values.max()), float(limit.max()) if limit is not None else 0.0) or 1.0
