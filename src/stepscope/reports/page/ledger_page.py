"""The job's time on the page: a bar of its parts, and a table of what each is, where, and what explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.reports import ledger_rows, words
from stepscope.reports.page import bars, charts, turn_rows
from stepscope.reports.page.svg import escape
from stepscope.reports.page.tables import place, table
from stepscope.units import format_ns

if TYPE_CHECKING:
    from stepscope.model.report.finding import Report
    from stepscope.reports.ledger_rows import Row

NO_COLOUR = "else"
"""Component that stands for none: its colour belongs to no part of a step."""


def page(report: Report) -> str:
    """The ledgers; empty if there are none."""
    cards = [
        _ledger(title, ledger_rows.rows(entries), first=number == 0)
        for number, (title, entries) in enumerate(ledger_rows.ledgers(report))
    ]
    return "".join([*cards[:1], _turns(report), *cards[1:]])


def _turns(report: Report) -> str:
    """The mean turn; empty if the job has no turns."""
    if report.turns is None:
        return ""
    rows = turn_rows.rows(report.turns)
    bar = bars.step(
        "turn", "The mean turn", [bars.Part(_css(row), row.label, row.ratio, row.ns) for row in rows], per=""
    )
    cells = [_cells(row, settled=False) for row in rows]
    said = f"Turns: {turn_rows.title(report.turns)}. A turn holds many steps: a fold, a trial, a prompt, an epoch."
    head = f'<h3>The mean turn</h3><p class="note">{escape(said)}</p>'
    return (
        f'<div class="card">{head}{bar.markup}{table(("Part", "Share", "Time", "Where"), cells, numeric=(1, 2))}</div>'
    )


def _ledger(title: str, rows: list[Row], *, first: bool) -> str:
    whole = sum(row.ns for row in rows)
    parts = [bars.Part(_css(row), row.label, row.ratio, row.ns) for row in rows]
    bar = bars.step("job" if first else "maker", title, parts, per="")
    head = f'<p class="note">{format_ns(whole)} from start to end.</p>' if first else f"<h3>{escape(title)}</h3>"
    settled = any(row.settled for row in rows)
    names = ("Part", "Share", "Time", *(("Settled by",) if settled else ()), "What and where")
    cells = [_cells(row, settled=settled) for row in rows]
    return f'<div class="card">{head}{bar.markup}{table(names, cells, numeric=(1, 2))}</div>'


def _css(row: Row) -> str:
    return charts.component_class(row.component or NO_COLOUR)


def _cells(row: Row, *, settled: bool) -> str:
    key = charts.Key(css=_css(row), kind="box", label="")
    explained = f"<td>{escape(row.settled)}</td>" if settled else ""
    places = "".join(place(where, before=" ") for where in row.where)
    return (
        f'<th scope="row" class="key">{bars.swatch(key)}{escape(row.label)}</th>'
        f'<td class="n">{words.percent(row.ratio)} %</td><td class="n">{format_ns(row.ns)}</td>'
        f"{explained}<td>{escape(row.text)}{places}</td>"
    )
