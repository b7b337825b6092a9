"""Chrome trace events as an op trace: TensorFlow, JAX, TF1 timelines, kineto, ONNX Runtime, Horovod.

A process becomes a plane, a thread a line. Complete events (X), pairs of begin and end (B, E; b, e with an id) and
instants (i, I, R) become events; flow arrows (s, t, f) become stats of the events at which they begin and end. Items
without a place in an op trace (counters, objects, samples) are omitted and counted. Broken items are repaired and
reported: an end without a beginning is omitted, a beginning without an end lasts to the end of its thread.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import numpy as np

from stepscope.readers.chrome import arg_columns, event_kinds, horovod, json_values, kineto_devices
from stepscope.readers.chrome.arg_columns import AFTER_ARGS, Part
from stepscope.readers.chrome.event_columns import EventColumns
from stepscope.readers.chrome.kineto_names import ANNOTATIONS, DEVICE_CATEGORIES, KNOWN, PYTHON, unseen_kernels
from stepscope.readers.chrome.trace_json import Text, read
from stepscope.readers.chrome.trace_lanes import cut, split
from stepscope.readers.chrome.trace_threads import Threads
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.readers.xplane.plane_names import line_kind, ordinal, plane_kind
from stepscope.tables.errors import FormatError
from stepscope.tables.optrace import Dropped, LineKind, OpTrace, PlaneKind, TraceSource
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import BinaryIO

    from stepscope.readers.chrome.trace_json import TraceFile
    from stepscope.readers.chrome.trace_threads import Process, Thread
    from stepscope.tables.optrace_stats import StatColumn
    from stepscope.tables.records import I64, Bool

_NS_PER_US = 1000
_US_PER_DAY = 86_400e6
_MAX_SPAN_US = 30 * _US_PER_DAY
"""Longest trace that fits into 64 bits of picoseconds; anything longer is not a trace."""
_EPOCH_US = 10**14
"""Clock value from which timestamps count microseconds from 1970."""
_MOST_EVENTS = 1_000_000
"""Complete events after which JAX 0.10.2 and ONNX Runtime 1.31.1 drop all others; seen, not documented."""
_CUT = f"its writer drops all events after {_MOST_EVENTS:,} (of TensorFlow and JAX import the xplane.pb, which has all)"
_FIRST_SPANS = 1_000
"""Spans whose categories are looked at for kineto's."""
_KERNELS = "DX126"
_GPU_LABEL = re.compile(r"GPU (\d+)")
_TF1_DEVICE = re.compile(r"/device:(?P<kind>[A-Z]+):(?P<number>\d+)")
_OF_PROFILER = frozenset({"trace", "overhead"})
"""Categories of what kineto says of itself: its recording, and CUPTI's waits for a full buffer."""


def read_file(path: Path) -> OpTrace:
    """The op trace of a trace-event file, gzipped or not.

    Raises:
        FormatError: it cannot be read, is not a trace, or none of its events is whole.
    """
    try:
        with path.open("rb") as file:
            return _read(file, path.name, path.stat().st_size)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error


def read_bytes(content: bytes, name: str = "") -> OpTrace:
    """The op trace of bytes in memory; otherwise like ``read_file``."""
    return _read(io.BytesIO(content), name, len(content))


def _read(file: BinaryIO, name: str, size: int) -> OpTrace:
    events = EventColumns()
    around = read(Text(file, name), events.take)
    return _Assembly(around, events, name, size).trace()


