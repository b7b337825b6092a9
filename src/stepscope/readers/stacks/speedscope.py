"""speedscope's JSON, both profile types: ``sampled`` (stacks and weights) and ``evented`` (frames open and close).

A speedscope file holds a profile per thread. Profiles of one unit are read as one, each as a thread of that name; the
weights' unit names the event, for which the format has no field. Samples have an order but no times; events have times.

Source: https://www.speedscope.app/file-format-schema.json, src/lib/file-format-spec.ts of jlfwong/speedscope.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct, field

from stepscope.readers.stacks.chains import FrameChains, split_truncated
from stepscope.readers.stacks.labels import UNREADABLE, clean, frame_of, label_of
from stepscope.readers.stacks.modules import kind_of_module
from stepscope.tables import nesting
from stepscope.tables.errors import FormatError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.stacks import UNKNOWN, Frame, FrameKind, SampleTable, StackBuilder, StackProfile, Thread

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_TIMES = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}

Unit = Literal["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]

_UNITS: dict[str, Unit] = {"ns": "nanoseconds", "bytes": "bytes"}
"""Names of our units in the format; all others have no name there."""


class _Frame(msgspec.Struct, omit_defaults=True):
    name: str
    file: str | None = None
    line: float | None = None
    col: float | None = None


class _Shared(msgspec.Struct):
    frames: list[_Frame]


class _Sampled(msgspec.Struct, tag_field="type", tag="sampled", rename="camel"):
    name: str
    unit: Unit
    start_value: float
    end_value: float
    samples: list[list[int]]
    weights: list[float]


class _Event(msgspec.Struct):
    type: Literal["O", "C"]
    at: float
    frame: int


class _Evented(msgspec.Struct, tag_field="type", tag="evented", rename="camel"):
    name: str
    unit: Unit
    start_value: float
    end_value: float
    events: list[_Event]


class _File(msgspec.Struct, rename="camel"):
    shared: _Shared
    profiles: list[_Sampled | _Evented]
    schema: str = msgspec.field(default=SCHEMA, name="$schema")
    name: str | None = None
    exporter: str | None = None
    active_profile_index: float | msgspec.UnsetType | None = msgspec.UNSET


class _Rows(Struct):
    """Samples of one unit in columns, with their threads."""

    at_ns: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)
    events: bool = False
    diagnostics: list[Diagnostic] = field(default_factory=list)


def looks_like(head: bytes) -> bool:
    """Whether the beginning of a file is JSON."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def is_named(head: bytes) -> bool:
    """Whether JSON names speedscope, or has the parts that only such a file has."""
    return b"speedscope.app/file-format-schema" in head or (b'"shared"' in head and b'"profiles"' in head)


def read(data: bytes, *, where: str) -> tuple[StackProfile, ...]:
    """Read a speedscope file: a profile for each unit in it.

    Raises:
        FormatError: it is not a speedscope file, or its events do not nest.
    """
    try:
        with nesting.bounded():
            file = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{where}: not a speedscope file: {error}; expected JSON with shared.frames and profiles"
        ) from error
    builder = StackBuilder()
    frames = [_read_frame(frame) for frame in file.shared.frames]
    units: dict[str, _Rows] = {}
    for number, profile in enumerate(file.profiles):
        rows = units.setdefault("ns" if profile.unit in _TIMES else profile.unit, _Rows())
        rows.threads.append(Thread(name=profile.name))
        place = f"{where}: profiles[{number}]"
        if isinstance(profile, _Sampled):
            _sampled(profile, frames, builder, rows, place)
        else:
            rows.events = True
            _evented(profile, frames, builder, rows, place)
    if not units:
        raise FormatError(f"{where}: it has no profile; expected at least one")
    return tuple(_profile(unit, rows, builder, file.name or "") for unit, rows in units.items())


def _profile(unit: str, rows: _Rows, builder: StackBuilder, name: str) -> StackProfile:
    size = len(rows.stack)
    return StackProfile(
        event={"ns": "time", "bytes": "memory"}.get(unit, ""),
        unit="" if unit == "none" else unit,
        name=name,
        frames=builder.frames,
        stacks=builder.stacks,
        samples=SampleTable(
            at_ns=np.array(rows.at_ns, np.int64),
            thread=np.array(rows.thread, np.int64),
            stack=np.array(rows.stack, np.int64),
            weight=np.array(rows.weight, np.float64),
            count=np.zeros(size, np.int64),
            flags=np.array(rows.flags, np.int64),
            op_thread=np.zeros(size, np.int64),
        ),
        threads=tuple(rows.threads),
        diagnostics=tuple(rows.diagnostics),
    )


def _read_frame(frame: _Frame) -> Frame:
    known = frame_of(frame.name)
    file, line = frame.file or "", frame.line or 0
    if not file:
        return known
    if ".so" in file or kind_of_module(file) in {FrameKind.KERNEL, FrameKind.GENERATED}:
        return known._replace(module=file, kind=kind_of_module(file) if known.kind is FrameKind.OTHER else known.kind)
    kind = FrameKind.PYTHON if file.endswith(".py") or file.startswith("<") else known.kind
    return known._replace(file=file, line=int(line) if 0 < line < math.inf else 0, kind=kind)


