"""Chrome trace events as an op trace: TensorFlow, JAX, TF1 timelines, kineto, ONNX Runtime, Horovod.

A process becomes a plane, a thread a line. Complete events (X), pairs of begin and end (B, E; b, e with an id) and
instants (i, I, R) become events; flow arrows (s, t, f) become stats of the events at which they begin and end. Items
without a place in an op trace (counters, objects, samples) are omitted and counted. Broken items are repaired and
reported: an end without a beginning is omitted, a beginning without an end lasts to the end of its thread.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.readers.chrome import horovod, json_values, kineto_devices
from stepscope.readers.chrome.kineto_names import (
    ANNOTATIONS,
    DEVICE_CATEGORIES,
    KNOWN,
    PYTHON,
    kineto_meaning,
    unseen_kernels,
)
from stepscope.readers.chrome.trace_json import KINDS, RawEvent, decode
from stepscope.readers.chrome.trace_lanes import cut, split
from stepscope.readers.op_names import Meaning, op_category
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.readers.xplane.plane_names import line_kind, ordinal, plane_kind
from stepscope.tables.errors import FormatError
from stepscope.tables.optrace import Category, Dropped, LineKind, OpTrace, PlaneKind, TraceSource
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stepscope.readers.chrome.trace_json import TraceFile
    from stepscope.tables.optrace_stats import PlainStat

_RECEIVED, _UNKNOWN = "RecvTensor", "unknown"
"""Pseudo ops in TF1 timelines for a transfer between tasks and for an unknown op: not op types."""
_NS_PER_US = 1000
_US_PER_DAY = 86_400e6
_MAX_SPAN_US = 30 * _US_PER_DAY
"""Longest trace that fits into 64 bits of picoseconds; anything longer is not a trace."""
_EPOCH_US = 10**14
"""Clock value from which timestamps count microseconds from 1970."""
_INSTANTS = frozenset("iIR")
_BEGIN, _END = frozenset("Bb"), frozenset("Ee")
_FLOWS = {"s": StatName.FLOW_OUT, "t": StatName.FLOW_IN, "f": StatName.FLOW_IN}
_ARGS = {
    "correlation": StatName.CORRELATION_ID,
    "Input Dims": StatName.SHAPE,
    "bytes": StatName.TRANSFER_BYTES,
    "Bytes": "bytes",
    "External id": "external_id",
    "external id": "external_id",
}
"""Names of arguments, with their names in the model."""
_ORT_KERNEL = "_kernel_time"
"""Suffix that ONNX Runtime adds to the names of its nodes' events."""
_MOST_EVENTS = 1_000_000
"""Complete events after which JAX 0.10.2 and ONNX Runtime 1.31.1 drop all others; seen, not documented."""
_CUT = f"its writer drops all events after {_MOST_EVENTS:,} (of TensorFlow and JAX import the xplane.pb, which has all)"
_KERNELS = "DX126"
_GPU_LABEL = re.compile(r"GPU (\d+)")
_TF1_DEVICE = re.compile(r"/device:(?P<kind>[A-Z]+):(?P<number>\d+)")


def read_file(path: Path) -> OpTrace:
    """The op trace of a trace-event file, gzipped or not.

    Raises:
        FormatError: it cannot be read, is not a trace, or none of its events is whole.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
    return read_bytes(content, path.name)


def read_bytes(content: bytes, name: str = "") -> OpTrace:
    """The op trace of bytes in memory; otherwise like ``read_file``."""
    return _Assembly(decode(content, name), name, len(content)).trace()


class _Span(Struct):
    """An event with its times in microseconds of the file's clock."""

    name: str
    start: float
    dur: float
    category: str
    args: Mapping[str, PlainStat]


class _Thread(Struct):
    """The events seen of one thread."""

    spans: list[_Span] = field(default_factory=list)
    open: list[_Span] = field(default_factory=list)
    name: str = ""
    flows: list[tuple[str, float, int]] = field(default_factory=list)


class _Process(Struct):
    """The events seen of one process."""

    name: str = ""
    label: str = ""
    threads: dict[str, _Thread] = field(default_factory=dict)


