"""The job's links between hosts, as a table of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.reports import link_rows
from stepscope.reports.page import tables
from stepscope.reports.page.svg import escape

if TYPE_CHECKING:
    from stepscope.model.report.finding import Report


def page(report: Report) -> str:
    """The table as markup for the page; empty without links."""
    if not report.links:
        return ""
    body = [
        "".join(
            f'<td class="n">{escape(text)}</td>' if title in link_rows.NUMERIC else f"<td>{escape(text)}</td>"
            for title, text in zip(link_rows.HEAD, row, strict=True)
        )
        for row in link_rows.rows(report.links)
    ]
    places = [i for i, title in enumerate(link_rows.HEAD) if title in link_rows.NUMERIC]
    table = tables.table([title.capitalize() for title in link_rows.HEAD], body, numeric=places)
    return f'<div class="card">{table}</div>'