def _sampled(profile: _Sampled, frames: list[Frame], builder: StackBuilder, rows: _Rows, place: str) -> None:
    if len(profile.samples) != len(profile.weights):
        raise FormatError(
            f"{place}: {len(profile.samples)} samples and {len(profile.weights)} weights; expected equal numbers"
        )
    scale = _TIMES.get(profile.unit, 1)
    known: dict[tuple[int, ...], tuple[int, int]] = {}
    for number, (sample, weight) in enumerate(zip(profile.samples, profile.weights, strict=True)):
        key = tuple(sample)
        if key not in known:
            if any(not 0 <= i < len(frames) for i in key):
                raise FormatError(f"{place}.samples[{number}]: frames {sample}; expected numbers below {len(frames)}")
            flags, chain = split_truncated([frames[i] for i in key])
            known[key] = builder.stack_of(chain), flags
        _add(rows, UNKNOWN, known[key], weight * scale, f"{place}.weights[{number}]")


def _evented(profile: _Evented, frames: list[Frame], builder: StackBuilder, rows: _Rows, place: str) -> None:
    """Turn events into samples: between two events the open frames are a stack."""
    scale = _TIMES.get(profile.unit, 1)
    timed = profile.unit in _TIMES
    open_frames: list[int] = []
    last = profile.start_value

    def lasted(until: float, what: str) -> None:
        nonlocal last
        if until < last:
            raise FormatError(f"{place}.{what}: at {until:g}, before {last:g}; expected events in order of time")
        if until > last and open_frames:
            flags, chain = split_truncated([frames[i] for i in open_frames])
            at = round((last - profile.start_value) * scale) if timed else UNKNOWN
            _add(rows, at, (builder.stack_of(chain), flags), (until - last) * scale, what)
        last = until

    for number, event in enumerate(profile.events):
        what = f"events[{number}]"
        lasted(event.at, what)
        if event.type == "O":
            if not 0 <= event.frame < len(frames):
                raise FormatError(f"{place}.{what}: frame {event.frame}; expected a number below {len(frames)}")
            open_frames.append(event.frame)
        elif open_frames and open_frames[-1] == event.frame:
            open_frames.pop()
        else:
            top = f"frame {open_frames[-1]}" if open_frames else "no frame"
            raise FormatError(f"{place}.{what}: closes frame {event.frame} while {top} is the innermost open one")
    if open_frames:
        text = f"{place}: {len(open_frames)} frames are never closed; they are taken to last until its end"
        rows.diagnostics.append(Diagnostic(code=UNREADABLE, text=text))
        lasted(max(last, profile.end_value), "endValue")


def _add(rows: _Rows, at_ns: int, stack: tuple[int, int], weight: float, place: str) -> None:
    if not 0 <= weight < math.inf:
        raise FormatError(f"{place}: {weight:g}; expected a non-negative number")
    rows.at_ns.append(at_ns)
    rows.thread.append(len(rows.threads) - 1)
    rows.stack.append(stack[0])
    rows.flags.append(stack[1])
    rows.weight.append(weight)


# ---- writing


def write(profile: StackProfile, *, name: str = "", exporter: str = "") -> bytes:
    """A profile as a speedscope file: a sampled profile per thread, with its samples in time order.

    Weights in ns are nanoseconds, weights in bytes are bytes, all others have no unit there.
    """
    unit = _UNITS.get(profile.unit, "none")
    chains = FrameChains(profile)
    known: dict[tuple[int, int], list[int]] = {}
    samples = profile.samples
    order = np.argsort(samples.at_ns, kind="stable")
    profiles: list[_Sampled | _Evented] = []
    for thread in np.unique(samples.thread).tolist():
        mine = samples.take(order[samples.thread[order] == thread])
        stacks = []
        for key in zip(mine.stack.tolist(), mine.flags.tolist(), strict=True):
            if key not in known:
                known[key] = chains.of(*key)
            stacks.append(known[key])
        title = _title(profile.threads[thread]) if thread != UNKNOWN else profile.name or profile.event or "samples"
        profiles.append(
            _Sampled(
                name=title,
                unit=unit,
                start_value=0,
                end_value=float(mine.weight.sum()),
                samples=stacks,
                weights=mine.weight.tolist(),
            )
        )
    shared = _Shared(frames=[_write_frame(frame) for frame in chains.frames])
    file = _File(
        shared=shared, profiles=profiles, name=name or profile.name or profile.event, exporter=exporter or None
    )
    return msgspec.json.encode(file)


def _title(thread: Thread) -> str:
    """A thread's name, with its number if it has one."""
    name = clean(thread.name)
    return f"{name} ({thread.tid})" if thread.tid and name else name or f"thread {thread.tid}"


def _write_frame(frame: Frame) -> _Frame:
    if frame.file:
        return _Frame(name=clean(frame.function), file=frame.file, line=frame.line or None)
    return _Frame(name=label_of(frame), file=frame.module or None)
