"""The recent past of one process, in memory: the input of the live view, which does not read the session.

Bounded in every respect, however long the job runs: records of the last minute or so, the lines that records refer to,
and a count for each kind and name. Cost: some 50 us per second.
"""

from __future__ import annotations

from collections import deque
from dataclasses import fields
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from stepscope.model.log import events
from stepscope.model.records import RecordTable
from stepscope.model.session.session import Worker
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.formats.agent_files.log import LogLine
    from stepscope.formats.agent_files.ring import Records
    from stepscope.model.log.events import AnyEvent
    from stepscope.model.log.graph import NodeColumns
    from stepscope.model.session.session import WorkerInfo

MAX_RECORDS = 40_000
WINDOW_NS = 60_000_000_000
MAX_LINES = 20_000
"""Maximum number of lines that records refer to; a job with more is shown live without the newest of them."""
_MAX_PASSING = 400
_PASSING = frozenset({"itermodel", "metric", "child", "cost", "diagnostic", "capture"})
_NAMES = 1 << 32
_SHORT = int(Kind.COUNTS)
_NOT_COUNTED = int(Flag.END)
_NESTED = int(Flag.NESTED)
_REST = int(Kind.REST)
_DETACHED = tuple(map(int, kinds_with(Trait.DETACHED)))
_SHARED = 128
"""Number of newest calls before a rest that determine the names of the calls in it, as in ``derive.steps.rest``."""
_LOOP = int(Kind.LOOP)
_LOOP_OF = {"train": "fit", "test": "evaluate", "predict": "predict"}
_MAX_ENDED = 4_096


