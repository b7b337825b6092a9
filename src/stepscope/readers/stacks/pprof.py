"""pprof's profiles: gzipped protocol buffers, as written by Go, gperftools, py-spy's and perf's converters.

Each sample type of the file is a separate profile, the file's default one first. The number of samples behind a row is
known if the file has a type ``samples/count``. Threads are known if samples have the labels that Go and other writers
use (``thread``, ``tid``, ``pid``).

Source: proto/profile.proto of https://github.com/google/pprof; field numbers below are from there.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.readers.protobuf import codec
from stepscope.readers.protobuf.codec import encode_bytes, encode_number, encode_packed
from stepscope.readers.stacks.chains import FrameChains, split_truncated
from stepscope.readers.stacks.labels import frame_of
from stepscope.readers.stacks.modules import kind_of_module, stand_in
from stepscope.tables.errors import FormatError
from stepscope.tables.stacks import UNKNOWN, Frame, FrameKind, SampleTable, StackBuilder, StackProfile, Thread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.tables.records import I64

_SHORT = {"ns": 1, "us": 1_000, "\u03bcs": 1_000, "\u00b5s": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIMES = _SHORT | {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
"""Units of time; pprof's own are words, those of austin2pprof are short."""
_SIZES = {"bytes": 1, "kilobytes": 1 << 10, "megabytes": 1 << 20, "gigabytes": 1 << 30}
_COUNTS = frozenset({"samples", "sample"})
_THREAD_KEYS = {"tid", "thread_id", "thread id"}
_PROCESS_KEYS = {"pid", "process_id"}
_NAME_KEYS = {"thread", "thread_name", "thread name", "comm"}

_MESSAGES = frozenset(range(1, 6))
_WIRE = {
    **dict.fromkeys((*_MESSAGES, 6), (codec.BYTES,)),
    **dict.fromkeys((7, 8, 9, 10, 12, 14, 15), (codec.VARINT,)),
    11: (codec.BYTES,),
    13: (codec.VARINT, codec.BYTES),
}
"""Wire types of a profile's fields."""
_NUMBERS = (codec.VARINT,)
_INNER: dict[int, dict[int, tuple[int, ...]]] = {
    1: dict.fromkeys((1, 2), _NUMBERS),
    2: {1: (codec.VARINT, codec.BYTES), 2: (codec.VARINT, codec.BYTES), 3: (codec.BYTES,)},
    3: dict.fromkeys(range(1, 11), _NUMBERS),
    4: {**dict.fromkeys((1, 2, 3, 5), _NUMBERS), 4: (codec.BYTES,)},
    5: dict.fromkeys(range(1, 6), _NUMBERS),
}
"""Wire types within its messages, which distinguish it from other protocol buffers."""
_ENOUGH_FIELDS = 16
"""Number of fields in order that cannot be an accident."""

Value = int | bytes


class _Message(Struct):
    """The parts of a profile, not yet decoded."""

    types: list[bytes] = field(default_factory=list)
    samples: list[bytes] = field(default_factory=list)
    mappings: dict[int, dict[int, Value]] = field(default_factory=dict)
    locations: list[bytes] = field(default_factory=list)
    functions: dict[int, dict[int, Value]] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)
    default_type: int = 0

    def string(self, value: Value) -> str:
        """The string that a field points to."""
        index = codec.number(value)
        return self.strings[index] if index < len(self.strings) else ""


def looks_like(head: bytes) -> bool:
    """Whether the beginning of unpacked bytes is a profile: only fields that it may have, with their wire types.

    Writers differ in the order of fields. Text never passes: its first letters are fields of other wire types.
    """
    seen: list[int] = []
    try:
        for key, wire, value in codec.fields(head):
            if wire not in _WIRE.get(key, ()):
                return False
            if isinstance(value, bytes) and not _fits(value, _INNER.get(key)):
                return False
            seen.append(key)
            if len(seen) == _ENOUGH_FIELDS:
                break
    except FormatError:  # a profile longer than the head is cut somewhere
        return len(seen) > 1
    return not _MESSAGES.isdisjoint(seen)


def _fits(raw: bytes, wires: Mapping[int, Sequence[int]] | None) -> bool:
    """Whether a message has only fields of these wire types; any bytes match if there is no message."""
    return wires is None or all(wire in wires.get(key, ()) for key, wire, _ in codec.fields(raw))


def read(data: bytes, *, where: str) -> tuple[StackProfile, ...]:
    """Read an unpacked profile: one for each sample type, the default one first.

    Raises:
        FormatError: it is damaged, holds no sample type, or is the difference of two profiles.
    """
    try:
        message = _split(data)
        return _profiles(message, where)
    except codec.ProtoError as error:
        raise FormatError(f"{where}: damaged pprof profile: {error}") from error


