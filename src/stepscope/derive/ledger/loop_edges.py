"""What a Keras loop does before its first step or hook and after its last: it makes the input's dataset, and drops it.

Each fit, evaluate and predict builds a dataset from what it is given, and an iterator with its threads; when it ends,
the iterator is destroyed, with the pipeline's threads and buffers. Neither is Python that a user sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.ledger import outside
from stepscope.derive.numeric import intervals
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.model.session.session import Worker

MAKING, DROPPING = "Keras makes the input's dataset and iterator", "Keras lets go of the input's iterator"
"""What the edges are called."""


class Edge(Struct, frozen=True, kw_only=True):
    """One of the two edges of all loops on some threads."""

    what: str
    spans: Intervals
    count: int


def build(worker: Worker, threads: tuple[int, ...]) -> tuple[Edge, ...]:
    """The edges of the outermost loops: from their start to the first call recorded in them, and from the last one."""
    records = outside.on_threads(worker, threads)
    counts = worker.records.take((worker.records.kind == Kind.COUNTS) & np.isin(worker.records.thread, threads))
    loops = records.take((records.kind == Kind.LOOP) & ((records.flags & Flag.NESTED) == 0))
    inner = records.take(~np.isin(records.kind, (Kind.LOOP, *kinds_with(Trait.IDLE))))
    begun = np.sort(np.concatenate((inner.start_ns, counts.start_ns)))
    ended = np.sort(np.concatenate((inner.start_ns + inner.dur_ns, counts.start_ns + counts.dur_ns)))
    starts, ends = loops.start_ns, loops.start_ns + loops.dur_ns
    first, last = np.searchsorted(begun, starts), np.searchsorted(ended, ends, side="right") - 1
    busy = (first < len(begun)) & (last >= 0)
    busy[busy] = (begun[first[busy]] < ends[busy]) & (ended[last[busy]] > starts[busy])
    edges = ((MAKING, starts[busy], begun[first[busy]]), (DROPPING, ended[last[busy]], ends[busy]))
    return tuple(Edge(what=what, spans=intervals.merge(low, high), count=int(busy.sum())) for what, low, high in edges)
