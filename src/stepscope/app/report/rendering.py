"""A report as a file for other tools and people: JSON, a page, Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.app.bundle import open_session
from stepscope.reports import json_report, markdown
from stepscope.reports.page import html

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.report.finding import Report


def render(found: Report, session: Path, form: str) -> str:
    """``form``: json, html or md. The page and Markdown include the session's sources."""
    if form == "json":
        return json_report.encode(found).decode()
    sources = open_session(session).sources
    return html.render(found, sources=sources) if form == "html" else markdown.render(found, sources=sources)
