"""What each replica of a strategy does in the traced steps of one process, by the devices of the graph's nodes.

Replicas of a MirroredStrategy are threads and devices of one process. A device is a replica's if ops of it exchange
tensors in the steps (collectives) and there are others that do. Its own time in a step is that in which any other op of
it runs; its time in exchanges is transfer, and the wait for the slowest.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.graph.index import NOT_FOUND
from stepscope.derive.numeric import intervals
from stepscope.derive.optrace import line_times
from stepscope.derive.optrace.host.activity import Activity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.line_times import Line
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.tables.records import F64, I64

MOST = 64
"""Most replicas that are compared."""


class ReplicaTimes(Struct, frozen=True, kw_only=True):
    """Times of all replicas in the same steps. Shapes: float64[step, replica], ns."""

    devices: tuple[str, ...]
    """CPU:0, GPU:1 ..."""
    own_ns: F64
    exchange_ns: F64
    period_ns: F64
    """Shape: [step]."""
    lines: tuple[Mapping[Line, float], ...]
    """Of each replica, time of its ops by line of user code, over all steps; those without a line left out."""


def build(view: OpView, index: GraphIndex) -> ReplicaTimes | None:
    """The times; None if fewer than two devices exchange tensors in the steps, or one works behind its host."""
    if not view.shows_steps or view.device >= 0:
        return None
    domain, events = view.domain, view.trace.events
    exchanging, working = domain.rows(Activity.COLLECTIVE), domain.rows(Activity.OP, Activity.PYTHON)
    of_exchange, of_work = _by_device(view, index, exchanging), _by_device(view, index, working)
    devices = sorted(of_exchange)
    if not 1 < len(devices) <= MOST:
        return None
    windows = view.periods.windows

    def times(rows: I64) -> F64:
        start = events.start_ns[rows].astype(np.float64)
        merged = intervals.merge(events.start_ns[rows], events.start_ns[rows] + events.dur_ns[rows])
        sums: F64 = intervals.paint([merged], windows).sums[:, 0].astype(np.float64)
        return sums if len(start) else np.zeros(len(view.periods))

    none = np.zeros(0, np.int64)
    return ReplicaTimes(
        devices=tuple(device.rpartition("device:")[2] for device in devices),
        own_ns=np.stack([times(of_work.get(device, none)) for device in devices], axis=1),
        exchange_ns=np.stack([times(of_exchange[device]) for device in devices], axis=1),
        period_ns=(view.periods.end_ns - view.periods.start_ns).astype(np.float64),
        lines=tuple(_lines(view, index, of_work.get(device, none)) for device in devices),
    )


def _nodes(view: OpView, index: GraphIndex, rows: I64) -> dict[int, I64]:
    """Rows of events by the graph's node that they ran."""
    metas, strings, meta = view.trace.metas, view.trace.strings, view.trace.events.meta[rows]
    found: dict[int, list[I64]] = defaultdict(list)
    for one in np.unique(meta).tolist():
        node = index.node_of(strings[metas.op_name[one]], strings[metas.op_type[one]])
        if node != NOT_FOUND:
            found[node].append(rows[meta == one])
    return {node: np.concatenate(parts) for node, parts in found.items()}


def _by_device(view: OpView, index: GraphIndex, rows: I64) -> dict[str, I64]:
    """Rows of events by the device that the program asked for."""
    found: dict[str, list[I64]] = defaultdict(list)
    for node, mine in _nodes(view, index, rows).items():
        device = _device(index, node)
        if device:
            found[device].append(mine)
    return {device: np.sort(np.concatenate(parts)) for device, parts in found.items()}


def _device(index: GraphIndex, node: int) -> str:
    """Device of a node, else of the node that calls its graph; "": any."""
    for _ in range(len(index.graphs) + 1):
        device = index.table.text(index.table.device, node)
        if device or node == NOT_FOUND:
            return device
        node = index.caller.get(int(index.table.graph[node]), NOT_FOUND)
        if node == NOT_FOUND:
            break
    return ""


def _lines(view: OpView, index: GraphIndex, rows: I64) -> Mapping[Line, float]:
    found: dict[Line, float] = defaultdict(float)
    for node, mine in _nodes(view, index, rows).items():
        place = line_times.origin(index, node).place
        if place is not None:
            found[place] += float(view.trace.events.dur_ns[mine].sum())
    return found
