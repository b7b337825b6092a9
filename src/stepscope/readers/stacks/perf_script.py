"""The text of ``perf script``: a line per sample, its frames leaf to root below it, an empty line.

Optional fields: process name, pid/tid, [cpu], time, period, event. Samples of different events form different profiles.
The lines below a leaf repeat between samples and are parsed once, as are the text around a time and a leaf without its
address: most samples cost a few look-ups, in a single loop (``_Reader.take``).

Source: tools/perf/Documentation/perf-script.txt and builtin-script.c of Linux 4.15 to 6.18.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from stepscope.readers.stacks.labels import UNREADABLE
from stepscope.readers.stacks.perf_frames import SYMBOL_AT, FrameLines
from stepscope.tables.errors import FormatError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.stacks import UNKNOWN, SampleTable, StackBuilder, StackProfile, Thread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.tables.records import I64

_HEAD = re.compile(
    rb"(?P<comm>\S.*?)\s+(?P<pid>-?\d+)(?:/(?P<tid>-?\d+))?"
    rb"(?:\s+\[\d+\])?"
    rb"(?:\s+[A-Za-z0-9.#]{4,6}(?=\s+\d+\.\d+:))?"
    rb"(?:\s+(?P<seconds>\d+)\.(?P<fraction>\d{3,9}):)?"
    rb"(?:\s+(?P<period>\d+))?"
    rb"(?:\s+(?P<event>[^\s:]\S*?):(?:\s+(?P<rest>.*\S))?)?\s*"
)
"""Pattern of a sample's line. ``rest``: arguments of a tracepoint, or the only frame if no stacks were recorded."""
_RECORD = b": PERF_RECORD_"
"""Part of the lines of ``--show-mmap-events`` and the like, which are no samples."""
_NO_ID = b" -1"
"""Process of a sample for which none was printed."""
_BARE_FRAME = re.compile(rb"\t\s*[0-9a-f]{4,16} \S.*")
"""Pattern of a frame below a line that is only a name, as ``-F comm,ip,sym`` prints them."""
_FRAME = re.compile(rb"\s+[0-9a-f]+ .*\)\s*")
_TIME = re.compile(rb"(\d{1,9}|[1-8]\d{9})\.(\d{1,9})")
_MODIFIERS = re.compile(r":[ukhGHpPSDIWeb]+$")
_TIMES = frozenset({"cpu-clock", "task-clock"})
_NS_DIGITS = 9
_READ = 1 << 18
_BLOCK = 1 << 18
"""Bytes compared at once: they fit into the CPU's cache."""
_LINE_FEED, _POINT, _ZERO, _NINE = b"\n.09"
_SKIPPED, _BLANKS, _DIGITS = b"#\n", b" \t", b"0123456789"
_BLANK = 32
_NEAR = 400
"""Bytes below a leaf that usually determine what follows them: four frames."""
_SCALES = tuple(10 ** (_NS_DIGITS - digits) for digits in range(_NS_DIGITS + 1))
"""Nanoseconds of the last digit of a time, by the number of digits in its fraction."""
_QUOTED = 60
"""Maximum number of bytes quoted from a line."""


class _Samples(Struct):
    """Samples in columns."""

    when: list[bytes] = field(default_factory=list)
    """Times as printed, b"" if missing: they are converted all at once."""
    thread: list[int] = field(default_factory=list)
    what: list[int] = field(default_factory=list)
    """Event and weight: an index of ``_Reader._what``."""
    stack: list[int] = field(default_factory=list)


def looks_like(head: bytes) -> bool:
    """Whether the beginning of a file is text of ``perf script``: a sample's line followed by a frame."""
    texts = head.replace(b"\r\n", b"\n").split(b"\n")
    lines = [line for line in texts if line and not line.startswith(b"#") and _RECORD not in line]
    if not lines:
        return any(_RECORD in line for line in texts)
    if (found := _HEAD.fullmatch(lines[0].strip())) is None:
        return len(lines) > 1 and lines[0][:1].isalpha() and _BARE_FRAME.fullmatch(lines[1]) is not None
    if found["seconds"] is not None and found["event"] is not None:
        return True
    return len(lines) > 1 and _FRAME.fullmatch(lines[1]) is not None


