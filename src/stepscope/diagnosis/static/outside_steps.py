"""What the lines of a static finding take of the run outside of its steps, by the ledger's phases.

The heat of a line (``causes.host.line_heat``) is its share of the steady steps. Code that prepares the data once, or a
job whose steps are not known, has none: there the ledger says where the time of each phase goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.general import phase_lines
from stepscope.derive.python import loop_source

if TYPE_CHECKING:
    from stepscope.check.hits import Span
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

PHASES = frozenset({"building", "between-steps", "end"})
"""Phases of the program's own code; what steps, evaluations and tracing take is not their lines' own."""


def ratio(view: SessionView, span: Span) -> float:
    """Share of the run's wall time: of lines within the span, or within a loop that begins there."""
    return sum(
        phase.ratio * spent.ratio
        for phase in view.get(phase_lines.build)
        for spent in phase.lines
        if phase.phase in PHASES and within(view, spent.place, span)
    )


def within(view: SessionView, place: Place, span: Span) -> bool:
    """Whether a place lies in a span's lines, or in a loop that begins there."""
    if place.file not in {span.path, view.place(span.path, span.line).file}:
        return False
    if span.line <= place.line <= span.end_line:
        return True
    source = view.source_of(span.path)
    loops = loop_source.loops_around(source, place.line) if source is not None else ()
    return any(span.line <= loop.first <= span.end_line for loop in loops)
