"""``tf.RunMetadata`` (one ``Session.run`` with ``RunOptions.FULL_TRACE``) as an op trace.

A device becomes a plane, a thread or GPU stream a line, a node an event, and an allocator's record an event without
duration. Nanosecond fields are used if present: those in microseconds are rounded. Several runs of a session form one
trace of the same devices, with a line that shows the time of each run. Times of a device on another machine are those
of that machine's clock, as TensorFlow reports them.

Not every node is an op: the label decides. ``name = Type(inputs)`` is an op, and its inputs are kept; ``[4.0MB]
[7.4Gb/s] tensor from device to device`` is a tensor from another task (``RecvTensor``, ``RecvBuf``), an exchange with
bytes and both ends; another label (a kernel launch, a tracer's note) gives no type. A node without a label has run, and
is an op of unknown type.

Source: tensorflow/core/protobuf/config.proto, tensorflow/core/framework/step_stats.proto (TensorFlow 1.0-2.21)::

    RunMetadata          step_stats = 1
    StepStats            dev_stats = 1
    DeviceStepStats      device = 1, node_stats = 2, thread_names = 3 (map)
    NodeExecStats        node_name = 1, all_start_micros = 2, all_end_rel_micros = 5, memory = 6, output = 7,
                         timeline_label = 8, scheduled_micros = 9, thread_id = 10, all_start_nanos = 13,
                         all_end_rel_nanos = 16
    NodeOutput           tensor_description = 3 (allocation_description = 4 (requested_bytes = 1))
    AllocatorMemoryUsed  allocator_name = 1, total_bytes = 2, peak_bytes = 3, allocator_bytes_in_use = 5,
                         allocation_records = 6 (alloc_micros = 1, alloc_bytes = 2)

Labels: tensorflow/core/common_runtime/step_stats_collector.cc, distributed_runtime/worker_cache_logger.cc.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.readers import damage_hint
from stepscope.readers.op_names import Meaning, meaning, op_category
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.readers.protobuf.codec import fields, number, signed, text
from stepscope.tables.errors import FormatError
from stepscope.tables.optrace import Category, Dropped, LineKind, OpTrace, PlaneKind, TraceSource
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stepscope.tables.optrace_stats import PlainStat

Value = int | bytes
Message = dict[int, list[Value]]
"""Values by field number."""

FORMAT = "run-metadata"
RUN, RUNS = "Session.run", "runs"
_WHOLE = "whole RunMetadata as a traced Session.run gave it"
_DEVICE = re.compile(r"(?P<root>.*?/(?:device:(?P<kind>\w+)|(?P<old>cpu|gpu|tpu)):(?P<number>\d+))(?:/(?P<stream>.+))?")
_LABEL = re.compile(r"(?P<name>.*?) = (?P<type>\w+)\((?P<inputs>.*)\).*", re.DOTALL)
_TRANSFER = re.compile(
    r"(?:\[(?P<size>\d{1,15}(?:\.\d{1,9})?)(?P<unit>[KMG]?B)\] )?\[[^\]]*b/s\] "
    r"(?P<tensor>.*) from (?P<source>\S+) to (?P<target>\S+)",
    re.DOTALL,
)
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
TRANSFERS = "transfers"
"""Line of transfers that a device received from other tasks: they run at the same time, on no thread of their own."""
TENSOR, SOURCE, TARGET = "tensor", "source_device", "destination_device"
"""Stats of a transfer: the tensor's name on the edge of the graph, and the devices that it left and reached."""
_SERVER = "/job:ps/"
_TAKES = re.compile(r"QueueDequeue(Many|UpTo)?(V2)?|(Resource|Sparse)?AccumulatorTakeGradient|BarrierTakeMany")
"""Ops that wait for elements: on a server for those of other tasks, as the tokens of a SyncReplicasOptimizer."""
_KINDS = {"CPU": PlaneKind.HOST, "GPU": PlaneKind.GPU, "TPU": PlaneKind.TPU}
_ALL_STREAMS = "stream:all"
_MAX_NS = 1 << 62


class _Run(Struct, frozen=True, kw_only=True):
    """One run: its devices, and the nodes of each."""

    devices: list[Message]
    nodes: list[list[Message]]
    size_bytes: int
    start_ns: int
    end_ns: int


