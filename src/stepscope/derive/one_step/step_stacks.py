"""Stack samples that fell into one step: which lines of the user's code it spent its time in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.python import stack_samples
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from stepscope.derive.one_step.step_table import StepTable
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.model.report.components import ComponentName
    from stepscope.tables.records import I64


class SampledLine(Struct, frozen=True, kw_only=True):
    """Samples of one step at one line of the user's code."""

    spot: Spot
    """The user's innermost line, or the innermost line of all where no frame is the user's."""
    called: str
    """Innermost function of Python below it, the most frequent; "" for a C function, which has no frame."""
    component: ComponentName | str
    """Component of the step in which most of its time lies."""
    samples: int
    ns: int
    """Time that the samples stand for."""


class StepStacks(Struct, frozen=True, kw_only=True):
    """The samples of one step's thread within the step."""

    count: int
    ns: int
    """Time that they stand for."""
    cpu_ns: int | None
    """Part of it that the thread was on a CPU; None: the samples do not tell."""
    lines: tuple[SampledLine, ...]
    """By the user's line, longest time first."""


def build(table: StepTable, row: int) -> StepStacks:
    """The samples within the step of a row."""
    steps = table.steps
    start, end = int(steps.starts[table.index[row]]), int(steps.ends[table.index[row]])
    records = steps.worker.records
    mine = (records.kind == Kind.SAMPLE) & (records.thread == steps.thread)
    inside = records.take(mine & (records.start_ns >= start) & (records.start_ns < end))
    inside = replace(inside, dur_ns=_within(inside.start_ns, inside.dur_ns, start))
    taken = [sample for _, sample in stack_samples.by_thread(steps.worker, [steps.thread], inside)]
    parts = table.anatomy.component_at(np.array([sample.at for sample in taken], np.int64))
    groups: dict[tuple[str, str, int], list[Sample]] = {}
    for sample, part in zip(taken, parts, strict=True):
        spot = sample.culprit or sample.leaf
        groups.setdefault((spot.file, spot.function, spot.line), []).append(replace(sample, component=part))
    on_cpu = (inside.flags & Flag.CPU) != 0
    by_clock = bool(((records.flags[mine] & Flag.CPU) != 0).any())
    return StepStacks(
        count=len(taken),
        ns=stack_samples.weight_of(taken),
        cpu_ns=int(inside.dur_ns[on_cpu].sum()) if by_clock else None,
        lines=tuple(sorted((_line(group) for group in groups.values()), key=lambda line: -line.ns)),
    )


def _within(at: I64, dur: I64, start: int) -> I64:
    """The part of each sample's time since ``start``: with those before it, no more than has passed. A sample of CPU
    time and one of waiting each stand for the time since the one of their kind before, which may lie before the step.
    """
    found, passed = np.zeros(len(at), np.int64), 0
    for i in np.argsort(at, kind="stable").tolist():
        found[i] = min(int(dur[i]), int(at[i]) - start - passed)
        passed += int(found[i])
    return found


def _called(sample: Sample) -> str:
    """The innermost function of Python below the user's line, ours around other calls left out."""
    below = sample.below_user() if sample.culprit is not None else ()
    return next((frame.function for frame in reversed(below) if not stack_samples.is_agent(frame.file)), "")


def _line(group: list[Sample]) -> SampledLine:
    first = group[0]
    called = Counter(name for sample in group if (name := _called(sample)))
    parts: Counter[str] = Counter()
    for sample in group:
        parts[sample.component] += sample.weight_ns
    return SampledLine(
        spot=first.culprit or first.leaf,
        called=called.most_common(1)[0][0] if called else "",
        component=parts.most_common(1)[0][0],
        samples=len(group),
        ns=stack_samples.weight_of(group),
    )