class Recent:
    """One process's recent past."""

    def __init__(self, origin_ns: int) -> None:
        """Begin empty; times of records count from ``origin_ns``."""
        self.counts: dict[tuple[int, int], int] = {}
        """Calls so far by (kind, name), including those that were counted instead of recorded."""
        self._newest = {kind: np.empty(0, np.uint32) for kind in _DETACHED}
        self.records = 0
        """Number of records so far."""
        self._origin_ns = origin_ns
        self._batches: deque[Records] = deque()
        self._held = 0
        self._lasting: list[bytes] = []
        self._decoded: list[AnyEvent] = []
        self._passing: deque[bytes] = deque(maxlen=_MAX_PASSING)
        self._ended: deque[int] = deque(maxlen=_MAX_ENDED)
        """Starts (CLOCK_MONOTONIC) of Keras loops that have ended."""
        self.nodes: list[NodeColumns] = []
        """Nodes of graphs, until they have been examined; the agent reads 60,000 at most."""

    def add_lines(self, lines: Iterable[LogLine]) -> None:
        """Take log lines."""
        for line in lines:
            if line.type in _PASSING:
                self._passing.append(line.text)
            elif len(self._lasting) < MAX_LINES:
                self._lasting.append(line.text)

    def add_records(self, records: Records) -> None:
        """Take records, in the order in which they were written."""
        if not len(records):
            return
        self.records += len(records)
        self._count(records)
        self._ended.extend(records["start_ns"][records["kind"] == _LOOP].tolist())
        self._batches.append(records)
        self._held += len(records)
        newest = int(records["start_ns"][-1])
        while len(self._batches) > 1 and (
            self._held > MAX_RECORDS or int(self._batches[0]["start_ns"][-1]) < newest - WINDOW_NS
        ):
            self._held -= len(self._batches.popleft())

    def _count(self, records: Records) -> None:
        rests = records[records["kind"] == _REST]
        records = records[records["kind"] != _REST]
        kinds = records["kind"].astype(np.int64)
        short = kinds == _SHORT
        real = np.where(short, records["flags"] >> 8, kinds)
        calls = np.where(short, records["arg"], (records["flags"] & _NOT_COUNTED) == 0)
        keys, where = np.unique(real * _NAMES + records["name"], return_inverse=True)
        totals = np.bincount(where, weights=calls)
        for key, total in zip(keys.tolist(), totals.tolist(), strict=True):
            pair = divmod(key, _NAMES)
            self.counts[pair] = self.counts.get(pair, 0) + int(total)
        for kind in _DETACHED:
            names = records["name"][(kinds == kind) & ((records["flags"] & _NESTED) == 0)]
            if len(names):
                self._newest[kind] = np.concatenate([self._newest[kind], names])[-_SHARED:]
        for rest in rests:
            self._count_rest(int(rest["flags"]) >> 8, int(rest["arg"]))

    def _count_rest(self, kind: int, calls: int) -> None:
        """Count the calls of a second in which wrappers were detached, by the names that the newest calls had."""
        if kind == Kind.FUNCTION and not len(self._newest[kind]):  # Keras 2: the step is a tf.function
            kind = int(Kind.EXECUTION)
        if kind not in self._newest or not len(self._newest[kind]):
            return
        names, shares = np.unique(self._newest[kind], return_counts=True)
        for name, share in zip(names.tolist(), shares.tolist(), strict=True):
            pair = (kind, name)
            self.counts[pair] = self.counts.get(pair, 0) + round(calls * share / len(self._newest[kind]))

    def forget(self) -> None:
        """Keep only the counts, because the process has ended."""
        self._batches.clear()
        self._held = 0
        self._lasting.clear()
        self._decoded.clear()
        self._passing.clear()
        self.nodes.clear()

    def worker(self, info: WorkerInfo) -> Worker:
        """The recent past as a process of a session."""
        for text in self._lasting[len(self._decoded) :]:
            self._decoded.append(self._decode(text))
        lines = [*self._decoded, *(self._decode(text) for text in self._passing)]
        return Worker(info=info, records=self._with_open_loop(self.table(), lines), events=lines)

    def _with_open_loop(self, records: RecordTable, lines: list[AnyEvent]) -> RecordTable:
        """Add an open Keras loop, which is recorded only at its end: it is assumed to last until the newest record."""
        batch = next((line for line in reversed(lines) if isinstance(line, events.BatchSeen) and line.loop), None)
        if batch is None or batch.loop + self._origin_ns in self._ended:
            return records
        role = _LOOP_OF.get(batch.role)
        name = next((n for n in reversed(lines) if isinstance(n, events.Name) and n.role == role), None)
        inside = (records.kind == Kind.EXECUTION) & (records.start_ns >= batch.loop)
        if name is None or not inside.any():
            return records
        end = int((records.start_ns + records.dur_ns).max())
        row = {"start_ns": batch.loop, "dur_ns": end - batch.loop, "name": name.id, "kind": _LOOP}
        row["thread"] = int(records.thread[inside][-1])
        loop = RecordTable(**{f.name: np.array([row.get(f.name, 0)], np.int64) for f in fields(RecordTable)})
        both = RecordTable.concat([loop, records])
        return both.take(np.lexsort((-both.dur_ns, both.start_ns)))

    def _decode(self, text: bytes) -> AnyEvent:
        try:
            event = events.decode(text)
        except (msgspec.DecodeError, TypeError):  # damaged; the session's reader reports it
            return events.AgentDiagnostic(code="", text="")
        at = event.at - self._origin_ns if event.at else 0
        if isinstance(event, events.BatchSeen) and event.loop:
            return msgspec.structs.replace(event, at=at, loop=event.loop - self._origin_ns)
        return msgspec.structs.replace(event, at=at)

    def table(self) -> RecordTable:
        """The records of the recent past."""
        if not self._batches:
            return RecordTable.empty()
        rows = np.concatenate(self._batches)
        columns = {name: rows[name].astype(np.int64) for name in ("dur_ns", "arg", "name", "kind", "flags", "thread")}
        table = RecordTable(start_ns=rows["start_ns"] - self._origin_ns, seq=rows["seq"].astype(np.int64), **columns)
        return table.take(np.lexsort((-table.dur_ns, table.start_ns)))
