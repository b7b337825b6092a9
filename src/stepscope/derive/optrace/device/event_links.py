"""Links from one event of an op trace to another, as the profiler recorded them; none is guessed from times.

Three forms are read: a launch call and the device's work carry the same correlation id; the arrows of Chrome traces
begin at one event and end at others; producers and consumers carry the same id and type (``_p``, ``_c``).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.device import device_work, launch_times
from stepscope.tables.optrace import PlaneKind
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64, Bool

_NONE = -(1 << 63)
_OUT = ((StatName.FLOW_OUT, ""), (StatName.PRODUCER_ID, StatName.PRODUCER_TYPE))
_IN = ((StatName.FLOW_IN, ""), (StatName.CONSUMER_ID, StatName.CONSUMER_TYPE))


class LinkKind(IntEnum):
    """Kind of a link."""

    LAUNCH = 1
    """From the host's call to the work on the device."""
    FLOW = 2
    """From the place where something was handed over to the place where it was taken up."""
    TRANSFER = 3
    """From the op that made a tensor to its transfer to another task, and from that to where it came."""
    DATA = 4
    """From the op that made a tensor to an op that takes it (``data_links``: by the graph)."""


class Links(Struct, frozen=True):
    """Links between events, each once. Shapes: [link]; rows of the trace's events."""

    source: I64
    target: I64
    kind: I64

    def __len__(self) -> int:
        """Number of links."""
        return len(self.source)


def build(trace: OpTrace) -> Links:
    """All links. Cost: reads the stats that hold them, and nothing if there are none."""
    there = {*trace.stats.event_names(), *trace.stats.meta_names()}
    parts = [*_launches(trace, there), *_flows(trace, there)]
    if not parts:
        nothing = np.empty(0, np.int64)
        return Links(nothing, nothing, nothing)
    source, target = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
    kind = np.concatenate([np.full(len(part[0]), part[2], np.int64) for part in parts])
    order = np.lexsort((kind, target, source))
    source, target, kind = source[order], target[order], kind[order]
    new = np.append(True, (np.diff(source) != 0) | (np.diff(target) != 0))[: len(source)] & (source != target)
    return Links(source[new], target[new], kind[new])


def joined(one: Links, other: Links) -> Links:
    """All links of both."""
    return Links(
        np.concatenate([one.source, other.source]),
        np.concatenate([one.target, other.target]),
        np.concatenate([one.kind, other.kind]),
    )


def _launches(trace: OpTrace, there: set[str]) -> Iterator[tuple[I64, I64, LinkKind]]:
    if StatName.CORRELATION_ID not in there:
        return
    host = _of_hosts(trace)
    for plane in device_work.captured(trace):
        work = device_work.rows(trace, plane.index)
        call = launch_times.callers(trace, work, host)
        known = call >= 0
        yield call[known], work[known], LinkKind.LAUNCH


def _of_hosts(trace: OpTrace) -> Bool:
    hosts = [plane.index for plane in trace.planes if plane.kind is PlaneKind.HOST]
    lines = np.array([line.plane in hosts and not line.derived for line in trace.lines], np.bool_)
    chosen: Bool = lines[trace.events.line]
    return chosen


def _flows(trace: OpTrace, there: set[str]) -> Iterator[tuple[I64, I64, LinkKind]]:
    start = trace.events.start_ns
    for (out, out_type), (into, in_type) in zip(_OUT, _IN, strict=True):
        if out not in there or into not in there:
            continue
        sources, source_ids = _with(trace, out, out_type)
        targets, target_ids = _with(trace, into, in_type)
        _, codes = np.unique(np.concatenate([source_ids, target_ids]), axis=0, return_inverse=True)
        codes = codes.reshape(-1)
        found, of = _latest_before(codes[: len(sources)], start[sources], codes[len(sources) :], start[targets])
        yield sources[found], targets[of], LinkKind.FLOW


def _with(trace: OpTrace, name: str, kind: str) -> tuple[I64, I64]:
    """Events that have a stat: their rows, and its value together with that of its type. int64[event, 2].

    A stat with a type is 0 where it was not numbered (``agent.capture.split_activities``).
    """
    ids = trace.ints(name, missing=_NONE)
    rows = np.flatnonzero((ids != _NONE) & ((ids != 0) | (not kind)))
    types = trace.ints(kind)[rows] if kind else np.zeros(len(rows), np.int64)
    return rows, np.stack([ids[rows], types], axis=1)


def _latest_before(codes: I64, starts: I64, wanted: I64, until: I64) -> tuple[I64, I64]:
    """For each wanted code the last one that began before it, or else the first: positions in ``codes``, in ``wanted``.

    Ids are reused in long traces, and a consumer may have begun to wait before anything was handed over.
    """
    _, ranks = np.unique(np.concatenate([starts, until]), return_inverse=True)
    ranks = ranks.reshape(-1)
    size = len(ranks) + 1
    order = np.lexsort((starts, codes))
    keys = (codes * size + ranks[: len(starts)])[order]
    low, high = np.searchsorted(codes[order], wanted, "left"), np.searchsorted(codes[order], wanted, "right")
    at = np.searchsorted(keys, wanted * size + ranks[len(starts) :], "right") - 1
    there = np.flatnonzero(high > low)
    return order[np.maximum(at, low)[there]], there
