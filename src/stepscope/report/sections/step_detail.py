"""The use case ``report --step``: one step of a session compared with its median step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive import steps_view
from stepscope.derive.one_step import happenings, step_machine, step_numbers, step_ops, step_stacks, step_table
from stepscope.model.report.components import COMPONENTS
from stepscope.model.report.slow_steps import SlowStep, StepPart, StepSaid
from stepscope.model.report.step_detail import StepDetail, StepLine, StepOp, StepReading
from stepscope.report import step_text
from stepscope.report.sections import step_headline
from stepscope.report.sections.step_words import called, happening
from stepscope.tables.errors import UsageError
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from stepscope.derive.one_step.step_machine import Reading
    from stepscope.derive.one_step.step_table import StepTable
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView

SLOWEST = "slowest"
MOST_SLOWEST = 50
"""Most slow steps that one command shows."""
MOST_REPORTED = 12
"""Most slow steps in a report."""
MAX_HAPPENED, MAX_LINES, MAX_OPS = 8, 6, 6
MIN_EXTRA_RATIO = 0.02
"""Of the step's time beyond the median: a record that lasted less beyond its usual time is not listed."""
COMPILED_WAIT_RATIO = 0.02
"""Of the median step: less input wait inside the compiled step is no remark."""
RAISED_FACTOR = 2.0
"""A counter is raised at so many times its mean over the steady steps, ..."""
RAISED_FROM = {"cores": 0.2, "/s": 100.0, "MB/s": 5.0, "disks": 0.1}
"""... and this much above it."""
NO_STEPS = "the session has no steady steps, so there is no step to show"


def of_session(view: SessionView, which: str) -> tuple[StepDetail, ...]:
    """The steps that ``which`` names: a number, ``slowest`` or ``slowest:COUNT``.

    Raises:
        UsageError: it names none, the session has no steps, or no step that is slow.
    """
    mine = steps_view.of(view)
    if mine is None:
        raise UsageError(f"step {which}: {NO_STEPS}")
    table = view.get(_table)
    if which.partition(":")[0] == SLOWEST:
        rows = table.slowest(_count(which)).tolist()
        if not rows:
            raise UsageError(
                f"step {which}: no step is an outlier (from {format_ns(table.slow_from_ns)}); expected a number from "
                f"0 to {mine.steps.count - 1}"
            )
        return tuple(_detail(mine, table, row) for row in rows)
    number = int(which) if which.isascii() and which.isdecimal() and len(which) < len(str(1 << 62)) else -1
    if not 0 <= number < mine.steps.count:
        raise UsageError(
            f"step {which}: expected a number from 0 to {mine.steps.count - 1}, {SLOWEST}, or {SLOWEST}:COUNT"
        )
    row, asked = _row(table, number)
    return (_detail(mine, table, row, asked=asked),)


def slow_steps(view: SessionView, most: int = MOST_REPORTED) -> tuple[SlowStep, ...]:
    """The slowest outliers of a session, slowest first, as its report has them."""
    mine = steps_view.of(view)
    if mine is None:
        return ()
    table = view.get(_table)
    return tuple(in_words(_detail(mine, table, row)) for row in table.slowest(most).tolist())


def in_words(detail: StepDetail) -> SlowStep:
    """A step in words, as the report has it."""
    said = step_text.rows(detail)
    return SlowStep(
        number=detail.number,
        headline=detail.headline,
        start_ns=detail.start_ns,
        dur_ns=detail.dur_ns,
        median_ns=detail.median_ns,
        parts=tuple(step_text.shown_parts(detail)),
        said=tuple(StepSaid(label=label, lines=tuple(lines)) for label, lines in said),
    )


def _table(view: SessionView) -> StepTable:
    mine = steps_view.of(view)
    if mine is None:
        raise UsageError(NO_STEPS)
    return step_table.build(mine)


def _count(which: str) -> int:
    """How many slow steps are asked for.

    Raises:
        UsageError: that is not a number from 1 on.
    """
    text = which.partition(":")[2] if ":" in which else "1"
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MOST_SLOWEST):
        raise UsageError(f"step {which}: expected {SLOWEST}:COUNT with a count from 1 to {MOST_SLOWEST}")
    return int(text)


def _row(table: StepTable, number: int) -> tuple[int, str]:
    """Row of a step; of the nearest observed one, and the number as a text, where it was not observed itself."""
    step = step_numbers.row_of(table.numbers, number)
    row = int(np.searchsorted(table.index, step))
    if row < len(table.index) and table.index[row] == step and table.numbers[step] == number:
        return row, ""
    near = table.numbers[table.index]
    return int(np.argmin(np.abs(near - number))), str(number)


