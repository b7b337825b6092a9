"""Where a program spends its run if no steps were seen in it: functions of the user's, with what their lines do.

A stack counts for the user's innermost function that stands in a loop and that no framework calls back: of a loop that
calls a model it is the loop's line, not the layer's. Where this is the only loop of the stack, its turns are likely the
program's requests: then functions below it that take a good part of their caller's time count instead. Without a loop
it is the innermost one. A main thread that mostly waits (a service that started its threads) is not the one to look at:
then it is the others, while they do not wait; where all wait, their waits.

Serves time_in_program.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.general import phase_lines, waits
from stepscope.derive.python import element_loops, known_python, line_work, stack_samples, wait_reasons
from stepscope.derive.python.framework_files import is_framework
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.derive.ledger.part import Ledger, LedgerPart
    from stepscope.derive.python.line_work import Work
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

PHASE = "building"
"""The part of the ledger that holds the program, if it has no steps."""
LEAST = 0.05
"""Share of the run below which a function is left out."""
MOST = 3
BUSY = 0.5
"""Part of the main thread's time below which it mostly waits."""
LONGEST_NS = 1_000_000_000
"""Longest time that one sample of another thread stands for."""
THREADS = "other threads"
_OTHERS: dict[str, str] = {
    "lock": THREADS,
    "process": "other processes",
    "pipe": "other processes",
    "client": "requests",
    "events": "requests",
}
SERVES = frozenset({"serve_forever", "run_forever", "_run_once", "accept"})
"""Functions in which servers wait for work."""
MAIN = 1 / 3
"""Part of a function's time from which one that it calls is looked into."""
LINE = 0.5
"""Part of a function's time from which one of its lines is the place, with what this line does."""


class ProgramPart(Struct, frozen=True, kw_only=True):
    """A function of the user's."""

    places: tuple[Place, ...]
    """The costliest of its lines, and others with a tenth of its time and more."""
    ratio: float
    """Share of the job's wall time."""
    ns: float
    line_ratio: float
    """Part of the function's time in the first of its lines."""
    waits_for: str
    """What most of it waits for, if that is work of others, which may be none: "other threads", "requests"; else ""."""
    plain: bool
    """Whether most of it is known to be Python that calls nothing of a framework's, or the job has none."""
    work: Work | None
    """What the first line does, or all of them if none has half of the time; None: too few samples."""


def build(view: SessionView) -> tuple[ProgramPart, ...]:
    """The functions with most of the time, the costliest first; none if steps were seen."""
    whole = view.get(phase_lines.job) if view.steps is None else None
    part = next((one for one in whole.parts if one.phase == PHASE), None) if whole is not None else None
    if whole is None or part is None:
        return ()
    samples = phase_lines.within(part, tuple(stack_samples.thread_samples(whole.worker, whole.threads, gaps=True)))
    weight = max(1, stack_samples.weight_of(samples))
    waited = stack_samples.weight_of(one for one in samples if _waits(view, one))
    if weight - waited < BUSY * weight:
        others = _others(whole, part)
        for some in ([one for one in others if not _waits(view, one)], others):
            if found := _parts(view, some, 1.0, whole.wall_ns):
                return found
    return _parts(view, samples, part.ns / weight, whole.wall_ns)


def _waits(view: SessionView, sample: Sample) -> bool:
    """Whether a look says that the thread waited or, without one, its frames do."""
    return wait_reasons.reason(sample, view.source_of) in waits.NAMED or _in_lock(view, sample)


def _in_lock(view: SessionView, sample: Sample) -> bool:
    reason = wait_reasons.reason(sample, view.source_of)
    return reason == "lock" or (reason == "unknown" and wait_reasons.takes_lock(sample, view.source_of))


def _is_plain(view: SessionView, samples: list[Sample]) -> bool:
    """Ops of PyTorch, JAX and NumPy in C have no frame: the line of ``x @ w`` looks like Python."""
    computes = set(view.frameworks)
    if not computes:
        return True
    known = known_python.share(samples, view.source_of, arrays=computes != {"numpy"})
    return known >= known_python.MIN_RATIO


def _waits_for(view: SessionView, samples: list[Sample]) -> str:
    weights: Counter[str] = Counter()
    for one in samples:
        reason = wait_reasons.reason(one, view.source_of)
        serves = any(frame.function.rpartition(".")[2] in SERVES for frame in one.below_user())
        weights[_OTHERS.get(reason, "requests" if serves else THREADS if _in_lock(view, one) else "")] += one.weight_ns
    (found, weight), *_ = weights.most_common(1)
    return found if 2 * weight > weights.total() else ""