class _Assembly:
    """The events of a file as those of an op trace. One use only."""

    def __init__(self, file: TraceFile, events: EventColumns, name: str, size: int) -> None:
        self.file = file
        self.name = name
        self.size = size
        self.stats = events.args.stats
        self.horovod_us = horovod.started_us(one.args for one in events.described)
        self.events = events
        self.columns = events.columns()
        self.threads = Threads(events, self.columns)
        self.repaired = self.threads.repaired
        self.spans = self.threads.spans()
        self.flows = self.threads.flows()
        self.category = self.columns.category[self.spans.row]
        self.dur_us = self.spans.dur_us
        self.is_note, self.is_frame = self._is(ANNOTATIONS), self._is(frozenset({PYTHON}))
        self.is_device_work, self.is_of_profiler = self._is(DEVICE_CATEGORIES), self._is(_OF_PROFILER)
        order = np.argsort(self.flows.thread, kind="stable")
        threads, firsts = np.unique(self.flows.thread[order], return_index=True)
        self.flows_of = dict(zip(threads.tolist(), np.split(order, firsts[1:]), strict=True)) if len(order) else {}
        """Ends of flow arrows of each thread."""
        self.bounds = np.searchsorted(self.spans.thread, np.arange(len(self.threads.threads) + 1))
        self.linked: list[tuple[I64, I64]] = []
        """Spans at which flow arrows begin or end, and their flows."""
        self.placed: list[tuple[I64, I64]] = []
        """Spans in the order of adding, and their lines."""

    def trace(self) -> OpTrace:
        """The op trace.

        Raises:
            FormatError: there are no events, or they are no single capture.
        """
        spans, threads = self.spans, self.threads
        if not len(spans.row) and not threads.left_out and not threads.processes:
            raise FormatError(f"{self.name}: it has no events; expected a Chrome, TensorFlow or kineto trace")
        zero = float(spans.start_us.min(initial=np.inf)) if len(spans.row) else 0.0
        end = float((spans.start_us + spans.dur_us).max()) if len(spans.row) else zero
        if end - zero > _MAX_SPAN_US:
            days = (end - zero) / _US_PER_DAY
            raise FormatError(f"{self.name}: its events span {days:.0f} days; expected a single capture")
        kineto = self.file.kineto or bool(self._is(KNOWN)[:_FIRST_SPANS].any())
        place = kineto_devices.rank(self.file.rank)
        source = TraceSource(
            format="kineto" if kineto else "trace-event",
            name=self.name,
            size_bytes=self.size,
            hostnames=(self.file.host,) if isinstance(self.file.host, str) and self.file.host else (),
            started_unix_ns=self._started(zero),
            dur_ns=round((end - zero) * _NS_PER_US),
            rank=place.rank,
            world_size=place.world_size,
            backend=place.backend,
        )
        builder = OpTraceBuilder(source)
        there = kineto_devices.devices(self.file.devices)
        for key, process in threads.processes.items():
            if there and not process.threads and _gpu(process) not in {-1, *there}:
                continue  # kineto names eight devices, however many there are
            self._build(builder, key, process, kineto=kineto)
        number = self._add(builder, zero)
        self._tell(builder)
        self._note(builder, kineto=kineto)
        return builder.build(lambda row_of: self._stats(number, row_of))

    def _is(self, categories: frozenset[str]) -> Bool:
        """Whether each span is of one of some categories."""
        return np.isin(self.category, [code for code, text in enumerate(self.columns.texts) if text in categories])

    def _note(self, builder: OpTraceBuilder, *, kineto: bool) -> None:
        """What is to be known of a file of its writer."""
        if self.horovod_us and (text := horovod.said(self._moments())):
            builder.diagnostic(horovod.NOTE, f"{self.name}: {text}")
        if not kineto and self.threads.count("X") == _MOST_EVENTS:
            builder.diagnostic("DX123", f"{self.name}: {_CUT}")
        texts, name = self.columns.texts, self.columns.name[self.spans.row]
        kinds, counts = np.unique(name.astype(np.int64) << 32 | self.category, return_counts=True)
        named = ((texts[kind >> 32], texts[kind & 0xFFFF_FFFF]) for kind in kinds.tolist())
        text = unseen_kernels((*one, count) for one, count in zip(named, counts.tolist(), strict=True))
        if text:
            builder.diagnostic(_KERNELS, f"{self.name}: {text}")

    def _moments(self) -> list[horovod.Moment]:
        columns, order, texts, places = self.columns, self.threads.order, self.columns.texts, self.events.places
        rows = zip(
            columns.phase[order].tolist(),
            columns.place[order].tolist(),
            columns.name[order].tolist(),
            self.threads.start_us[order].tolist(),
            strict=True,
        )
        return [horovod.Moment(texts[phase], places[place][0], texts[name], at) for phase, place, name, at in rows]

    def _started(self, zero: float) -> int:
        if self.file.base_ns:
            return self.file.base_ns + round(zero * _NS_PER_US)
        if self.horovod_us:
            return round((self.horovod_us + zero) * _NS_PER_US)
        return round(zero * _NS_PER_US) if zero > _EPOCH_US else 0

    def _build(self, builder: OpTraceBuilder, pid: str, process: Process, *, kineto: bool) -> None:
        name, kind, number = self._plane_of(pid, process)
        if kineto and self._is_bookkeeping(process):
            kind = PlaneKind.METADATA
        about = kineto_devices.devices(self.file.devices).get(number) if kind is PlaneKind.GPU else None
        plane = builder.plane(name, kind, ordinal=number, stats=about)
        for key, thread in process.threads.items():
            self._build_thread(builder, plane, key, thread, _line_of(thread.name or key, kind, kineto=kineto))

    def _build_thread(self, builder: OpTraceBuilder, plane: int, key: str, thread: Thread, line: LineKind) -> None:
        mine = np.arange(self.bounds[thread.number], self.bounds[thread.number + 1])
        noted = self.is_note[mine]
        spans, notes = mine[~noted], mine[noted]
        start, lanes, overlaps = self.spans.start_us[spans], np.zeros(len(spans), np.int64), 0
        if line is LineKind.THREAD:
            frames = self.is_frame[spans]
            if frames.any():
                self.dur_us[spans] = cut(start, self.dur_us[spans], frames)
            lanes, overlaps = split(start, self.dur_us[spans])
        if overlaps:
            self.repaired[
                "events overlap others of their thread without nesting; they are shown on separate lines"
            ] += overlaps
        numbers = [
            builder.line(plane, f"{thread.name or key}{f' ({lane + 1})' if lane else ''}", line, _line_id(key))
            for lane in range(int(lanes.max(initial=0)) + 1)
        ]
        self.placed.append((spans, np.array(numbers, np.int64)[lanes]))
        if len(notes):
            label = builder.line(plane, f"{thread.name or key} annotations", LineKind.NAME_SCOPE, _line_id(key))
            self.placed.append((notes, np.full(len(notes), label)))
        self.repaired["flow arrows that begin or end at no event were left out"] += self._link(thread, spans)

    def _link(self, thread: Thread, spans: I64) -> int:
        """Find the first of some spans that starts where each flow arrow does; returns how many have none."""
        flows = self.flows_of.get(thread.number)
        if flows is None:
            return 0
        start = self.spans.start_us[spans]
        order = np.argsort(start, kind="stable")
        at = self.flows.at_us[flows]
        place = np.searchsorted(start[order], at)
        found = place < len(start)
        found[found] = start[order[place[found]]] == at[found]
        self.linked.append((spans[order[place[found]]], flows[found]))
        return int((~found).sum())

    def _add(self, builder: OpTraceBuilder, zero: float) -> I64:
        """Add all events; returns the number of each event of the file in order of adding, -1 for others."""
        none = np.empty(0, np.int64)
        chosen = np.concatenate([none, *(spans for spans, _ in self.placed)])
        line = np.concatenate([none, *(lines for _, lines in self.placed)])
        rows = self.spans.row[chosen]
        names = event_kinds.Named(
            name=self.columns.name[rows], category=self.category[chosen], texts=self.columns.texts, rows=rows
        )
        known = horovod.meaning if self.horovod_us else None
        meta = event_kinds.metas(builder, line, names, self.stats, known)
        start_ns = (self.spans.start_us[chosen] - zero) * _NS_PER_US
        builder.fill(start_ns, self.dur_us[chosen] * _NS_PER_US, line, meta)
        number = np.full(self.events.count, -1, np.int64)
        number[rows] = np.arange(len(rows))
        return number

    def _stats(self, number: I64, row_of: I64) -> Mapping[str, StatColumn]:
        """The stats of all events: arguments, categories, flow arrows."""
        said = np.flatnonzero(self.category)
        if len(said):
            row, values = self.spans.row[said].astype(np.int32), self.category[said]
            self.stats["cat"].append(Part(rows=row, values=values, plain=self.columns.texts, at=AFTER_ARGS + 1))
        if self.linked:
            spans, flows = (np.concatenate(some) for some in zip(*self.linked, strict=True))
            for name, which in (
                (StatName.FLOW_OUT, self.flows.begins[flows]),
                (StatName.FLOW_IN, ~self.flows.begins[flows]),
            ):
                row, values = self.spans.row[spans[which]].astype(np.int32), self.flows.number[flows[which]]
                if len(row):
                    first = int(flows[which][np.argmin(number[row])])
                    self.stats[name].append(Part(rows=row, values=values, at=AFTER_ARGS + 2 + first))
        return arg_columns.columns(self.stats, number, row_of)

    def _tell(self, builder: OpTraceBuilder) -> None:
        left_out = self.threads.left_out
        if self.file.samples:
            left_out["stack samples"] += self.file.samples
        for reason, count in left_out.items():
            builder.drop(Dropped(reason=reason, events=count))
        for what, count in self.repaired.items():
            if count:
                builder.diagnostic("DX123", f"{self.name}: {count} {what}")
        for text in self.file.told:
            builder.diagnostic("DX123", f"{self.name}: {text}")

    def _spans_of(self, process: Process) -> slice:
        numbers = [thread.number for thread in process.threads.values()]
        return slice(self.bounds[numbers[0]], self.bounds[numbers[-1] + 1]) if numbers else slice(0, 0)

    def _plane_of(self, pid: str, process: Process) -> tuple[str, PlaneKind, int]:
        """Name, kind and device number of a process's plane."""
        gpu = _gpu(process)
        if gpu >= 0:
            return f"/device:GPU:{gpu}", PlaneKind.GPU, gpu
        if self.is_device_work[self._spans_of(process)].any():
            return process.name or process.label or "GPU", PlaneKind.GPU, -1
        tf1 = _TF1_DEVICE.search(process.name) if process.name.startswith("/job:") else None
        if tf1:
            kind = {"CPU": PlaneKind.HOST, "GPU": PlaneKind.GPU, "TPU": PlaneKind.TPU}.get(
                tf1["kind"], PlaneKind.DEVICE
            )
            return process.name, kind, int(tf1["number"]) if kind is not PlaneKind.HOST else -1
        kind = plane_kind(process.name)
        if kind is PlaneKind.OTHER and json_values.NUMBER.fullmatch(pid):
            kind = PlaneKind.HOST
        return process.name or process.label or f"process {pid}", kind, ordinal(process.name)

    def _is_bookkeeping(self, process: Process) -> bool:
        """Whether a process of a kineto trace is the profiler itself: its recording and its end mark."""
        mine = self._spans_of(process)
        own = self.is_of_profiler[mine] | ((self.category[mine] == 0) & (self.dur_us[mine] == 0))
        return bool(len(own)) and bool(own.all())


def _gpu(process: Process) -> int:
    """The number of a device that kineto's label names; -1 for another process."""
    gpu = _GPU_LABEL.match(process.label)
    return int(gpu[1]) if gpu else -1


def _line_of(name: str, plane: PlaneKind, *, kineto: bool) -> LineKind:
    if plane is PlaneKind.GPU and kineto:
        return LineKind.STREAM
    return line_kind(name, plane)


def _line_id(key: str) -> int:
    return int(key) if json_values.NUMBER.fullmatch(key) else 0