def _detail(view: StepsView, table: StepTable, row: int, *, asked: str = "") -> StepDetail:
    steps = table.steps
    step = int(table.index[row])
    start, end = int(steps.starts[step]), int(steps.ends[step])
    extra = (end - start) - table.median_ns
    found = happenings.build(table, row, max(0.0, MIN_EXTRA_RATIO * extra))
    stacks = step_stacks.build(table, row)
    ops = step_ops.build(view.traces.views, start, end, MAX_OPS)
    machine = step_machine.build(view.session, steps, start, end)
    rival = step_machine.rival(view.session, start, end)
    detail = StepDetail(
        session=view.session.manifest.id,
        title=steps.title,
        number=int(table.numbers[step]),
        steps=steps.count,
        asked=asked,
        standing=_standing(table, row),
        rank=_rank(table, row),
        start_ns=start,
        dur_ns=end - start,
        median_ns=round(table.median_ns),
        factor=(end - start) / table.median_ns if table.median_ns else 0.0,
        parts=_parts(table, row),
        happened=tuple(happening(view, one) for one in found[:MAX_HAPPENED]),
        lines=tuple(
            StepLine(
                where=view.place(line.spot.file, line.spot.line, function=line.spot.function),
                component=str(line.component),
                samples=line.samples,
                ns=line.ns,
                called=called(line.called),
            )
            for line in stacks.lines[:MAX_LINES]
        ),
        samples=stacks.count,
        cpu_ratio=stacks.cpu_ns / stacks.ns if stacks.cpu_ns is not None and stacks.ns else None,
        op_trace=ops.trace if ops is not None else "",
        ops=tuple(
            StepOp(name=op.name, type=op.type, ns=op.ns, usual_ns=round(op.usual_ns))
            for op in (ops.ops if ops is not None and ops.others else ())
        ),
        machine=tuple(_reading(one) for one in machine),
        machine_every_ns=max((one.interval_ns for one in machine), default=0),
        rival=f"{rival[0]} ({rival[1]:.1f} cores)" if rival is not None else "",
        notes=_notes(table, row, asked),
    )
    return step_headline.headed(detail)


def _standing(table: StepTable, row: int) -> str:
    if table.usual[row]:
        return "steady"
    if table.index[row] == len(table.steps) - 1:
        return "last"
    return "warm-up" if row < int(np.flatnonzero(table.usual)[0]) else "pause"


def _rank(table: StepTable, row: int) -> int:
    first = int(np.flatnonzero(table.usual)[0])
    durations = table.durations
    return 1 + int((durations[first:] > durations[row]).sum()) if row >= first else 0


def _parts(table: StepTable, row: int) -> tuple[StepPart, ...]:
    """The components that the step or the median step has, largest extra time first."""
    mine, usual = table.anatomy.per_step[row], table.median_parts
    found = [
        StepPart(component=name, ns=round(ns), median_ns=round(median), factor=ns / median if median >= 1 else None)
        for name, ns, median in zip(COMPONENTS, mine.tolist(), usual.tolist(), strict=True)
        if ns >= 1 or median >= 1
    ]
    return tuple(sorted(found, key=lambda part: part.median_ns - part.ns))


def _reading(one: Reading) -> StepReading:
    above = one.value - one.usual
    raised = one.value >= RAISED_FACTOR * one.usual and above >= RAISED_FROM[one.unit]
    return StepReading(
        name=one.name, value=round(one.value, 3), usual=round(one.usual, 3), unit=one.unit, raised=bool(raised)
    )


def _notes(table: StepTable, row: int, asked: str) -> tuple[str, ...]:
    notes = []
    number = int(table.numbers[table.index[row]])
    if asked:
        why = "it lies in a gap of the duty cycle, in which steps are only counted"
        if not table.numbers[0] <= int(asked) < table.numbers[-1]:
            why = "no record says when it began, or ended"
        notes.append(f"step {asked} was not observed: {why}; the nearest observed step is {number}")
    if table.anatomy.compiled_wait_ns >= COMPILED_WAIT_RATIO * table.median_ns:
        notes.append(
            "input wait inside the compiled step is known for the mean step only: it is taken to be the same share of "
            "compute in every step"
        )
    return tuple(notes)
