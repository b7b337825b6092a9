"""The recent past of one process, in memory: the input of the live view, which does not read the session.

Bounded in every respect, however long the job runs: records of the last minute or so, the lines that records refer to,
and a count for each kind and name. Cost: some 50 us per second, 0.2 ms in a second with a gap of the duty cycle.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from stepscope.derive.steps.gaps import BEFORE, share
from stepscope.model.log import events
from stepscope.model.session.session import Worker
from stepscope.store import gaps
from stepscope.tables.records import RecordTable
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.collector.agent_files.log import LogLine
    from stepscope.collector.agent_files.ring import Records
    from stepscope.model.log.events import AnyEvent
    from stepscope.model.log.graph import NodeColumns
    from stepscope.model.session.session import WorkerInfo
    from stepscope.tables.records import Gaps

MAX_RECORDS = 40_000
WINDOW_NS = 60_000_000_000
MAX_LINES = 20_000
"""Maximum number of lines that records refer to; a job with more is shown live without the newest of them."""
_MAX_PASSING = 400
_PASSING = frozenset({"itermodel", "metric", "child", "cost", "diagnostic", "capture"})
_NAMES = 1 << 32
_BATCH = "batch"
_SHORT = int(Kind.COUNTS)
_NOT_COUNTED = int(Flag.END)
_NESTED = int(Flag.NESTED)
_REST = int(Kind.REST)
_IDLE = tuple(map(int, kinds_with(Trait.IDLE)))
_STEPS = tuple(map(int, kinds_with(Trait.STEP)))
_DETACHED = tuple(map(int, kinds_with(Trait.DETACHED)))
_LOOP = int(Kind.LOOP)
_LOOP_OF = {"train": "fit", "test": "evaluate", "predict": "predict"}
_MAX_ENDED = 4_096


class Recent:
    """One process's recent past."""

    def __init__(self, origin_ns: int) -> None:
        """Begin empty; times of records count from ``origin_ns``."""
        self.counts: dict[tuple[int, int], int] = {}
        """Number of calls so far by (kind, name), including those that were counted instead of recorded."""
        self._newest: dict[int, Records] = {}
        """Newest records by kind, from which the names of calls counted in the next gap are inferred."""
        self.records = 0
        """Number of records so far."""
        self.worked_ns = 0
        """CLOCK_MONOTONIC at the end of the newest record of work; 0: there is none."""
        self.longest_pause_ns = 0
        """Longest time from the end of one record of work to that of the next, since the first step."""
        self._stepped = False
        self._origin_ns = origin_ns
        self._batches: deque[Records] = deque()
        self._held = 0
        self._lasting: list[bytes] = []
        self._decoded: list[AnyEvent] = []
        self._passing: deque[bytes] = deque(maxlen=_MAX_PASSING)
        self._ended: deque[int] = deque(maxlen=_MAX_ENDED)
        """Starts (CLOCK_MONOTONIC) of Keras loops that have ended."""
        self.fit: events.BatchSeen | None = None
        """The newest fit that said its epochs; times are CLOCK_MONOTONIC."""
        self._before_fit: dict[tuple[int, int], int] = {}
        """``counts`` when it began."""
        self.nodes: list[NodeColumns] = []
        """Nodes of graphs, until they have been examined; the agent reads 60,000 at most."""

    def add_lines(self, lines: Iterable[LogLine]) -> None:
        """Take log lines."""
        for line in lines:
            if line.type == _BATCH:
                self._note_fit(line.text)
            if line.type in _PASSING:
                self._passing.append(line.text)
            elif len(self._lasting) < MAX_LINES:
                self._lasting.append(line.text)

    def _note_fit(self, text: bytes) -> None:
        try:
            event = events.decode(text)
        except (msgspec.DecodeError, TypeError):  # damaged; the session's reader reports it
            return
        if isinstance(event, events.BatchSeen) and event.epochs:
            self.fit, self._before_fit = event, dict(self.counts)

    @property
    def fit_runs(self) -> bool:
        """Whether ``fit`` has not ended."""
        return self.fit is not None and self.fit.loop not in self._ended

    def since_fit(self, kind: int, name: int) -> int:
        """Calls of one kind and name since ``fit`` began."""
        return self.counts.get((kind, name), 0) - self._before_fit.get((kind, name), 0)

    def add_records(self, records: Records) -> None:
        """Take records, in the order in which they were written."""
        if not len(records):
            return
        self.records += len(records)
        self._note_work(records)
        self._count(records)
        self._ended.extend(records["start_ns"][records["kind"] == _LOOP].tolist())
        self._batches.append(records)
        self._held += len(records)
        newest = int(records["start_ns"][-1])
        while len(self._batches) > 1 and (
            self._held > MAX_RECORDS or int(self._batches[0]["start_ns"][-1]) < newest - WINDOW_NS
        ):
            self._held -= len(self._batches.popleft())

    def _note_work(self, records: Records) -> None:
        nothing = np.isin(records["kind"], _IDLE) | ((records["kind"] == _REST) & (records["arg"] == 0))
        work = records[~nothing]
        if not len(work):
            return
        ends = np.maximum.accumulate(work["start_ns"] + work["dur_ns"])
        steps = np.flatnonzero(np.isin(work["kind"], _STEPS))
        self.worked_ns, before = max(self.worked_ns, int(ends[-1])), self.worked_ns
        if self._stepped:
            ends = np.concatenate([[before], ends])
        elif len(steps):
            self._stepped, ends = True, ends[steps[0] :]
        else:
            return
        self.longest_pause_ns = max(self.longest_pause_ns, int(np.diff(ends).max(initial=0)))

    def _count(self, records: Records) -> None:
        told = records["kind"] == _REST
        parts, records = records[told], records[~told]
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
            mine = records[(kinds == kind) & ((records["flags"] & _NESTED) == 0)]
            if len(mine):
                self._newest[kind] = np.concatenate([self._newest[kind], mine]) if kind in self._newest else mine
        if len(parts):
            self._share_out(parts)
        self._newest = {kind: mine[-BEFORE:] for kind, mine in self._newest.items()}

    def _share_out(self, parts: Records) -> None:
        """Add the calls that were counted in parts of gaps to those of the names that they belong to.

        Loops are recorded when they end: while one runs, only the newest calls say whose the counted ones are.
        """
        records, detached, _ = gaps.split(self._as_table(np.concatenate([*self._newest.values(), parts])))
        for kind in _DETACHED:
            mine = np.flatnonzero(records.kind == kind)
            for name in np.unique(records.name[mine]).tolist():
                calls = share(records, detached, Kind(kind), mine[records.name[mine] == name])
                self.counts[kind, name] = self.counts.get((kind, name), 0) + calls

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
        records, detached, in_gaps = gaps.split(self._with_open_loop(self._table(), lines))
        return Worker(info=info, records=records, gaps=detached, in_gaps=in_gaps, events=lines)

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
        loop = RecordTable(**{name: np.array([row.get(name, 0)], np.int64) for name in RecordTable.__struct_fields__})
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

    def observed(self) -> tuple[RecordTable, Gaps]:
        """What was observed in the recent past, and its gaps."""
        records, detached, _ = gaps.split(self._table())
        return records, detached

    def _table(self) -> RecordTable:
        """The records of the recent past, as they are stored."""
        if not self._batches:
            return RecordTable.empty()
        return self._as_table(np.concatenate(self._batches))

    def _as_table(self, rows: Records) -> RecordTable:
        columns = {name: rows[name].astype(np.int64) for name in ("dur_ns", "arg", "name", "kind", "flags", "thread")}
        table = RecordTable(start_ns=rows["start_ns"] - self._origin_ns, seq=rows["seq"].astype(np.int64), **columns)
        return table.take(np.lexsort((-table.dur_ns, table.start_ns)))
