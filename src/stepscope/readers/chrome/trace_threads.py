"""The processes and threads of a trace file, and the spans of each: begin events with their ends, and what is broken.

Only what names a process or thread, the first event of each thread, and begin and end events are looked at one by one,
in the order of time; a file has few of them, or is one whose writer makes small ones.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.readers.chrome import json_values
from stepscope.readers.chrome.trace_json import KINDS

if TYPE_CHECKING:
    from stepscope.readers.chrome.event_columns import Asynchronous, Columns, Described, EventColumns
    from stepscope.tables.records import F64, I64, Bool

_WHOLE, _PAIRS, _ASYNCHRONOUS, _FLOWS, _NAMES = "XiIR", "BE", "be", "stf", "M"
_PLACED = frozenset(_WHOLE + _PAIRS + _ASYNCHRONOUS + _FLOWS + _NAMES)


class Thread(Struct):
    """A thread, or a line for asynchronous events."""

    name: str = ""
    open: list[int] = field(default_factory=list)
    """Events without an end so far."""
    number: int = -1
    """Number among the threads of all processes."""


class Process(Struct):
    """A process."""

    name: str = ""
    label: str = ""
    threads: dict[str, Thread] = field(default_factory=dict)


class Spans(Struct, frozen=True, kw_only=True):
    """Events with a duration, and instants, by thread and then by when they were complete. Shapes: [span]."""

    row: I64
    """Index of its (begin) event in the file."""
    thread: I64
    start_us: F64
    dur_us: F64


class Flows(Struct, frozen=True, kw_only=True):
    """Ends of flow arrows in the order of time. Shapes: [end]."""

    thread: I64
    at_us: F64
    number: I64
    """Equal for the ends of one arrow."""
    begins: Bool
    """Flag: the arrow begins there."""


class Threads:
    """Sorts the events of a file by process and thread. One use only."""

    def __init__(self, events: EventColumns, columns: Columns) -> None:
        """Go through a file's events in the order of time."""
        self._events = events
        self._places = events.places
        self._columns = columns
        self._phases = {columns.texts[code]: code for code in np.unique(columns.phase).tolist()}
        self.start_us: F64 = np.nan_to_num(columns.start_us, nan=0.0)
        self.order: I64 = np.argsort(np.where(np.isnan(columns.start_us), -np.inf, columns.start_us), kind="stable")
        """The events in the order of time."""
        self._turn = np.empty(len(self.order), np.int64)
        self._turn[self.order] = np.arange(len(self.order))
        self.processes: dict[str, Process] = {}
        self.left_out: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self._pending: dict[Asynchronous, list[tuple[Thread, int]]] = {}
        self._ended: list[tuple[int, Thread, int, float]] = []
        self._of_place: dict[int, Thread] = {}
        self._walk()
        self._leave_out()
        self.threads = [thread for process in self.processes.values() for thread in process.threads.values()]
        for number, thread in enumerate(self.threads):
            thread.number = number

    def count(self, phase: str) -> int:
        """Number of events of a phase."""
        return int(self._of(phase).sum())

    def _of(self, phases: str) -> Bool:
        return np.isin(self._columns.phase, [self._phases[phase] for phase in phases if phase in self._phases])

    def _walk(self) -> None:
        described = {one.row: one for one in self._events.described}
        pairs = self._of(_PAIRS)
        single = pairs | self._of(_ASYNCHRONOUS) | self._of(_NAMES)
        placed = self.order[~self._of(_NAMES)[self.order]]
        first = np.zeros(len(self._places), np.int64)
        first[self._columns.place[placed[::-1]]] = placed[::-1]
        single[first[np.unique(self._columns.place[placed])]] = True
        rows = self.order[single[self.order]]
        for row, place, code, paired in zip(
            rows.tolist(),
            self._columns.place[rows].tolist(),
            self._columns.phase[rows].tolist(),
            pairs[rows].tolist(),
            strict=True,
        ):
            pid, tid = self._places[place]
            process = self.processes.setdefault(pid, Process())
            if row in described:
                _describe(process, tid, described[row])
                continue
            thread = self._of_place[place] = process.threads.setdefault(tid, Thread())
            if row in self._events.asynchronous:
                self._asynchronous(process, row, begins=self._columns.texts[code] == "b")
            elif paired and self._columns.texts[code] == "B":
                thread.open.append(row)
            elif paired:
                self._end(thread, row)

    def _leave_out(self) -> None:
        """Count what has no place in an op trace, in the order of time."""
        others = [(code, phase) for phase, code in self._phases.items() if phase not in _PLACED]
        found = []
        for code, phase in others:
            rows = np.flatnonzero(self._columns.phase == code)
            found.append((int(self._turn[rows].min()), phase, len(rows)))
        for _, phase, events in sorted(found):
            self.left_out[KINDS.get(phase, f"events of kind {phase[:8]!r}")] += events

    def _end(self, thread: Thread, row: int) -> None:
        """End the innermost open event of that name, else the innermost; an end may omit its name."""
        name = self._columns.name
        if not thread.open:
            self.repaired["end events without a begin event were dropped"] += 1
            return
        at = len(thread.open) - 1
        while at >= 0 and name[row] and name[thread.open[at]] != name[row]:
            at -= 1
        if at < 0:
            self.repaired["end events closed a begin event with another name"] += 1
            at = len(thread.open) - 1
        self._complete(thread, thread.open.pop(at), row)

    def _asynchronous(self, process: Process, row: int, *, begins: bool) -> None:
        key = self._events.asynchronous[row]
        if begins:
            name = f"async {key.category or key.name}"
            line = process.threads.setdefault(name, Thread(name=name))
            line.open.append(row)
            self._pending.setdefault(key, []).append((line, row))
        elif self._pending.get(key):  # perhaps begun in another process: ids are valid in the whole file
            line, begun = self._pending[key].pop()
            line.open.remove(begun)
            self._complete(line, begun, row)
        else:
            self.repaired["end events without a begin event were dropped"] += 1

    def _complete(self, thread: Thread, begun: int, ended: int) -> None:
        dur = max(0.0, float(self.start_us[ended] - self.start_us[begun]))
        self._ended.append((begun, thread, int(self._turn[ended]), dur))

    def spans(self) -> Spans:
        """All spans; an event without an end is extended to the end of its thread."""
        whole = np.flatnonzero(self._of(_WHOLE))
        thread = self._numbers_of_places()
        durations = np.where(self._columns.phase == self._phases.get("X", -1), self._columns.dur_us, 0.0)
        row = np.concatenate([whole, np.array([row for row, *_ in self._ended], np.int64)])
        of = np.concatenate(
            [thread[self._columns.place[whole]], np.array([one.number for _, one, *_ in self._ended], np.int64)]
        )
        turn = np.concatenate([self._turn[whole], np.array([turn for *_, turn, _ in self._ended], np.int64)])
        dur = np.concatenate(
            [np.maximum(durations[whole], 0.0), np.array([dur for *_, dur in self._ended], np.float64)]
        )
        last = np.full(len(self.threads), -np.inf)
        np.maximum.at(last, of, self.start_us[row] + dur)
        opened = [(begun, one.number) for one in self.threads for begun in one.open]
        if opened:
            self.repaired["begin events without an end event last to the end of their thread"] += len(opened)
            begun, number = np.array(opened, np.int64).T
            np.maximum.at(last, number, self.start_us[begun])
            row, of = np.concatenate([row, begun]), np.concatenate([of, number])
            turn = np.concatenate([turn, len(self._turn) + np.arange(len(begun))])
            dur = np.concatenate([dur, np.maximum(last[number] - self.start_us[begun], 0.0)])
        order = np.lexsort((turn, of))
        return Spans(row=row[order], thread=of[order], start_us=self.start_us[row[order]], dur_us=dur[order])

    def _numbers_of_places(self) -> I64:
        """The thread of each place."""
        thread = np.full(len(self._places), -1, np.int64)
        for place, one in self._of_place.items():
            thread[place] = one.number
        return thread

    def flows(self) -> Flows:
        """The ends of flow arrows, numbered in the order of time."""
        row = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in self._events.flows)])
        ids = np.concatenate([np.empty((0, 3), np.int64), *(ids for _, ids in self._events.flows)])
        number = ids[:, 0] * 2 + ids[:, 1]
        number = number * (len(row) + 1) + np.unique(ids[:, 2], return_inverse=True)[1]
        order = np.argsort(self._turn[row], kind="stable")
        row, number = row[order], number[order]
        _, first, same = np.unique(number, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return Flows(
            thread=self._numbers_of_places()[self._columns.place[row]],
            at_us=self.start_us[row],
            number=rank[same],
            begins=self._columns.phase[row] == self._phases.get("s", -1),
        )


def _describe(process: Process, tid: str, event: Described) -> None:
    if event.name == "process_name":
        process.name = json_values.text(event.args.get("name"))
    elif event.name == "process_labels":
        process.label = json_values.text(event.args.get("labels"))
    elif event.name == "thread_name":
        process.threads.setdefault(tid, Thread()).name = json_values.text(event.args.get("name"))
