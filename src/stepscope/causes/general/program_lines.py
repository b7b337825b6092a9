"""Where a program spends its run if no steps were seen in it: functions of the user's, with what their lines do.

A stack counts for the user's innermost function that stands in a loop and that no framework calls back: of a loop that
calls a model it is the loop's line, not the layer's. Without a loop it is the innermost one.

Serves time_in_program.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import phase_lines
from stepscope.derive.python import element_loops, line_work, stack_samples
from stepscope.derive.python.framework_files import is_framework

if TYPE_CHECKING:
    from stepscope.derive.python.line_work import Work
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

PHASE = "building"
"""The part of the ledger that holds the program, if it has no steps."""
LEAST = 0.05
"""Share of the run below which a function is left out."""
MOST = 3
LINE = 0.5
"""Part of a function's time from which one of its lines is the place, with what this line does."""


class ProgramPart(Struct, frozen=True, kw_only=True):
    """A function of the user's."""

    places: tuple[Place, ...]
    """Its lines with a tenth of its time and more, the costliest first."""
    ratio: float
    """Share of the job's wall time."""
    ns: float
    line_ratio: float
    """Part of the function's time in the first of its lines."""
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
    groups: defaultdict[tuple[str, str], list[tuple[Sample, Spot]]] = defaultdict(list)
    loops: dict[Spot, bool] = {}
    for sample in samples:
        spot = _spot(view, sample, loops)
        if spot is not None:
            groups[spot.file, stack_samples.plain(spot.function)].append((sample, spot))
    found = []
    for group in groups.values():
        share = stack_samples.weight_of(sample for sample, _ in group) / weight
        ratio = share * part.ns / whole.wall_ns
        if ratio >= LEAST:
            found.append(_part(view, group, ratio, share * part.ns))
    return tuple(sorted(found, key=lambda one: -one.ratio)[:MOST])


def _spot(view: SessionView, sample: Sample, loops: dict[Spot, bool]) -> Spot | None:
    """The frame that a stack counts for. ``loops``: whether frames stand in a loop, of those that were asked."""
    first = next((i for i, frame in enumerate(sample.frames) if is_framework(frame.file)), len(sample.frames))
    own = [frame for frame in sample.frames[:first] if frame.own]
    for frame in reversed(own):
        if frame not in loops:
            source = view.source_of(frame.file)
            loops[frame] = source is not None and bool(element_loops.every(source, frame.line))
        if loops[frame]:
            return frame
    return own[-1] if own else None


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
            if spent >= line_work.LEAST * whole
        ),
        ratio=ratio,
        ns=ns,
        line_ratio=most / whole,
        work=line_work.build(mine, view.source_of),
    )