def _others(whole: Ledger, part: LedgerPart) -> list[Sample]:
    """Samples of the process's other threads, each for the time since the one before it."""
    records = whole.worker.with_gaps()
    threads: list[int] = np.unique(records.thread[records.kind == Kind.SAMPLE]).tolist()
    found = []
    for thread in threads:
        if thread not in whole.threads:
            taken = phase_lines.within(part, tuple(stack_samples.thread_samples(whole.worker, [thread], gaps=True)))
            taken.sort(key=lambda one: one.at)
            found += [
                replace(one, weight_ns=min(one.at - before.at, LONGEST_NS)) for before, one in itertools.pairwise(taken)
            ]
    return found


def _parts(view: SessionView, samples: Iterable[Sample], scale: float, wall_ns: int) -> tuple[ProgramPart, ...]:
    """The functions by some samples. ``scale``: time for which a nanosecond of their weight stands."""
    groups: defaultdict[tuple[str, str], list[tuple[Sample, Spot]]] = defaultdict(list)
    stacks = [(sample, own) for sample in samples if (own := _own(sample))]
    weights = _weights(stacks)
    loops: dict[Spot, bool] = {}
    for sample, own in stacks:
        spot = own[_index(view, own, loops, weights)]
        groups[spot.file, stack_samples.plain(spot.function)].append((sample, spot))
    found = []
    for group in groups.values():
        ns = scale * stack_samples.weight_of(sample for sample, _ in group)
        if ns >= LEAST * wall_ns:
            found.append(_part(view, group, min(1.0, ns / wall_ns), ns))
    return tuple(sorted(found, key=lambda one: -one.ratio)[:MOST])


def _own(sample: Sample) -> tuple[Spot, ...]:
    """The user's frames down to the first of a framework."""
    first = next((i for i, frame in enumerate(sample.frames) if is_framework(frame.file)), len(sample.frames))
    return tuple(frame for frame in sample.frames[:first] if frame.own)


def _path(own: tuple[Spot, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((frame.file, stack_samples.plain(frame.function)) for frame in own)


def _weights(stacks: list[tuple[Sample, tuple[Spot, ...]]]) -> Counter[tuple[tuple[str, str], ...]]:
    """Time below each path of functions."""
    weights: Counter[tuple[tuple[str, str], ...]] = Counter()
    for sample, own in stacks:
        path = _path(own)
        for end in range(1, len(path) + 1):
            weights[path[:end]] += sample.weight_ns
    return weights


def _index(
    view: SessionView,
    own: tuple[Spot, ...],
    loops: dict[Spot, bool],
    weights: Counter[tuple[tuple[str, str], ...]],
) -> int:
    """Which frame a stack counts for. ``loops``: whether frames stand in a loop, of those that were asked."""
    looping = [i for i, frame in enumerate(own) if _in_loop(view, frame, loops)]
    if not looping:
        return len(own) - 1
    index, path = looping[-1], _path(own)
    while (
        len(looping) == 1 and index + 1 < len(own) and weights[path[: index + 2]] >= MAIN * weights[path[: index + 1]]
    ):
        index += 1
    return index


def _in_loop(view: SessionView, frame: Spot, loops: dict[Spot, bool]) -> bool:
    if frame not in loops:
        source = view.source_of(frame.file)
        loops[frame] = source is not None and bool(element_loops.every(source, frame.line))
    return loops[frame]


def _part(view: SessionView, group: list[tuple[Sample, Spot]], ratio: float, ns: float) -> ProgramPart:
    lines: Counter[int] = Counter()
    for sample, spot in group:
        lines[spot.line] += sample.weight_ns
    whole = max(1, lines.total())
    (top, most), *_ = lines.most_common(1)
    clear = most >= LINE * whole
    spot = group[0][1]
    mine = [sample for sample, at in group if at.line == top or not clear]
    return ProgramPart(
        places=tuple(
            view.place(spot.file, line, function=stack_samples.plain(spot.function))
            for line, spent in lines.most_common(MOST)
            if line == top or spent >= line_work.LEAST * whole
        ),
        ratio=ratio,
        ns=ns,
        line_ratio=most / whole,
        waits_for=_waits_for(view, mine),
        plain=_is_plain(view, mine),
        work=line_work.build(mine, view.source_of),
    )