class _Places(Struct):
    """Planes and lines shared by the runs."""

    builder: OpTraceBuilder
    zero: int
    planes: dict[str, int] = field(default_factory=dict)
    lines: dict[tuple[int, str, int], int] = field(default_factory=dict)
    repeated: int = 0
    """Number of events of ``stream:all``."""


def read_file(path: Path) -> OpTrace:
    """The op trace of a file that holds a serialised RunMetadata.

    Raises:
        FormatError: it cannot be read, is not a RunMetadata, or is damaged.
    """
    return read_files([path])


def read_files(paths: Sequence[Path]) -> OpTrace:
    """The op trace of files that hold the RunMetadata of one run each, at least one.

    Raises:
        FormatError: one of them cannot be read, is not a RunMetadata, or is damaged.
    """
    runs = []
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
        runs.append(_run(content, path.name))
    return _trace(runs, paths[0].name)


def read_bytes(content: bytes, name: str = "") -> OpTrace:
    """The op trace of bytes in memory; otherwise like ``read_file``."""
    return _trace([_run(content, name)], name)


def _run(content: bytes, name: str) -> _Run:
    try:
        devices = [
            _message(device)
            for step_stats in _message(content).get(1, [])
            for device in _message(step_stats).get(1, [])
        ]
        nodes = [[_message(node) for node in device.get(2, [])] for device in devices]
    except FormatError as error:
        hint = damage_hint.hint(content[: damage_hint.PROBE_BYTES], _WHOLE)
        raise FormatError(f"{name}: not RunMetadata, or damaged: {error}{hint}") from error
    if not any(nodes):
        raise FormatError(
            f"{name}: not RunMetadata of a traced run: no node in its {len(content)} bytes; expected {_WHOLE}"
        )
    starts = [_start_ns(node) for device in nodes for node in device]
    ends = [_start_ns(node) + _dur_ns(node) for device in nodes for node in device]
    if max(ends) > _MAX_NS or min(starts) < 0:
        raise FormatError(f"{name}: not RunMetadata, or damaged: a node is out of bounds; expected {_WHOLE}")
    return _Run(devices=devices, nodes=nodes, size_bytes=len(content), start_ns=min(starts), end_ns=max(ends))


def _trace(runs: Sequence[_Run], name: str) -> OpTrace:
    zero, end = min(run.start_ns for run in runs), max(run.end_ns for run in runs)
    size = sum(run.size_bytes for run in runs)
    source = TraceSource(format=FORMAT, name=name, size_bytes=size, started_unix_ns=zero, dur_ns=end - zero)
    builder = OpTraceBuilder(source)
    places = _Places(builder, zero)
    for run in runs:
        _devices(places, run)
    if len(runs) > 1:
        line = builder.line(0, RUNS, LineKind.STEPS)
        for number, run in enumerate(runs, 1):
            builder.event(line, f"{RUN} {number}", run.start_ns - zero, run.end_ns - run.start_ns)
    if places.repeated:
        builder.drop(Dropped(reason=f"{_ALL_STREAMS}, which repeats the single streams", events=places.repeated))
    return builder.build()


def _devices(places: _Places, run: _Run) -> None:
    roots: dict[str, list[tuple[str, Message, list[Message]]]] = defaultdict(list)
    for device, ran in zip(run.devices, run.nodes, strict=True):
        name = _text(device, 1)
        match = _DEVICE.fullmatch(name)
        roots[match["root"] if match else name].append(((match and match["stream"]) or "", device, ran))
    for root, parts in roots.items():
        match = _DEVICE.fullmatch(root)
        kind = _KINDS.get((match["kind"] or match["old"]).upper(), PlaneKind.DEVICE) if match else PlaneKind.OTHER
        ordinal = int(match["number"]) if match and kind is not PlaneKind.HOST else -1
        if root not in places.planes:
            places.planes[root] = places.builder.plane(root, kind, ordinal=ordinal)
        single = any(stream and stream != _ALL_STREAMS for stream, *_ in parts)
        for stream, device, ran in parts:
            if stream == _ALL_STREAMS and single:
                places.repeated += len(ran)
            else:
                _nodes(places, places.planes[root], kind, stream, device, ran)


