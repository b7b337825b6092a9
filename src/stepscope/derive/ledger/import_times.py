"""The time of a process's imports, by the line of the user's code that asked for each.

Three records say it, each where the one before is silent: the notes of the import hook, until stacks are sampled; then
stack samples; and the hook's own times of frameworks, during which the interpreter's lock may keep the sampler away.

Between two notes, one statement had the time: the innermost that was in progress all the while. What a user's own
module does while it is imported is the time of the statement that imports it, without the imports that it asks for in
turn. A gap that may hold other code than imports, by the source, goes to the statement around it, or to none.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.ledger import life
from stepscope.derive.numeric import intervals
from stepscope.derive.python import import_source, stack_samples
from stepscope.model.log.events import Framework
from stepscope.model.log.program import ImportAsked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.model.event import Frame
    from stepscope.model.session.session import Worker

    SourceOf = Callable[[str], str | None]

LONGEST_NS = 5_000_000_000
"""Longest time that one sample stands for: a thread that holds the interpreter's lock is not sampled meanwhile."""
MOST = 0.5
"""Part of the frameworks' time in one statement from which it has the rest, too."""
_MODULE = "<module>"


class ImportTime(Struct, frozen=True, kw_only=True):
    """One statement of the user's code that imports."""

    file: str
    function: str
    line: int
    """Line 0, in no file: frameworks whose import no line is known to have asked for."""
    module: str
    """What it imports: "pandas", "utils"."""
    own: bool
    """Whether that is a module of the user's, whose body has the time."""
    spans: Intervals

    @property
    def ns(self) -> int:
        """The time, without that of other statements within."""
        return intervals.total(self.spans)


class _Asked(Struct, frozen=True):
    """Who asked, and for what."""

    file: str
    function: str
    line: int
    module: str
    own: bool


def build(worker: Worker, source_of: SourceOf) -> tuple[ImportTime, ...]:
    """The imports of one process, the longest first; disjoint in time."""
    found: dict[_Asked, list[tuple[int, int]]] = defaultdict(list)
    notes = sorted(worker.all(ImportAsked), key=lambda note: note.at)
    for note, following in itertools.pairwise(notes):
        if (asked := _between(note, following, source_of)) is not None:
            found[asked].append((note.at, following.at))
    until = notes[-1].at if notes else 0
    for asked, begin, end in _sampled(worker):
        if end > until:
            found[asked].append((max(begin, until), end))
    times = list(_merged(_time(asked, _spans(pairs), source_of) for asked, pairs in found.items()))
    return tuple(sorted(_with_frameworks(worker, times), key=lambda time: -time.ns))


class Waited(Struct, frozen=True, kw_only=True):
    """What the time until the sampling began was, from the first import of the program's own lines on."""

    ns: int
    blocked_ns: int
    """Neither on a CPU nor ready for one: it waited for files, for the most part."""
    read_bytes: int
    """From disks and network file systems, since the process began; -1 unknown."""
    network: tuple[tuple[str, str], ...]
    """Type and mount point of network file systems that hold Python's modules or the program."""


def waited(worker: Worker) -> Waited | None:
    """None where nothing was noted."""
    notes = sorted(worker.all(ImportAsked), key=lambda note: note.at)
    if not notes or notes[-1].name or not notes[-1].cpu:
        return None
    first, last = notes[0], notes[-1]
    ns = last.at - first.at
    blocked = max(0, ns - (last.cpu - first.cpu) - last.delay)
    return Waited(ns=ns, blocked_ns=blocked, read_bytes=last.read, network=last.network)


def frameworks(worker: Worker) -> Intervals:
    """When frameworks were imported."""
    return _spans([(event.at - event.dur, event.at) for event in worker.all(Framework) if event.dur])


def _spans(pairs: Sequence[tuple[int, int]]) -> Intervals:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return intervals.merge(table[:, 0], table[:, 1])


def _time(asked: _Asked, spans: Intervals, source_of: SourceOf) -> ImportTime:
    module = asked.module or ", ".join(import_source.statement_imports(source_of(asked.file), asked.line))
    return ImportTime(
        file=asked.file, function=asked.function, line=asked.line, module=module, own=asked.own, spans=spans
    )


def _with_frameworks(worker: Worker, times: Sequence[ImportTime]) -> list[ImportTime]:
    """With what the hook knows of frameworks and no sample shows: it is that of the statement that has most of them."""
    rest = whole = frameworks(worker)
    for time in times:
        rest = intervals.without(rest, time.spans)
    if not intervals.total(rest):
        return list(times)
    inside = [intervals.total(intervals.clip(time.spans, whole)) for time in times]
    if max(inside, default=0) >= MOST * intervals.total(whole):
        top = inside.index(max(inside))
        joined = replace(times[top], spans=intervals.union(times[top].spans, rest))
        return [*times[:top], joined, *times[top + 1 :]]
    names = ", ".join(dict.fromkeys(event.name for event in worker.all(Framework) if event.dur))
    return [*times, ImportTime(file="", function="", line=0, module=names, own=False, spans=rest)]