def read(data: bytes, *, where: str) -> tuple[StackProfile, ...]:
    """Read the text of ``perf script``: a profile per event, in the order of their first samples.

    Weights are periods if perf printed them, else 1. Times are on perf's clock, from the first sample.

    Raises:
        FormatError: there is no sample in it.
    """
    return read_stream(io.BytesIO(data), where=where)


def read_stream(stream: BinaryIO, head: bytes = b"", *, where: str) -> tuple[StackProfile, ...]:
    """Read a file, which is never in memory as a whole: getting pages for it takes a sixth of the time.

    ``head``: the part that has been read already.

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
        data = data[reader.take(data, _empty_lines(data)) :]
        more = stream.read(max(_READ, len(data)))  # doubled if no sample has ended
    reader.take(data, (len(data),))
    return reader.profiles(where)


def _empty_lines(data: bytes) -> Iterator[int]:
    """Ends of lines followed by an empty one: comparing in blocks is four times as fast as find().

    Few bytes match, so that eight at a time are skipped.
    """
    text = np.frombuffer(data, np.uint8)
    for at in range(0, len(text) - 1, _BLOCK):
        feeds = text[at : at + _BLOCK + 1] == _LINE_FEED
        pairs = feeds[:-1] & feeds[1:]
        whole = len(pairs) & -8
        some = np.flatnonzero(pairs[:whole].view(np.uint64) != 0)
        word, byte = pairs[:whole].reshape(-1, 8)[some].nonzero()
        yield from (some[word] * 8 + byte + at).tolist()
        yield from (np.flatnonzero(pairs[whole:]) + (at + whole)).tolist()


class _Reader:
    """The samples read so far, and the parsed meaning of repeated text."""

    def __init__(self) -> None:
        self._builder = StackBuilder()
        self._frames = FrameLines(self._builder)
        self._callers: dict[bytes, tuple[int, dict[bytes, int]]] = {}
        """Stacks by the lines below a leaf, with those of the leaves seen above them, by ``FrameLines.key``."""
        self._near: dict[bytes, tuple[bytes, dict[bytes, int]]] = {}
        """First lines that began with given bytes. Comparing is cheaper than hashing."""
        self._threads: dict[tuple[bytes, bytes, bytes], int] = {}
        self._events: dict[tuple[bytes, bool], int] = {}
        self._what: dict[tuple[int, int], int] = {}
        """Indices of (event, weight)."""
        self._before_time: dict[bytes, int] = {}
        self._after_time: dict[bytes, int] = {}
        self._samples = _Samples()
        self._unread = 0
        self._strange = b""

    def take(self, data: bytes, ends: Iterable[int]) -> int:
        """Take samples, or other text between empty lines, up to each of ``ends``; return the text after the last.

        The loop handles samples with nothing new but their time; ``_one`` handles all others.
        """
        find, rfind, begins = data.find, data.rfind, data.startswith
        callers, near, before_time, after_time = self._callers, self._near, self._before_time, self._after_time
        columns = self._samples
        when, threads, whats, stacks = columns.when, columns.thread, columns.what, columns.stack
        at = 0
        for end in ends:
            head = find(b"\n", at, end)
            leaf = find(b"\n", head + 1, end)
            colon = find(b": ", at, head)
            space = rfind(b" ", at, colon)
            plus = rfind(b"+0x", head, leaf)
            module = find(b" ", plus, leaf)
            if (
                at < space < colon < head < plus - SYMBOL_AT
                and plus < module < leaf
                and data[head + 1] in _BLANKS
                and data[head + SYMBOL_AT] == _BLANK
                and data[space + 1] in _DIGITS
            ):
                first = leaf + 1
                try:
                    thread, what = before_time[data[at:space]], after_time[data[colon:head]]
                    text, leaves = near[data[first : min(end, first + _NEAR)]]
                    if len(text) != end - first or not begins(text, first, end):
                        leaves = callers[data[first:end]][1]
                    stack = leaves[data[head + SYMBOL_AT + 1 : plus] + data[module:leaf]]
                except KeyError:
                    self._one(data, at, end)
                else:
                    when.append(data[space + 1 : colon])
                    threads.append(thread)
                    whats.append(what)
                    stacks.append(stack)
            else:
                self._one(data, at, end)
            at = end + 2  # after the empty line
        return at

    def _one(self, data: bytes, at: int, end: int) -> None:
        """Take one sample, or other text between two empty lines: bytes ``at`` to ``end``."""
        head = data.find(b"\n", at, end)
        while at < end and (data[at] in _SKIPPED or data.find(_RECORD, at, head if head >= 0 else end) >= 0):
            at = head + 1 or end
            head = data.find(b"\n", at, end)
        if head < 0 or head + 1 >= end or data[head + 1] not in _BLANKS or data[at] in _BLANKS:
            self._samples_without_stacks(data[at:end])
            return
        leaf = data.find(b"\n", head + 1, end)
        if leaf < 0:
            leaf = end
        below = data[leaf + 1 : end]
        known = self._callers.get(below)
        if known is None:
            known = self._callers[below] = self._frames.stack(below), {}
            self._near.setdefault(below[:_NEAR], (below, known[1]))
        parent, leaves = known
        line = data[head + 1 : leaf]
        frame = self._frames.frame(line)
        stack = parent if frame == UNKNOWN else self._builder.child(parent, frame)
        key = self._frames.key(line)
        if key is not None:
            leaves[key] = stack
        self._add(data[at:head], stack)

    def _samples_without_stacks(self, block: bytes) -> None:
        """Take consecutive lines as samples recorded without stacks: the leaf is in the line."""
        for line in block.split(b"\n"):
            sample = line.strip(_BLANKS)  # without stacks perf pads the name to sixteen letters
            found = _HEAD.fullmatch(sample) if sample else None
            if found is not None:
                frame = self._frames.frame(found["rest"]) if found["rest"] else UNKNOWN
                self._add(sample, UNKNOWN if frame == UNKNOWN else self._builder.child(UNKNOWN, frame))
            elif line:
                self._cannot_read(line)

    def _add(self, line: bytes, stack: int) -> None:
        """Add a sample. The text before and after its time is cached, because it usually repeats."""
        colon = line.find(b": ")
        space = line.rfind(b" ", 0, colon)
        when = line[space + 1 : colon]
        thread, what = self._before_time.get(line[:space]), self._after_time.get(line[colon:])
        if thread is None or what is None or not when[:1].isdigit():
            found = _HEAD.fullmatch(line)
            if found is None and stack != UNKNOWN and line[:1].isalpha() and b":" not in line:
                found = _HEAD.fullmatch(line.strip() + _NO_ID)  # the command's name alone
            if found is None:
                self._cannot_read(line)
                return
            thread, what = self._thread(found), self._event(found)
            alone = (found.start("seconds"), found.end("fraction")) == (space + 1, colon)
            when = line[found.start("seconds") : found.end("fraction")] if found["seconds"] else b""
            if when and alone and line[0] not in _SKIPPED:
                self._before_time[line[:space]], self._after_time[line[colon:]] = thread, what
        self._samples.when.append(when)
        self._samples.thread.append(thread)
        self._samples.what.append(what)
        self._samples.stack.append(stack)

    def _thread(self, found: re.Match[bytes]) -> int:
        thread = (found["comm"], found["pid"], found["tid"] or found["pid"])
        return self._threads.setdefault(thread, len(self._threads))

    def _event(self, found: re.Match[bytes]) -> int:
        period = found["period"]
        event = self._events.setdefault((found["event"] or b"", period is not None), len(self._events))
        what = (event, 1 if period is None else int(period))
        return self._what.setdefault(what, len(self._what))

    def _cannot_read(self, line: bytes) -> None:
        self._unread += 1
        self._strange = self._strange or line

    def profiles(self, where: str) -> tuple[StackProfile, ...]:
        """The profiles that were read.

        Raises:
            FormatError: there is no sample.
        """
        unread = self._unread + self._frames.unread
        strange = (self._strange or self._frames.strange)[:_QUOTED].decode(errors="replace").strip()
        if not self._events:
            got = f"got {strange!r}" if strange else "it is empty"
            raise FormatError(f"{where}: it has no samples: {got}; expected the output of `perf script`")
        said = f"{where}: {unread} lines are neither samples nor frames of perf script and are left out: {strange!r}"
        threads = tuple(
            Thread(pid=int(pid), tid=int(tid), name=comm.decode(errors="replace")) for comm, pid, tid in self._threads
        )
        tables = self._tables()
        times = [table.at_ns for table in tables]
        begin = min((int(at_ns[at_ns != UNKNOWN].min()) for at_ns in times if (at_ns != UNKNOWN).any()), default=0)
        frames, stacks = self._builder.frames, self._builder.stacks
        made = []
        for (event, periods), table in zip(self._events, tables, strict=True):
            table.at_ns[table.at_ns != UNKNOWN] -= begin
            full = event.decode(errors="replace")
            name = _MODIFIERS.sub("", full)
            made.append(
                StackProfile(
                    event=name,
                    unit=unit_of(name) if periods else "samples",
                    name=full if full != name else "",
                    frames=frames,
                    stacks=stacks,
                    samples=table,
                    threads=threads,
                    unread=unread,
                    diagnostics=(Diagnostic(code=UNREADABLE, text=said),) if unread else (),
                )
            )
        return tuple(made)

    def _tables(self) -> list[SampleTable]:
        """The samples of each event."""
        when = self._samples.when
        thread, what, stack = (
            np.array(column, np.int64) for column in (self._samples.thread, self._samples.what, self._samples.stack)
        )
        event = np.array([event for event, _ in self._what], np.int64)[what]
        weight = np.array([weight for _, weight in self._what], np.float64)[what]
        tables = []
        for number in range(len(self._events)):
            mine = np.flatnonzero(event == number)
            tables.append(
                SampleTable(
                    at_ns=_times(when if len(mine) == len(when) else [when[i] for i in mine.tolist()]),
                    thread=thread[mine],
                    stack=stack[mine],
                    weight=weight[mine],
                    count=np.ones(len(mine), np.int64),
                    flags=np.zeros(len(mine), np.int64),
                    op_thread=np.zeros(len(mine), np.int64),
                )
            )
        return tables


def _times(when: list[bytes]) -> I64:
    """Nanoseconds of texts like "1000.123456"; -1 for any other text."""
    digits = len(when[0]) - when[0].find(b".") - 1 if when else 0
    if 0 < digits <= _NS_DIGITS:
        numbers = _numbers(np.frombuffer(b"\n" * _NS_DIGITS + b"\n".join(when) + b"\n", np.uint8), len(when), digits)
        if numbers is not None:
            numbers *= _SCALES[digits]
            return numbers
    return np.array([_time(one) for one in when], np.int64)


def _numbers(text: npt.NDArray[np.uint8], count: int, digits: int) -> I64 | None:
    """Numbers without their points: ``count`` lines after ``_NS_DIGITS`` others, with as many digits after the point.

    None if a line is not such a number, or has more than ``_NS_DIGITS`` digits before the point.
    """
    points, ends = np.flatnonzero(text == _POINT), np.flatnonzero(text == _LINE_FEED)[_NS_DIGITS:]
    if not len(points) == len(ends) == count or not (ends - points == digits + 1).all():
        return None
    before = points - np.append(_NS_DIGITS, ends[:-1] + 1)
    plain = np.count_nonzero((text >= _ZERO) & (text <= _NINE)) == len(text) - _NS_DIGITS - 2 * count
    if not plain or before.min() < 1 or before.max() > _NS_DIGITS:
        return None
    numbers: I64 = np.zeros(count, np.int64)
    for place in range(int(before.max()), 0, -1):
        numbers = numbers * 10 + np.where(place <= before, text[points - place] - _ZERO, 0)
    for place in range(1, digits + 1):
        numbers = numbers * 10 + (text[points + place] - _ZERO)
    return numbers


def _time(when: bytes) -> int:
    found = _TIME.fullmatch(when)
    return int(found[1] + found[2]) * _SCALES[len(found[2])] if found else UNKNOWN


def unit_of(event: str) -> str:
    """The unit of the periods of one of perf's events."""
    return "ns" if event in _TIMES else event or "samples"
