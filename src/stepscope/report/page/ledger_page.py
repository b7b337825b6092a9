"""The job's time on the page: a bar of its parts, and a table of what each is, where, and what explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import ledger_rows, words
from stepscope.report.marked import Html
from stepscope.report.page import bars, charts, turn_rows
from stepscope.report.page.tables import notes, place, table
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from stepscope.model.report.report import Report
    from stepscope.report.ledger_rows import ShownEntry

NO_COLOUR = "else"
"""Component that stands for none: its colour belongs to no part of a step."""


def page(report: Report) -> Html:
    """The ledgers; empty if there are none."""
    cards = [
        _ledger(title, ledger_rows.rows(entries), first=number == 0)
        for number, (title, entries) in enumerate(ledger_rows.ledgers(report))
    ]
    return Html().join([*cards[:1], _turns(report), *cards[1:]])


def _turns(report: Report) -> Html:
    """The mean turn; empty if the job has no turns."""
    if report.turns is None:
        return Html()
    rows = turn_rows.rows(report.turns)
    bar = bars.step(
        "turn", "The mean turn", [bars.BarPart(_css(row), row.label, row.ratio, row.ns) for row in rows], per=""
    )
    cells = [_cells(row, settled=False) for row in rows]
    said = f"Turns: {turn_rows.title(report.turns)}. A turn holds many steps: a fold, a trial, a prompt, an epoch."
    head = Html('<h3>The mean turn</h3><p class="note">{}</p>').format(said)
    return Html('<div class="card">{}{}{}</div>').format(
        head, bar.markup, table(("Part", "Share", "Time", "Where"), cells, numeric=(1, 2))
    )


def _ledger(title: str, rows: list[ShownEntry], *, first: bool) -> Html:
    whole = sum(row.ns for row in rows)
    parts = [bars.BarPart(_css(row), row.label, row.ratio, row.ns) for row in rows]
    bar = bars.step("job" if first else "maker", title, parts, per="")
    head = notes([f"{format_ns(whole)} from start to end."]) if first else Html("<h3>{}</h3>").format(title)
    settled = any(row.settled for row in rows)
    names = ("Part", "Share", "Time", *(("Settled by",) if settled else ()), "What and where")
    cells = [_cells(row, settled=settled) for row in rows]
    return Html('<div class="card">{}{}{}</div>').format(head, bar.markup, table(names, cells, numeric=(1, 2)))


def _css(row: ShownEntry) -> str:
    return charts.component_class(row.component or NO_COLOUR)


def _cells(row: ShownEntry, *, settled: bool) -> Html:
    key = charts.Key(css=_css(row), kind="box", label="")
    explained = Html("<td>{}</td>").format(row.settled) if settled else Html()
    places = Html().join(place(where, before=" ") for where in row.where)
    return Html(
        '<th scope="row" class="key">{}{}</th><td class="n">{} %</td><td class="n">{}</td>{}<td>{}{}</td>'
    ).format(bars.swatch(key), row.label, words.percent(row.ratio), format_ns(row.ns), explained, row.text, places)
