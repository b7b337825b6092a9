"""The mean turn, if the job has turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.blocks import Bar, Paragraph, Table, columns
from stepscope.report.document import job
from stepscope.report.ledger_rows import PHASES, ShownEntry
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from stepscope.model.report.report import Report
    from stepscope.model.report.turns import TurnPart, Turns

LEAST_OTHER = 0.10
"""Share of a turn that is no step from which the line is shown: below it, a turn is its steps."""
SHOWN_RATIO = 0.03
"""Smallest share of a turn in the line."""


def line(report: Report) -> list[str]:
    """``5 turns of 3.1 s at kfold.py:31 main (fit)``, then what each takes; empty if there is nothing to say."""
    turns = report.turns
    if turns is None:
        return []
    steps = sum(part.ratio for part in turns.parts if part.phase == "steps" and not part.component)
    if 1.0 - steps < LEAST_OTHER:
        return []
    return [title(turns), *(_item(part) for part in turns.parts if part.ratio >= SHOWN_RATIO)]


def title(turns: Turns) -> str:
    """``5 turns of 3.1 s at kfold.py:31 main (fit)``."""
    place = words.place_text(turns.where, short=True)
    what = words.printable(turns.call) or "loop"
    if turns.exact:
        return f"{turns.count:,} of {format_ns(turns.mean_ns)} at {place} ({what})"
    return f"{turns.count:,} or more of {format_ns(turns.mean_ns)} or less at {place} ({what})"


def _item(part: TurnPart) -> str:
    named = part.where[0].function if part.where and part.phase == "between-steps" else ""
    inside = f" ({words.printable(named)})" if named not in {"", "<module>"} else ""
    return f"{_label(part)} {format_ns(part.ns)}{inside}"


def _label(part: TurnPart) -> str:
    return words.component_word(part.component) if part.component else PHASES[part.phase][0]


def rows(turns: Turns) -> list[ShownEntry]:
    """A row for each part."""
    return [
        ShownEntry(
            label=_label(part),
            component=part.component or PHASES[part.phase][1] or "call",
            ns=part.ns,
            ratio=part.ratio,
            where=part.where,
        )
        for part in turns.parts
    ]


def _lines(asked: Asked) -> Said:
    if asked.report.session.steps:
        yield Lines(label="turns", texts=[tuple(line(asked.report))], where=Where.HEAD)


def _blocks(asked: Asked) -> Blocks:
    turns = asked.report.turns
    if turns is None:
        return
    shown = rows(turns)
    said = f"Turns: {title(turns)}. A turn holds many steps: a fold, a trial, a prompt, an epoch."
    yield Paragraph(said, "note")
    yield Bar("The mean turn", job.parts(shown), per="")
    yield Table(columns("Part | Share: | Time: | Where"), list(map(job.cells, shown)))


SECTION = Section(key="turn", title="The mean turn", lines=_lines, blocks=_blocks)