def _nodes(places: _Places, plane: int, kind: PlaneKind, stream: str, device: Message, ran: list[Message]) -> None:
    names = {}
    for entry in device.get(3, []):
        pair = _message(entry)
        names[_int(pair, 1)] = _text(pair, 2)
    builder, zero = places.builder, places.zero
    line_kind = LineKind.STREAM if stream.startswith("stream") else LineKind.THREAD
    serves = _text(device, 1).startswith(_SERVER)
    for node in ran:
        thread = _int(node, 10)
        transfer = _TRANSFER.fullmatch(_text(node, 8))
        where = TRANSFERS if transfer else stream
        place = (plane, where, thread)
        if place not in places.lines:
            title = where or names.get(thread, "") or f"thread {thread}"
            places.lines[place] = builder.line(plane, title, line_kind, thread)
        line = places.lines[place]
        label = _LABEL.fullmatch(_text(node, 8))
        name, known = _what(node, label, kind, line_kind)
        if serves and _TAKES.fullmatch(known.op_type):
            known = known._replace(category=Category.COLLECTIVE)
        stats: dict[str, PlainStat] = {}
        if transfer:
            known = Meaning(category=Category.COLLECTIVE)
            stats.update(_transferred(node, transfer))
        scheduled = _int(node, 9) * 1000
        if scheduled:
            stats["scheduled_ns"] = scheduled - zero
        if label and label["inputs"]:
            stats[StatName.INPUTS] = label["inputs"]
        builder.event(line, name, _start_ns(node) - zero, _dur_ns(node), stats=stats, known=known)
        for allocator in node.get(6, []):
            _memory(builder, line, name, _message(allocator), zero)


def _what(node: Message, label: re.Match[str] | None, plane: PlaneKind, line: LineKind) -> tuple[str, Meaning]:
    """The event's name and meaning: the label gives the type, ``name = Type(inputs)``."""
    name = _text(node, 1)
    if label:
        op = name.partition(":")[0] or label["name"]
        return f"{op}:{label['type']}", Meaning(category=op_category(label["type"]), op_name=op, op_type=label["type"])
    known = meaning(name, plane, line)
    if line is LineKind.THREAD and not known.op_name and not _text(node, 8):
        known = Meaning(category=Category.OP, op_name=name, op_type="")
    return name, known


def _transferred(node: Message, label: re.Match[str]) -> dict[str, PlainStat]:
    """The facts in a transfer's label. It rounds the bytes, whose exact number is in the node's output."""
    found = node
    for key in (7, 3, 4):
        found = _message(found[key][-1]) if found.get(key) else {}
    size = signed(_int(found, 1)) or round(float(label["size"] or 0) * _UNITS[label["unit"] or "B"])
    said: dict[str, PlainStat] = {StatName.TRANSFER_BYTES: size, TENSOR: label["tensor"]}
    if _dur_ns(node):
        said["bits_per_s"] = size * 8e9 / _dur_ns(node)
    return {**said, SOURCE: label["source"], TARGET: label["target"]}


def _memory(builder: OpTraceBuilder, line: int, node: str, used: Message, zero: int) -> None:
    for one in used.get(6, []):
        record = _message(one)
        size = signed(_int(record, 2))
        stats: dict[str, PlainStat] = {
            "allocator_name": _text(used, 1),
            "allocation_bytes": abs(size),
            "requested_bytes": abs(size),
            "bytes_allocated": signed(_int(used, 5)),
            StatName.TF_OP: node,
        }
        name = "MemoryAllocation" if size >= 0 else "MemoryDeallocation"
        builder.event(line, name, _int(record, 1) * 1000 - zero, 0, stats=stats)


def _start_ns(node: Message) -> int:
    return _int(node, 13) or _int(node, 2) * 1000


def _dur_ns(node: Message) -> int:
    return max(0, signed(_int(node, 16)) or signed(_int(node, 5)) * 1000)


def _message(value: Value) -> Message:
    found: Message = defaultdict(list)
    if isinstance(value, int):
        raise FormatError(f"a number, {value}, where a message was expected")
    for key, _, inner in fields(value):
        found[key].append(inner)
    return found


def _int(message: Mapping[int, list[Value]], key: int) -> int:
    values = message.get(key)
    return number(values[-1]) if values else 0


def _text(message: Mapping[int, list[Value]], key: int) -> str:
    values = message.get(key)
    return text(values[-1]) if values else ""
