"""The text of ``perf script``: a line about each sample, its frames leaf to root below it, an empty line.

Fields that may be there: process name, pid/tid, [cpu], time, period, event. Samples of different events are different
profiles. What stands below the leaf repeats from sample to sample and is parsed once, so that a sample costs one match
and a few look-ups.

Source: tools/perf/Documentation/perf-script.txt and builtin-script.c of Linux 4.15 to 6.18.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from stepscope.errors import FormatError
from stepscope.formats.stacks.labels import UNREADABLE
from stepscope.formats.stacks.perf_frames import FrameLines
from stepscope.model.finding import Diagnostic
from stepscope.model.stacks import UNKNOWN, SampleTable, StackBuilder, StackProfile, Thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.records import I64

_HEAD = re.compile(
    rb"(?P<comm>\S.*?)\s+(?P<pid>-?\d+)(?:/(?P<tid>-?\d+))?"
    rb"(?:\s+\[\d+\])?"
    rb"(?:\s+[A-Za-z0-9.#]{4,6}(?=\s+\d+\.\d+:))?"
    rb"(?:\s+(?P<seconds>\d+)\.(?P<fraction>\d{3,9}):)?"
    rb"(?:\s+(?P<period>\d+))?"
    rb"(?:\s+(?P<event>[^\s:]\S*?):(?:\s+(?P<rest>.*\S))?)?\s*"
)
"""The line about a sample. ``rest``: arguments of a tracepoint, or the only frame where no stacks were recorded."""
_FRAME = re.compile(rb"\s+[0-9a-f]+ .*\)\s*")
_TIME = re.compile(rb"(\d{1,9}|[1-8]\d{9})\.(\d{1,9})")
_MODIFIERS = re.compile(r":[ukhGHpPSDIWeb]+$")
_TIMES = frozenset({"cpu-clock", "task-clock"})
_NS_DIGITS = 9
_READ = 1 << 20
_BLOCK = 1 << 18
"""Bytes that are compared at once: they fit into the CPU's cache."""
_LINE_FEED = 10
_SKIPPED, _BLANKS = b"#\n", b" \t"
_SCALES = tuple(10 ** (_NS_DIGITS - digits) for digits in range(_NS_DIGITS + 1))
"""Nanoseconds of the last digit of a time, by how many digits its fraction has."""
_QUOTED = 60
"""Bytes of a line that is quoted."""


@dataclass(slots=True)
class _Rows:
    """Samples of one event, in columns."""

    when: list[bytes] = field(default_factory=list)
    """As printed, b"" where there is none: numbers are made of all at once."""
    threads: list[int] = field(default_factory=list)
    stacks: list[int] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)


def looks_like(head: bytes) -> bool:
    """Whether the beginning of a file is text of ``perf script``: the line of a sample and, below it, a frame."""
    lines = [line for line in head.replace(b"\r\n", b"\n").split(b"\n") if line and not line.startswith(b"#")]
    if not lines or (found := _HEAD.fullmatch(lines[0].strip())) is None:
        return False
    if found["seconds"] is not None and found["event"] is not None:
        return True
    return len(lines) > 1 and _FRAME.fullmatch(lines[1]) is not None


def read(data: bytes, *, where: str) -> tuple[StackProfile, ...]:
    """Read the text of ``perf script``: a profile for each event, in the order of their first samples.

    Weights are periods where perf printed them, else 1. Times are as perf's clock counts, from the first sample.

    Raises:
        FormatError: there is no sample in it.
    """
    return read_stream(io.BytesIO(data), where=where)


def read_stream(stream: BinaryIO, head: bytes = b"", *, where: str) -> tuple[StackProfile, ...]:
    """The same of a file, which is never in memory as a whole: getting pages for it takes a sixth of the time.

    ``head``: what has been read of it.

    Raises:
        FormatError: there is no sample in it.
        OSError: it cannot be read.
    """
    reader = _Reader()
    data, more = b"", head or stream.read(_READ)
    while more:
        data += more
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        at = 0
        for end in _empty_lines(data):
            reader.take(data, at, end)
            at = end + 1
        data = data[at:]
        more = stream.read(max(_READ, len(data)))  # more at once where no sample has ended
    reader.take(data, 0, len(data))
    return reader.profiles(where)


def _empty_lines(data: bytes) -> Iterator[int]:
    """Where lines end that have an empty one behind them: comparing in blocks is three times as fast as find()."""
    text = np.frombuffer(data, np.uint8)
    for at in range(0, len(text) - 1, _BLOCK):
        ends = text[at : at + _BLOCK + 1] == _LINE_FEED
        yield from (np.flatnonzero(ends[:-1] & ends[1:]) + at).tolist()