class _Assembly:
    """Sorts the events of a file by process and thread. One use only."""

    def __init__(self, file: TraceFile, name: str, size: int) -> None:
        self.file = file
        self.name = name
        self.size = size
        self.processes: dict[str, _Process] = {}
        self.left_out: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self.pending: dict[tuple[str, str, str], list[tuple[_Thread, _Span]]] = {}
        self.flow_ids: dict[str, int] = {}
        self.horovod_us = horovod.started_us(file.events)

    def trace(self) -> OpTrace:
        ordered = sorted(
            (event for event in self.file.events if event.ph),
            key=lambda event: json_values.number(event.ts, float("-inf")),
        )
        for event in ordered:
            self._take(event)
        for process in self.processes.values():
            for thread in process.threads.values():
                self._close(thread)
        spans = [span for p in self.processes.values() for t in p.threads.values() for span in t.spans]
        if not spans and not self.left_out and not self.processes:
            raise FormatError(f"{self.name}: it has no events; expected a Chrome, TensorFlow or kineto trace")
        zero = min((span.start for span in spans), default=0.0)
        end = max((span.start + span.dur for span in spans), default=zero)
        if end - zero > _MAX_SPAN_US:
            days = (end - zero) / _US_PER_DAY
            raise FormatError(f"{self.name}: its events span {days:.0f} days; expected a single capture")
        kineto = self.file.kineto or any(span.category in KNOWN for span in spans[:1000])
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
        for key, process in self.processes.items():
            if there and not process.threads and _gpu(process) not in {-1, *there}:
                continue  # kineto names eight devices, however many there are
            self._build(builder, key, process, zero, kineto=kineto)
        self._tell(builder)
        self._note(builder, ordered, spans, kineto=kineto)
        return builder.build()

    def _note(self, builder: OpTraceBuilder, ordered: list[RawEvent], spans: list[_Span], *, kineto: bool) -> None:
        """What is to be known of a file of its writer."""
        if self.horovod_us and (text := horovod.said(ordered)):
            builder.diagnostic(horovod.NOTE, f"{self.name}: {text}")
        if not kineto and sum(event.ph == "X" for event in ordered) == _MOST_EVENTS:
            builder.diagnostic("DX123", f"{self.name}: {_CUT}")
        if text := unseen_kernels((span.name, span.category) for span in spans):
            builder.diagnostic(_KERNELS, f"{self.name}: {text}")

    def _take(self, event: RawEvent) -> None:
        process = self.processes.setdefault(json_values.key(event.pid), _Process())
        if event.ph == "M":
            self._describe(process, event)
            return
        thread = process.threads.setdefault(json_values.key(event.tid), _Thread())
        start = json_values.number(event.ts)
        if event.ph == "X":
            dur = json_values.number(event.dur if event.dur is not None else event.tdur)
            thread.spans.append(_span(event, start, max(0.0, dur)))
        elif event.ph in _INSTANTS:
            thread.spans.append(_span(event, start, 0.0))
        elif event.ph == "B":
            thread.open.append(_span(event, start, 0.0))
        elif event.ph == "E":
            self._end(thread, event, start)
        elif event.ph in _BEGIN | _END:
            self._asynchronous(process, event, start)
        elif event.ph in _FLOWS:
            flow = f"{json_values.text(event.cat)}/{json_values.key(event.id)}"
            thread.flows.append((_FLOWS[event.ph], start, self.flow_ids.setdefault(flow, len(self.flow_ids))))
        else:
            self.left_out[KINDS.get(event.ph, f"events of kind {event.ph[:8]!r}")] += 1

    def _describe(self, process: _Process, event: RawEvent) -> None:
        args = event.args if isinstance(event.args, dict) else {}
        if event.name == "process_name":
            process.name = json_values.text(args.get("name"))
        elif event.name == "process_labels":
            process.label = json_values.text(args.get("labels"))
        elif event.name == "thread_name":
            process.threads.setdefault(json_values.key(event.tid), _Thread()).name = json_values.text(args.get("name"))

    def _end(self, thread: _Thread, event: RawEvent, end: float) -> None:
        """End the innermost open event of that name, else the innermost; an end may omit its name."""
        name = json_values.text(event.name)
        if not thread.open:
            self.repaired["end events without a begin event were dropped"] += 1
            return
        at = len(thread.open) - 1
        while at >= 0 and name and thread.open[at].name != name:
            at -= 1
        if at < 0:
            self.repaired["end events closed a begin event with another name"] += 1
            at = len(thread.open) - 1
        span = thread.open.pop(at)
        span.dur = max(0.0, end - span.start)
        thread.spans.append(span)

    def _asynchronous(self, process: _Process, event: RawEvent, at: float) -> None:
        key = (json_values.text(event.cat), json_values.key(event.id), json_values.text(event.name))
        if event.ph == "b":
            name = f"async {key[0] or key[2]}"
            line = process.threads.setdefault(name, _Thread(name=name))
            line.open.append(_span(event, at, 0.0))
            self.pending.setdefault(key, []).append((line, line.open[-1]))
        elif self.pending.get(key):  # perhaps begun in another process: ids are valid in the whole file
            line, span = self.pending[key].pop()
            span.dur = max(0.0, at - span.start)
            line.open.remove(span)
            line.spans.append(span)
        else:
            self.repaired["end events without a begin event were dropped"] += 1

    def _close(self, thread: _Thread) -> None:
        """Extend events without an end to the end of their thread."""
        last = max([s.start + s.dur for s in thread.spans] + [s.start for s in thread.open], default=0.0)
        for span in thread.open:
            span.dur = max(0.0, last - span.start)
            self.repaired["begin events without an end event last to the end of their thread"] += 1
        thread.spans += thread.open
        thread.open = []

    def _started(self, zero: float) -> int:
        if self.file.base_ns:
            return self.file.base_ns + round(zero * _NS_PER_US)
        if self.horovod_us:
            return round((self.horovod_us + zero) * _NS_PER_US)
        return round(zero * _NS_PER_US) if zero > _EPOCH_US else 0

    def _build(self, builder: OpTraceBuilder, pid: str, process: _Process, zero: float, *, kineto: bool) -> None:
        name, kind, number = _plane_of(pid, process)
        if kineto and _is_bookkeeping(process):
            kind = PlaneKind.METADATA
        about = kineto_devices.devices(self.file.devices).get(number) if kind is PlaneKind.GPU else None
        plane = builder.plane(name, kind, ordinal=number, stats=about)
        for key, thread in process.threads.items():
            spans = [s for s in thread.spans if s.category not in ANNOTATIONS]
            notes = [s for s in thread.spans if s.category in ANNOTATIONS]
            line = _line_of(thread.name or key, kind, kineto=kineto)
            if line is LineKind.THREAD:
                _cut(spans)
            lanes, overlaps = (
                split([(s.start, s.dur) for s in spans]) if line is LineKind.THREAD else ([0] * len(spans), 0)
            )
            if overlaps:
                self.repaired[
                    "events overlap others of their thread without nesting; they are shown on separate lines"
                ] += overlaps
            numbers = [
                builder.line(plane, f"{thread.name or key}{f' ({lane + 1})' if lane else ''}", line, _line_id(key))
                for lane in range(max(lanes, default=0) + 1)
            ]
            flows = _flows_at(thread)
            for span, lane in zip(spans, lanes, strict=True):
                self._add(builder, numbers[lane], span, zero, flows)
            if notes:
                label = builder.line(plane, f"{thread.name or key} annotations", LineKind.NAME_SCOPE, _line_id(key))
                for span in notes:
                    self._add(builder, label, span, zero, {})
            self.repaired["flow arrows that begin or end at no event were left out"] += sum(map(len, flows.values()))

    def _add(
        self, builder: OpTraceBuilder, line: int, span: _Span, zero: float, flows: dict[float, list[tuple[str, int]]]
    ) -> None:
        stats = dict(span.args)
        if span.category:
            stats["cat"] = span.category
        if span.start in flows:
            stats.update(flows.pop(span.start))
        start = (span.start - zero) * _NS_PER_US
        known = _meaning_of(span) or (horovod.meaning(span.name) if self.horovod_us else None)
        step = known is None and StatName.STEP_NUM in stats
        builder.event(line, span.name, start, span.dur * _NS_PER_US, stats=stats, known=known, step=step)

    def _tell(self, builder: OpTraceBuilder) -> None:
        if self.file.samples:
            self.left_out["stack samples"] += self.file.samples
        for reason, count in self.left_out.items():
            builder.drop(Dropped(reason=reason, events=count))
        for what, count in self.repaired.items():
            if count:
                builder.diagnostic("DX123", f"{self.name}: {count} {what}")
        for text in self.file.told:
            builder.diagnostic("DX123", f"{self.name}: {text}")


