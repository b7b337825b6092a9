"""Lines and stacks of a session, weighted so that those of many sessions may be added up."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.stacks import session_stacks
from stepscope.fleet.places import is_library, shortened
from stepscope.fleet.rows import MOST_TEXT, Row
from stepscope.readers.stacks.labels import label_of
from stepscope.tables.stacks import UNKNOWN, Frame, FrameKind, StackFlag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.model.report.report import LineHeat
    from stepscope.model.session.session import Session
    from stepscope.tables.records import F64, I64
    from stepscope.tables.stacks import StackProfile

CPU = "cpu"
"""Event of native stacks: samples in windows, which stand for all CPU time of the job."""
EVENTS = (CPU, session_stacks.PYTHON, session_stacks.OFF_CPU)
"""Events whose weight is time of the whole run, or can be made so."""
MAX_LINES = 200
MAX_STACKS = 400
LEFT_OUT = "[left out]"
"""Frame in place of those at the root of a stack that is too long for a row."""
REST = "[rest]"
"""Stack of those that are not among the heaviest, so that sums are whole."""


class _Line(Struct):
    """Sums of one line."""

    time_ns: int = 0
    self_ns: int = 0
    cpu_ns: int | None = None
    number: int = 0
    library: bool = False


def rows(session: Session, heat: Iterable[LineHeat], cpu_ns: int | None) -> Iterator[Row]:
    """Lines, then stacks. ``cpu_ns``: CPU time of the job, which its native stacks stand for.

    Where none were taken, lines have the CPU time that the main threads' clocks sampled.
    """
    cwd = session.manifest.cwd
    whole = {
        profile.event: _Whole(profile, cpu_ns if profile.event == CPU else None)
        for profile in session_stacks.profiles(session)
        if profile.event in EVENTS and len(profile.samples) and (profile.event != CPU or cpu_ns)
    }
    cpu = whole.get(CPU) or (_on_clock(whole[session_stacks.PYTHON]) if session_stacks.PYTHON in whole else None)
    if cpu is not None:
        yield Row(kind="amount", name="sampled_cpu_ns", number=int(cpu.ns.sum()))
    yield from _lines(
        whole.get(session_stacks.PYTHON), cpu, {(shortened(one.file, cwd), one.line): one.ratio for one in heat}, cwd
    )
    for event, profile in whole.items():
        yield from profile.stack_rows(event, cwd)


class _Whole:
    """A profile with whole nanoseconds for its samples: of the run, not of the windows in which it was sampled."""

    def __init__(self, profile: StackProfile, total_ns: int | None) -> None:
        """``total_ns``: what all samples stand for; None: their own weights, which are of the whole run."""
        self.profile = profile
        samples = profile.samples
        weight = samples.weight if samples.weight.any() else np.ones(len(samples))
        self.ns = rounded(weight, float(weight.sum()) if total_ns is None else float(total_ns))
        self.stack = samples.stack
        self.count = np.maximum(samples.count, 1)

    def stack_rows(self, event: str, cwd: str) -> Iterator[Row]:
        """The heaviest stacks, and one row for all others."""
        texts = _texts(self.profile, cwd)
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for stack, ns, count in zip(self.stack.tolist(), self.ns.tolist(), self.count.tolist(), strict=True):
            one = sums[texts[stack] if stack != UNKNOWN else REST]
            one[0] += ns
            one[1] += count
        ranked = sorted(sums.items(), key=lambda pair: (pair[0] == REST, -pair[1][0], pair[0]))
        kept, left = ranked[: MAX_STACKS - 1], ranked[MAX_STACKS - 1 :]
        for text, (ns, count) in kept:
            yield Row(kind="stack", name=event, text=text, time_ns=ns, number=count)
        if left:
            ns, count = (sum(one[column] for _, one in left) for column in (0, 1))
            yield Row(kind="stack", name=event, text=REST, time_ns=ns, number=count)

    def by_line(self) -> dict[Frame, tuple[int, int, int]]:
        """For each line of Python: time on any stack with it, time as its innermost line, and samples."""
        frames = self.profile.frames
        found: dict[Frame, list[int]] = defaultdict(lambda: [0, 0, 0])
        stacks, at = np.unique(self.stack, return_inverse=True)
        ns = _sums(at, self.ns)
        count = _sums(at, self.count)
        for stack, weight, samples in zip(stacks.tolist(), ns.tolist(), count.tolist(), strict=True):
            lines = [frames[i] for i in self.profile.frame_ids_of(stack) if frames[i].line and frames[i].file]
            for frame in set(lines):
                sums = found[frame]
                sums[0] += weight
                sums[1] += weight if frame == lines[-1] else 0
                sums[2] += samples
        return {frame: (total, own, samples) for frame, (total, own, samples) in found.items()}


def _on_clock(python: _Whole) -> _Whole | None:
    """The samples of the main threads' CPU clock, whose weights are CPU time. None: there is no such clock."""
    profile = python.profile
    kept = (profile.samples.flags & StackFlag.CPU_CLOCK) != 0
    return _Whole(replace(profile, samples=profile.samples.take(kept)), None) if kept.any() else None


