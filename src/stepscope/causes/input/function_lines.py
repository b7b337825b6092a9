"""Where a traced input spends the time of its ops: the lines of the functions of its maps and filters.

Serves slow_input_stage and input_takes_cpus.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general.compute_lines import of_input
from stepscope.derive.optrace import line_times
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.optrace.line_times import Line
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

MOST_LINES = 3
"""Lines of a map's function that are places of a finding."""
NAMED = Ratio(0.3)
"""Of the time of the input's ops: a line with less is not named in a title."""


class FunctionLine(Struct, frozen=True, kw_only=True):
    """A line of user code in a function of the input."""

    place: Place
    ratio: float
    """Share of the time of all ops of the input's functions."""


def build(view: SessionView) -> tuple[FunctionLine, ...]:
    """The lines, the costliest first; none without an op trace that shows ops of the input."""
    trace, index = view.traces.shown, view.graphs
    if trace is None or index is None:
        return ()
    time: Counter[Line | None] = Counter()
    for op in line_times.build(trace.trace, index).ops:
        if of_input(index, op):
            time[op.line] += op.self_ps
    whole = sum(time.values())
    return tuple(
        FunctionLine(place=view.place(line.file, line.line, function=line.function), ratio=spent / whole)
        for line, spent in time.most_common()
        if line is not None and spent
    )


def of_map(view: SessionView, stage: Stage | None) -> tuple[FunctionLine, ...]:
    """The costliest lines, if the stage runs the function of a map."""
    return view.get(build)[:MOST_LINES] if stage is not None and "Map" in stage.name else ()


def said(lines: tuple[FunctionLine, ...]) -> str:
    """The part of a title that names the costliest line; "" if none stands out."""
    if not lines or lines[0].ratio < NAMED:
        return ""
    first = lines[0].place
    where = f"{first.function or 'the map'} (line {first.line})"
    return f"; {format_ratio(lines[0].ratio)} of the map's op time is in {where}"