def _cut(spans: list[_Span]) -> None:
    """Cut the Python calls of a thread that overlap other events without nesting."""
    frames = [span.category == PYTHON for span in spans]
    if any(frames):
        for span, dur in zip(spans, cut([(s.start, s.dur) for s in spans], frames), strict=True):
            span.dur = dur


def _flows_at(thread: _Thread) -> dict[float, list[tuple[str, int]]]:
    found: dict[float, list[tuple[str, int]]] = {}
    for stat, at, number in thread.flows:
        found.setdefault(at, []).append((stat, number))
    return found


def _plane_of(pid: str, process: _Process) -> tuple[str, PlaneKind, int]:
    """Name, kind and device number of a process's plane."""
    gpu = _gpu(process)
    if gpu >= 0:
        return f"/device:GPU:{gpu}", PlaneKind.GPU, gpu
    spans = [span for thread in process.threads.values() for span in thread.spans]
    if any(span.category in DEVICE_CATEGORIES for span in spans):
        return process.name or process.label or "GPU", PlaneKind.GPU, -1
    tf1 = _TF1_DEVICE.search(process.name) if process.name.startswith("/job:") else None
    if tf1:
        kind = {"CPU": PlaneKind.HOST, "GPU": PlaneKind.GPU, "TPU": PlaneKind.TPU}.get(tf1["kind"], PlaneKind.DEVICE)
        return process.name, kind, int(tf1["number"]) if kind is not PlaneKind.HOST else -1
    kind = plane_kind(process.name)
    if kind is PlaneKind.OTHER and json_values.NUMBER.fullmatch(pid):
        kind = PlaneKind.HOST
    return process.name or process.label or f"process {pid}", kind, ordinal(process.name)


