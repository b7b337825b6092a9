"""The table of ops as rows of text that terminal, Markdown and page share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stepscope.model.finding import Place
from stepscope.reports import tables, words
from stepscope.reports.svg import escape
from stepscope.units import format_ns, format_ratio

if TYPE_CHECKING:
    from stepscope.model.op_table import MakerTime, OpTable

SHOWN = 15
"""Rows in Markdown and on the page; the rest is in report.json."""
HEAD = ("made by", "op time", "share", "in gradients", "runs", "ops", "where")
NUMERIC = range(1, 5)


class Row(NamedTuple):
    """What one line or layer made, as text; columns as ``HEAD``."""

    maker: str
    time: str
    share: str
    gradients: str
    runs: str
    types: str
    where: str


def rows(table: OpTable) -> list[Row]:
    """The rows, in their order."""
    return [_row(maker) for maker in table.makers]


def _row(maker: MakerTime) -> Row:
    layer = f"{words.printable(maker.layer)} ({words.printable(maker.layer_type)})" if maker.layer else ""
    place = Place(file=maker.file, line=maker.line, function=maker.function)
    where = words.place_text(place, short=True).removesuffix(" <module>") if maker.file else ""
    return Row(
        layer or "no layer",
        format_ns(maker.ns),
        format_ratio(maker.ratio),
        format_ratio(maker.gradient_ratio) if maker.gradient_ratio else "",
        f"{maker.calls:,}",
        ", ".join(words.printable(name) for name in maker.types),
        f"built at {where}" if maker.built else where,
    )


def summary(table: OpTable) -> str:
    """What the table is of."""
    steps = f" of {words.plural(table.steps, 'traced step')}" if table.steps else " of the trace"
    return f"{format_ns(table.ns)} of ops in all threads{steps}; {format_ratio(table.joined_ratio)} found in the graph"


def short(table: OpTable, count: int) -> list[str]:
    """One line for each of the first ``count`` rows."""
    found = []
    for row, maker in zip(rows(table)[:count], table.makers, strict=False):
        what = row.maker if maker.layer else row.types
        gradients = f", {row.gradients} in gradients" if row.gradients else ""
        found.append(f"{row.share} {what}{gradients}: {row.where}" if row.where else f"{row.share} {what}{gradients}")
    return found


def page(table: OpTable | None) -> str:
    """The table as markup for the page; nothing for none."""
    if table is None:
        return ""
    body = [
        "".join(
            f'<td class="n">{escape(text)}</td>' if i in NUMERIC else f"<td>{escape(text)}</td>"
            for i, text in enumerate(row)
        )
        for row in rows(table)[:SHOWN]
    ]
    head = [title.capitalize() for title in HEAD]
    return f'<div class="card"><p>{escape(summary(table))}.</p>{tables.table(head, body, numeric=NUMERIC)}</div>'