def _merged(times: Iterable[ImportTime]) -> Iterator[ImportTime]:
    """One for each line and module: a line may ask for a package and then for its parts."""
    lines: dict[tuple[str, int, str], ImportTime] = {}
    for time in times:
        key = time.file, time.line, time.module.partition(".")[0]
        before = lines.get(key)
        spans = time.spans if before is None else intervals.union(before.spans, time.spans)
        lines[key] = replace(time, module=key[2], spans=spans)
    yield from lines.values()


def _between(note: ImportAsked, following: ImportAsked, source_of: SourceOf) -> _Asked | None:
    """The statement that was in progress from one note to the next; None: other code may have run."""
    lines, later = note.stack, following.stack
    level = 0
    while level < min(len(lines), len(later)) and lines[level] == later[level]:
        level += 1
    level = min(level, len(lines) - 1, len(later) - 1)
    while level >= 0 and not _only_imports(lines[level], later[level], source_of):
        level -= 1
    if level < 0 or _has_left(lines[level], following, level, source_of):
        return None
    file, function, line = lines[level]
    if level + 1 < len(lines):
        if lines[level + 1][1] != _MODULE:  # the line calls a function, which imports and may do more
            return None
        return _Asked(file, function, line, module_of(lines[level + 1][0]), own=True)
    return _Asked(file, function, line, note.name.partition(".")[0], own=bool(note.file))


def _has_left(line: Frame, following: ImportAsked, level: int, source_of: SourceOf) -> bool:
    """Whether a later statement had begun by the next note that is no import, and may have taken the time."""
    later = following.stack[level:]
    if later[0][2] == line[2]:
        return False
    if any(function != _MODULE for _, function, _ in later[1:]):
        return True
    return not following.name and not import_source.statement_imports(source_of(later[0][0]), later[0][2])


def _only_imports(one: Frame, other: Frame, source_of: SourceOf) -> bool:
    """Whether nothing but imports can have run from one line of a module to another."""
    if one[:2] != other[:2]:
        return False
    return one[2] == other[2] or import_source.only_imports(source_of(one[0]), one[2], other[2])


def _sampled(worker: Worker) -> Iterator[tuple[_Asked, int, int]]:
    """Statements that samples of the main thread show, each from the sample before."""
    main = life.main_thread(worker)
    if main is None:
        return
    before = None
    for sample in sorted(stack_samples.thread_samples(worker, [main], gaps=True), key=lambda one: one.at):
        if (asked := _of_sample(sample)) is not None:
            first = sample.at - sample.weight_ns if before is None else before
            yield asked, max(first, sample.at - LONGEST_NS), sample.at
        before = sample.at


def _of_sample(sample: Sample) -> _Asked | None:
    """The innermost statement of the user's that imports at a sample; None: none does."""
    frames = sample.frames
    leaf = max((i for i, frame in enumerate(frames) if frame.own), default=-1)
    if leaf < 0:
        return None
    if _imports(frames[leaf + 1 : leaf + 2]):
        below = (frame for frame in frames[leaf + 1 :] if not stack_samples.is_agent(frame.file))
        inside = next((frame for frame in below if not _imports((frame,))), None)
        return _statement(frames[leaf], module_of(inside.file) if inside is not None else "", own=False)
    last = max((i for i in range(leaf) if _imports(frames[i : i + 1])), default=-1)
    asker = max((i for i in range(last) if frames[i].own), default=-1)
    if asker < 0 or not _imports(frames[asker + 1 : asker + 2]) or not frames[last + 1].own:
        return None
    return _statement(frames[asker], module_of(frames[last + 1].file), own=True)


def _statement(spot: Spot, module: str, *, own: bool) -> _Asked:
    return _Asked(spot.file, spot.function, spot.line, module, own)


def _imports(frames: Sequence[Spot]) -> bool:
    return any(frame.file.startswith(stack_samples.IMPORTING) for frame in frames)


def module_of(file: str) -> str:
    """The package of an installed file, or the module of another."""
    path = file.replace("\\", "/")
    installed = path.rpartition("-packages/")[2] if "-packages/" in path else ""
    if installed:
        return installed.partition("/")[0].partition(".")[0]
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return folder.rpartition("/")[2] if stem == "__init__" else stem