def _gpu(process: _Process) -> int:
    """The number of a device that kineto's label names; -1 for another process."""
    gpu = _GPU_LABEL.match(process.label)
    return int(gpu[1]) if gpu else -1


_OF_PROFILER = frozenset({"trace", "overhead"})
"""Categories of what kineto says of itself: its recording, and CUPTI's waits for a full buffer."""


def _is_bookkeeping(process: _Process) -> bool:
    """Whether a process of a kineto trace is the profiler itself: its recording and its end mark."""
    spans = [span for thread in process.threads.values() for span in thread.spans]
    return bool(spans) and all(s.category in _OF_PROFILER or (not s.category and not s.dur) for s in spans)


def _line_of(name: str, plane: PlaneKind, *, kineto: bool) -> LineKind:
    if plane is PlaneKind.GPU and kineto:
        return LineKind.STREAM
    return line_kind(name, plane)


def _line_id(key: str) -> int:
    return int(key) if json_values.NUMBER.fullmatch(key) else 0


def _span(event: RawEvent, start: float, dur: float) -> _Span:
    args: dict[str, PlainStat] = {}
    if isinstance(event.args, dict):
        for name, value in event.args.items():
            plain = json_values.plain(value)
            if plain is not None:
                args[_ARGS.get(str(name), str(name))] = plain
        args |= kineto_devices.launch(event.args)
    return _Span(json_values.text(event.name), start, dur, json_values.text(event.cat).lower(), args)


def _meaning_of(span: _Span) -> Meaning | None:
    """The meaning of an event whose category or arguments say more than its name."""
    node, kind = span.args.get("name"), span.args.get("op")
    if isinstance(node, str) and isinstance(kind, str):
        if node == kind == _RECEIVED:
            return Meaning(category=Category.COLLECTIVE)
        return Meaning(category=op_category(kind), op_name=node, op_type="" if kind == _UNKNOWN else kind)
    kind = span.args.get("op_name")
    if isinstance(kind, str) and span.name.endswith(_ORT_KERNEL):
        return Meaning(category=Category.OP, op_name=span.name.removesuffix(_ORT_KERNEL), op_type=kind)
    return kineto_meaning(span.name, span.category) if span.category else None