class _Reader:
    """What has been read so far, and what equal text was found to mean."""

    def __init__(self) -> None:
        self._builder = StackBuilder()
        self._frames = FrameLines(self._builder)
        self._callers: dict[bytes, int] = {}
        self._threads: dict[tuple[bytes, bytes, bytes], int] = {}
        self._events: dict[tuple[bytes, bool], _Rows] = {}
        self._before_time: dict[bytes, int] = {}
        self._after_time: dict[bytes, tuple[_Rows, int]] = {}
        self._unread = 0
        self._strange = b""

    def take(self, data: bytes, at: int, end: int) -> None:
        """One sample, or what else stands between two empty lines: bytes ``at`` to ``end``."""
        while at < end and data[at] in _SKIPPED:
            at = data.find(b"\n", at, end) + 1 or end
        head = data.find(b"\n", at, end)
        if head < 0 or head + 1 >= end or data[head + 1] not in _BLANKS or data[at] in _BLANKS:
            self._samples_without_stacks(data[at:end])
            return
        leaf = data.find(b"\n", head + 1, end)
        if leaf < 0:
            leaf = end
        callers = data[leaf + 1 : end]
        parent = self._callers.get(callers)
        if parent is None:
            parent = self._callers[callers] = self._frames.stack(callers)
        frame = self._frames.frame(data[head + 1 : leaf])
        stack = parent if frame == UNKNOWN else self._builder.child(parent, frame)
        line = data[at:head]
        colon = line.find(b": ")
        space = line.rfind(b" ", 0, colon)
        thread, what = self._before_time.get(line[:space]), self._after_time.get(line[colon:])
        if thread is None or what is None:
            self._add(line, stack)
            return
        rows, weight = what
        rows.when.append(line[space + 1 : colon])
        rows.threads.append(thread)
        rows.stacks.append(stack)
        rows.weights.append(weight)

    def _samples_without_stacks(self, block: bytes) -> None:
        """Lines that follow each other are samples recorded without stacks: the leaf stands in the line."""
        for line in block.split(b"\n"):
            sample = line.strip(_BLANKS)  # perf fills up the name to sixteen letters where it prints no stacks
            found = _HEAD.fullmatch(sample) if sample else None
            if found is not None:
                frame = self._frames.frame(found["rest"]) if found["rest"] else UNKNOWN
                self._add(sample, UNKNOWN if frame == UNKNOWN else self._builder.child(UNKNOWN, frame))
            elif line:
                self._cannot_read(line)

    def _add(self, line: bytes, stack: int) -> None:
        """A sample. What stands before and after its time is remembered: mostly it stands there again."""
        found = _HEAD.fullmatch(line)
        if found is None:
            self._cannot_read(line)
            return
        thread, (rows, weight) = self._thread(found), self._event(found)
        when = line[found.start("seconds") : found.end("fraction")] if found["seconds"] else b""
        colon = line.find(b": ")
        space = line.rfind(b" ", 0, colon)
        if when and (found.start("seconds"), found.end("fraction")) == (space + 1, colon):
            self._before_time[line[:space]], self._after_time[line[colon:]] = thread, (rows, weight)
        rows.when.append(when)
        rows.threads.append(thread)
        rows.stacks.append(stack)
        rows.weights.append(weight)

    def _thread(self, found: re.Match[bytes]) -> int:
        thread = (found["comm"], found["pid"], found["tid"] or found["pid"])
        return self._threads.setdefault(thread, len(self._threads))

    def _event(self, found: re.Match[bytes]) -> tuple[_Rows, int]:
        period = found["period"]
        rows = self._events.setdefault((found["event"] or b"", period is not None), _Rows())
        return rows, 1 if period is None else int(period)

    def _cannot_read(self, line: bytes) -> None:
        self._unread += 1
        self._strange = self._strange or line

    def profiles(self, where: str) -> tuple[StackProfile, ...]:
        """What was read.

        Raises:
            FormatError: nothing.
        """
        unread = self._unread + self._frames.unread
        strange = (self._strange or self._frames.strange)[:_QUOTED].decode(errors="replace").strip()
        if not self._events:
            got = f"got {strange!r}" if strange else "it is empty"
            raise FormatError(f"{where}: no sample in it: {got}; expected what `perf script` prints")
        said = f"{where}: {unread} lines are neither samples nor frames of perf script and are left out: {strange!r}"
        threads = tuple(
            Thread(pid=int(pid), tid=int(tid), name=comm.decode(errors="replace")) for comm, pid, tid in self._threads
        )
        times = [_times(rows.when) for rows in self._events.values()]
        begin = min((int(at_ns[at_ns != UNKNOWN].min()) for at_ns in times if (at_ns != UNKNOWN).any()), default=0)
        frames, stacks = self._builder.frames, self._builder.stacks
        made = []
        for ((event, periods), rows), at_ns in zip(self._events.items(), times, strict=True):
            full = event.decode(errors="replace")
            name = _MODIFIERS.sub("", full)
            made.append(
                StackProfile(
                    event=name,
                    unit=unit_of(name) if periods else "samples",
                    name=full if full != name else "",
                    frames=frames,
                    stacks=stacks,
                    samples=_table(rows, at_ns, begin),
                    threads=threads,
                    unread=unread,
                    diagnostics=(Diagnostic(code=UNREADABLE, text=said),) if unread else (),
                )
            )
        return tuple(made)


def _times(when: list[bytes]) -> I64:
    """Nanoseconds of texts like "1000.123456"; -1 for what is none."""
    text = b"\n".join(when)
    digits = len(when[0]) - when[0].find(b".") - 1 if when else 0
    if 0 < digits <= _NS_DIGITS and re.fullmatch(rb"(?:(?:\d{1,9}|[1-8]\d{9})\.\d{%d}(?:\n|$))*" % digits, text):
        numbers: I64 = np.fromstring(text.replace(b".", b"").decode("ascii"), np.int64, sep="\n")
        numbers *= _SCALES[digits]
        return numbers
    return np.array([_time(one) for one in when], np.int64)


def _time(when: bytes) -> int:
    found = _TIME.fullmatch(when)
    return int(found[1] + found[2]) * _SCALES[len(found[2])] if found else UNKNOWN


def _table(rows: _Rows, at_ns: I64, begin: int) -> SampleTable:
    return SampleTable(
        at_ns=np.where(at_ns == UNKNOWN, at_ns, at_ns - begin),
        thread=np.array(rows.threads, np.int64),
        stack=np.array(rows.stacks, np.int64),
        weight=np.array(rows.weights, np.float64),
        count=np.ones(len(at_ns), np.int64),
        flags=np.zeros(len(at_ns), np.int64),
    )


def unit_of(event: str) -> str:
    """What the periods of one of perf's events count."""
    return "ns" if event in _TIMES else event or "samples"