def _split(data: bytes) -> _Message:
    message = _Message()
    for key, _, value in codec.fields(data):
        match key, value:
            case 1, bytes(raw):
                message.types.append(raw)
            case 2, bytes(raw):
                message.samples.append(raw)
            case 3, bytes(raw):
                _keep(message.mappings, raw)
            case 4, bytes(raw):
                message.locations.append(raw)
            case 5, bytes(raw):
                _keep(message.functions, raw)
            case 6, bytes(raw):
                message.strings.append(codec.text(raw))
            case 14, int(index):
                message.default_type = index
    return message


def _keep(known: dict[int, dict[int, Value]], raw: bytes) -> None:
    inner = _fields(raw)
    known[codec.number(inner.get(1, 0))] = inner


def _fields(raw: bytes) -> dict[int, Value]:
    """A message whose fields do not repeat."""
    return {key: value for key, _, value in codec.fields(raw)}


def _profiles(message: _Message, where: str) -> tuple[StackProfile, ...]:
    types = []
    for raw in message.types:
        inner = _fields(raw)
        types.append((message.string(inner.get(1, 0)), message.string(inner.get(2, 0))))
    if not types:
        raise FormatError(f"{where}: it has no sample type; expected a pprof profile")
    builder = StackBuilder()
    locations = _locations(message)
    threads: dict[Thread, int] = {}
    stacks, owners, flags, values = [], [], [], []
    known: dict[tuple[int, ...], tuple[int, int]] = {}
    for raw in message.samples:
        ids, row, thread = _sample(message, raw)
        if len(row) != len(types):
            raise FormatError(f"{where}: a sample has {len(row)} values; expected {len(types)}, one for each type")
        key = tuple(ids)
        if key not in known:
            flag, chain = split_truncated([frame for i in reversed(ids) for frame in locations.get(i, ())])
            known[key] = builder.stack_of(chain), flag
        stack, flag = known[key]
        stacks.append(stack)
        flags.append(flag)
        owners.append(UNKNOWN if thread is None else threads.setdefault(thread, len(threads)))
        values.append(row)
    table = np.array(values, np.int64).reshape(len(values), len(types))
    if table.size and table.min() < 0:
        raise FormatError(
            f"{where}: negative values, as in a difference made by `pprof -base`; "
            "expected a single profile (stepscope flame diff A B compares two)"
        )
    counts = next((i for i, (kind, unit) in enumerate(types) if kind in _COUNTS and unit == "count"), None)
    columns = {
        "at_ns": np.full(len(values), UNKNOWN, np.int64),
        "thread": np.array(owners, np.int64),
        "stack": np.array(stacks, np.int64),
        "flags": np.array(flags, np.int64),
        "op_thread": np.zeros(len(values), np.int64),
        "count": np.zeros(len(values), np.int64) if counts is None else table[:, counts],
    }
    made = []
    for i, (kind, unit) in enumerate(types):
        scale, name = _unit(kind, unit)
        made.append(
            StackProfile(
                event=kind,
                unit=name,
                frames=builder.frames,
                stacks=builder.stacks,
                samples=SampleTable(weight=table[:, i].astype(np.float64) * scale, **columns),
                threads=tuple(threads),
            )
        )
    default = message.strings[message.default_type] if 0 < message.default_type < len(message.strings) else types[-1][0]
    first = next((i for i, (kind, _) in enumerate(types) if kind == default), len(types) - 1)
    return (made[first], *made[:first], *made[first + 1 :])


def _unit(kind: str, unit: str) -> tuple[int, str]:
    """The number of our units in one of the file's, and the name of ours."""
    if unit in _TIMES:
        return _TIMES[unit], "ns"
    if unit in _SIZES:
        return _SIZES[unit], "bytes"
    return 1, kind if unit == "count" else unit


def _locations(message: _Message) -> dict[int, tuple[Frame, ...]]:
    """Frames of each location, root to leaf: inlined functions follow their caller."""
    found: dict[int, tuple[Frame, ...]] = {}
    for raw in message.locations:
        number = mapping = 0
        lines: list[Frame] = []
        for key, _, value in codec.fields(raw):
            match key, value:
                case 1, int(number):
                    pass
                case 2, int(mapping):
                    pass
                case 4, bytes(line):
                    lines.append(_line(message, _fields(line)))
        module = message.string(message.mappings.get(mapping, {}).get(5, 0))
        kind = kind_of_module(module)
        placed = [
            line._replace(module=module, kind=kind if line.kind is FrameKind.OTHER else line.kind) for line in lines
        ]
        if not placed:
            placed = [Frame(stand_in(module, kind), module=module, kind=kind, resolved=False)]
        found[number] = tuple(reversed(placed))
    return found


def _line(message: _Message, inner: dict[int, Value]) -> Frame:
    function = message.functions.get(codec.number(inner.get(1, 0)), {})
    name = message.string(function.get(2, 0)) or message.string(function.get(3, 0))
    file = message.string(function.get(4, 0))
    frame = frame_of(name)
    line = max(0, codec.signed(codec.number(inner.get(2, 0))))
    kind = FrameKind.PYTHON if file.endswith(".py") else frame.kind
    return frame._replace(file=file or frame.file, line=line or frame.line, kind=kind)