def rounded(weights: F64, total: float) -> I64:
    """Whole numbers in proportion to weights, whose sum is the rounded ``total``. Both int64[sample]."""
    ends = np.round(np.cumsum(weights) * (total / max(float(weights.sum()), 1e-300))).astype(np.int64)
    return np.diff(ends, prepend=np.int64(0))


def _sums(group: I64, values: I64) -> I64:
    """Sums by group, exact as long as they are below 2^63. int64[group]."""
    found = np.zeros(int(group.max()) + 1, np.int64)
    np.add.at(found, group.reshape(-1), values)
    return found


def _texts(profile: StackProfile, cwd: str) -> list[str]:
    """Each stack in one line, root to leaf. Frames have no line number: the same function is one frame everywhere."""
    labels = [label_of(_told(one, cwd)) for one in profile.frames]
    made: list[str] = []
    for parent, frame in zip(profile.stacks.parent.tolist(), profile.stacks.frame.tolist(), strict=True):
        made.append(labels[frame] if parent == UNKNOWN else f"{made[parent]};{labels[frame]}")
    return [fitting(text) for text in made]


def fitting(stack: str) -> str:
    """A stack that a row holds: of one that is longer as many whole frames at its leaf as fit."""
    if len(stack) <= MOST_TEXT:
        return stack
    _, _, rest = stack[-(MOST_TEXT - len(LEFT_OUT) - 1) :].partition(";")
    return f"{LEFT_OUT};{rest or stack.rpartition(';')[2]}"


def _told(frame: Frame, cwd: str) -> Frame:
    """A frame without its line, and a wait without the file or the host that was waited for."""
    function = frame.function
    if frame.kind is FrameKind.KERNEL and function.startswith("["):
        function = function.partition("]")[0] + "]"
    return frame._replace(function=function, file=shortened(frame.file, cwd), line=0)


def _lines(python: _Whole | None, cpu: _Whole | None, heat: dict[tuple[str, int], float], cwd: str) -> Iterator[Row]:
    found: dict[tuple[str, int, str], _Line] = defaultdict(_Line)
    for whole in filter(None, (python, cpu)):
        for frame, (total, own, samples) in whole.by_line().items():
            one = found[shortened(frame.file, cwd), frame.line, frame.function]
            one.library = is_library(frame.file)
            if whole is cpu:
                one.cpu_ns = (one.cpu_ns or 0) + total
            else:
                one.time_ns, one.self_ns = one.time_ns + total, one.self_ns + own
                one.number += samples
    ranked = sorted(found.items(), key=lambda pair: (-_rank(pair[1]), pair[0]))
    for (file, line, function), one in ranked[:MAX_LINES]:
        yield Row(
            kind="line",
            name="",
            detail="library" if one.library else "own",
            file=file,
            line=line,
            function=function,
            time_ns=one.time_ns,
            self_ns=one.self_ns,
            cpu_ns=one.cpu_ns,
            number=one.number,
            ratio=None if one.library else heat.get((file, line)),
        )


def _rank(one: _Line) -> int:
    """By which lines are kept: the user's with all that they call, those of libraries for themselves."""
    return max(one.self_ns if one.library else one.time_ns, 0 if one.library else one.cpu_ns or 0)
