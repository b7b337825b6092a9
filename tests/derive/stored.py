"""A process as the reader gives it, and back: gaps of the duty cycle are split off what a session stores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from stepscope.model.log.events import AnyEvent
from stepscope.model.log.graph import GraphTable
from stepscope.model.session.session import Worker, WorkerInfo
from stepscope.store import gaps as gaps_of
from stepscope.tables.records import RecordTable
from stepscope.wire.kinds import Kind


def read(info: WorkerInfo, table: RecordTable, events: Sequence[AnyEvent], graphs: GraphTable) -> Worker:
    """The process whose stored records are ``table``."""
    records, gaps, in_gaps = gaps_of.read(table)
    return Worker(info=info, records=records, gaps=gaps, in_gaps=in_gaps, events=tuple(events), graphs=graphs)


def stored(worker: Worker) -> RecordTable:
    """The records of a process as a session stores them: the opposite of ``store.gaps.split``."""
    gaps, zero = worker.gaps, np.zeros(len(worker.gaps), np.int64)
    told = RecordTable(
        start_ns=gaps.start_ns,
        dur_ns=gaps.end_ns - gaps.start_ns,
        arg=gaps.calls,
        name=zero,
        kind=zero + Kind.REST,
        flags=gaps.kind << 8,
        thread=zero,
        seq=zero,
    )
    both = RecordTable.concat([worker.with_gaps(), told])
    return replace(both.take(np.lexsort((-both.dur_ns, both.start_ns))), seq=np.arange(len(both), dtype=np.int64))
