"""The report as one page: self-contained, offline, readable without any script (``report.page.document``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import page_header, words
from stepscope.report.document.sections import SECTIONS
from stepscope.report.marked import Html
from stepscope.report.page import charts
from stepscope.report.page.cards import cards
from stepscope.report.page.document import document, sections
from stepscope.report.section import Asked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.model.report.report import Report


def render(report: Report, *, sources: Mapping[str, str] | None = None) -> Html:
    """The page. ``sources``: path to text of the user's files, for excerpts of the code."""
    asked = Asked(report=report, sources=sources or {})
    shown = [(one.key, one.title, cards(one.blocks(asked), asked.sources)) for one in SECTIONS]
    head = Html("\n").join((charts.hatch(), page_header.header(report)))
    return document(f"stepscope: {words.subject(report)}", sections(head, shown))
