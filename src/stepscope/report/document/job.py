"""The parts of the job's time, and of each step maker's if there are several: what each is, and what explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import ledger_rows, words
from stepscope.report.blocks import At, Bar, Heading, Key, Paragraph, Part, Table, columns
from stepscope.report.page import charts
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.report.blocks import Span, Text
    from stepscope.report.ledger_rows import ShownEntry

NO_COLOUR = "else"
"""Component that stands for none: its colour belongs to no part of a step."""
HEAD = columns("Part | Share: | Time: | Settled by | What and where")


def parts(rows: Iterable[ShownEntry]) -> list[Part]:
    """The parts of a bar."""
    return [Part(_css(row), row.label, row.ratio, row.ns) for row in rows]


def cells(row: ShownEntry) -> list[Text]:
    """Colour and label, share, time, what it is and where."""
    what: tuple[Span, ...] = (row.text, *map(At, row.where))
    return [Key(_css(row), row.label), f"{words.percent(row.ratio)} %", format_ns(row.ns), what]


def _css(row: ShownEntry) -> str:
    return charts.component_class(row.component or NO_COLOUR)


def _lines(asked: Asked) -> Said:
    yield Lines(label="the job", texts=[tuple(ledger_rows.line(asked.report))], where=Where.HEAD)


def _blocks(asked: Asked) -> Blocks:
    for title, entries in ledger_rows.ledgers(asked.report):
        rows = ledger_rows.rows(entries)
        whole = f"{format_ns(sum(row.ns for row in rows))} in all."
        yield Paragraph(whole, "note") if title == SECTION.title else Heading(title)
        yield Bar(title, parts(rows), per="")
        shown = [cells(row) for row in rows]
        yield Table(HEAD, [[*first, row.settled, what] for row, (*first, what) in zip(rows, shown, strict=True)])


SECTION = Section(key="job", title="The job", lines=_lines, blocks=_blocks)
