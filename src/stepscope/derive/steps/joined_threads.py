"""Lanes: threads that do the same work one after another, as in a server with one thread for each request.

Each of them makes a few calls and ends, so none repeats anything. In sequence their calls are like those of one caller:
the records of such a chain of threads get one thread id below zero. Threads that work at the same time are in different
lanes. The main thread keeps its id, and so does a thread that no other one precedes or follows with the same work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.model.log.events import Name, ThreadSeen
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.model.session.session import Worker
    from stepscope.tables.records import RecordTable

KINDS = kinds_with(Trait.MAKER)


def joined(worker: Worker) -> Worker:
    """The worker with one thread id per lane of several threads. Cost: O(records) if there are no such threads."""
    records = worker.records
    calls = np.flatnonzero(np.isin(records.kind, KINDS))
    threads, which = np.unique(records.thread[calls], return_inverse=True)
    main = {seen.id for seen in worker.all(ThreadSeen) if seen.main}
    if len(threads) - len(main.intersection(threads.tolist())) <= 1:
        return worker
    meanings = {name.id: (name.text, name.file, name.line, name.role) for name in worker.all(Name)}
    starts = records.start_ns[calls]
    ends = starts + records.dur_ns[calls]
    begun = np.full(len(threads), np.iinfo(np.int64).max)
    over = np.zeros(len(threads), np.int64)
    np.minimum.at(begun, which, starts)
    np.maximum.at(over, which, ends)
    does: list[set[object]] = [set() for _ in threads]
    for thread, name in {*zip(which.tolist(), records.name[calls].tolist(), strict=True)}:
        does[thread].add(meanings.get(name, name))
    lanes: list[_Lane] = []
    for one in np.argsort(begun, kind="stable").tolist():
        if int(threads[one]) in main:
            continue
        fits = [lane for lane in lanes if lane.until <= begun[one] and not lane.does.isdisjoint(does[one])]
        if fits:
            max(fits, key=lambda lane: lane.until).take(int(threads[one]), int(over[one]), does[one])
        else:
            lanes.append(_Lane(int(threads[one]), int(over[one]), does[one]))
    chains = [lane.threads for lane in lanes if len(lane.threads) > 1]
    if not chains:
        return worker
    lane_of = {thread: -number for number, chain in enumerate(chains, 1) for thread in chain}
    return replace(worker, records=_relabelled(records, lane_of), in_gaps=_relabelled(worker.in_gaps, lane_of))


def _relabelled(records: RecordTable, lane_of: Mapping[int, int]) -> RecordTable:
    """The records with the number of a lane for each thread that is part of one."""
    known, at = np.unique(records.thread, return_inverse=True)
    thread = np.array([lane_of.get(number, number) for number in known.tolist()], np.int64)[at]
    return replace(records, thread=thread)


class _Lane:
    """Threads that follow one another."""

    def __init__(self, thread: int, until: int, does: set[object]) -> None:
        self.threads = [thread]
        self.until = until
        self.does = does

    def take(self, thread: int, until: int, does: set[object]) -> None:
        """Add the next thread."""
        self.threads.append(thread)
        self.until = until
        self.does = self.does | does