def _sample(message: _Message, raw: bytes) -> tuple[list[int], list[int], Thread | None]:
    """Locations leaf to root, values, thread."""
    ids: list[int] = []
    values: list[int] = []
    pid = tid = 0
    name = ""
    for key, wire, value in codec.fields(raw):
        match key, value:
            case 1, _:
                ids += codec.numbers(wire, value)
            case 2, _:
                values += map(codec.signed, codec.numbers(wire, value))
            case 3, bytes(inner):
                label = _fields(inner)
                word = message.string(label.get(1, 0))
                if word in _THREAD_KEYS:
                    tid = codec.number(label.get(3, 0))
                elif word in _PROCESS_KEYS:
                    pid = codec.number(label.get(3, 0))
                elif word in _NAME_KEYS:
                    name = message.string(label.get(2, 0))
    thread = Thread(pid, tid, name) if pid or tid or name else None
    return ids, values, thread


# ---- writing


class _Strings:
    """The string table; the empty string is number 0."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {"": 0}

    def number(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))


class Phases(Struct, frozen=True):
    """What the program did at each sample, for a label ``phase``."""

    number: I64
    """Index into ``names``, -1 for none: int64[sample]."""
    names: Sequence[str]


def write(profile: StackProfile, phases: Phases | None = None) -> bytes:
    """A profile as gzipped pprof: values ``samples/count`` if counts are known, and the event's.

    Threads and phases become labels. Weights are rounded to whole numbers, which are all that the format has.
    """
    strings = _Strings()
    counted = bool(len(profile.samples)) and bool(np.all(profile.samples.count > 0))
    unit = {"ns": "nanoseconds", "bytes": "bytes"}.get(profile.unit, "count")
    kind = profile.event or profile.unit or "samples"
    types = [("samples", "count")] if counted and (kind, unit) != ("samples", "count") else []
    types.append((kind, unit))
    parts = [
        encode_bytes(1, encode_number(1, strings.number(name)) + encode_number(2, strings.number(word)))
        for name, word in types
    ]
    chains = FrameChains(profile)
    labels = [_labels(thread, strings) for thread in profile.threads]
    for phase, samples in _by_phase(profile.samples, phases):
        about = _label(strings, "phase", text=phase) if phase else b""
        columns = (samples.thread, samples.stack, samples.flags, samples.count, samples.weight)
        for thread, stack, flag, *row in zip(*(column.tolist() for column in columns), strict=True):
            ids = [frame + 1 for frame in reversed(chains.of(stack, flag))]
            values = [round(value) for value in row[-len(types) :]]
            sample = encode_packed(1, ids) + encode_packed(2, values) + about
            parts.append(encode_bytes(2, sample + (labels[thread] if thread != UNKNOWN else b"")))
    parts += _symbols(chains.frames, strings)
    parts += [encode_bytes(6, text.encode("utf-8", "replace")) for text in strings.known]
    parts.append(encode_number(14, strings.known[kind]))
    packer = zlib.compressobj(wbits=31)
    return packer.compress(b"".join(parts)) + packer.flush()


def _symbols(frames: Sequence[Frame], strings: _Strings) -> list[bytes]:
    """Mappings, locations and functions: one location for each frame."""
    mappings: dict[str, int] = {}
    parts = []
    for number, frame in enumerate(frames, 1):
        mapping = mappings.setdefault(frame.module, len(mappings) + 1) if frame.module else 0
        line = encode_number(1, number) + encode_number(2, frame.line)
        location = encode_number(1, number) + encode_number(2, mapping)
        parts.append(encode_bytes(4, location + encode_bytes(4, line)))
        name = encode_number(1, number) + encode_number(2, strings.number(frame.function))
        parts.append(encode_bytes(5, name + encode_number(4, strings.number(frame.file))))
    for module, number in mappings.items():
        parts.append(encode_bytes(3, encode_number(1, number) + encode_number(5, strings.number(module))))
    return parts


def _by_phase(samples: SampleTable, phases: Phases | None) -> Iterator[tuple[str, SampleTable]]:
    """Sums of the samples of each phase; "" for none."""
    if phases is None:
        yield "", samples.summed()
        return
    for number in np.unique(phases.number).tolist():
        name = phases.names[number] if number != UNKNOWN else ""
        yield name, samples.take(phases.number == number).summed()


def _label(strings: _Strings, key: str, *, text: str = "", value: int = 0) -> bytes:
    inner = encode_number(1, strings.number(key)) + encode_number(2, strings.number(text))
    return encode_bytes(3, inner + encode_number(3, value))


def _labels(thread: Thread, strings: _Strings) -> bytes:
    named = _label(strings, "thread", text=thread.name) if thread.name else b""
    return named + _label(strings, "tid", value=thread.tid) + _label(strings, "pid", value=thread.pid)
