"""A report as a file for other tools and people: JSON, a page, Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.view import SessionView
from stepscope.report import html, json_report, markdown, step_text
from stepscope.report.brief import document
from stepscope.report.sections import step_detail
from stepscope.sessions.bundle import open_session

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.report.report import Report


def render(found: Report, session: Path, form: str) -> str:
    """``form``: json, html or md. The page and Markdown include the session's sources."""
    if form == "json":
        return json_report.encode(found).decode()
    sources = open_session(session).sources
    return html.render(found, sources=sources) if form == "html" else markdown.render(found, sources=sources)


def brief(found: Report, session: Path) -> str:
    """The report as JSON of at most 4,000 bytes."""
    return document.encode(found, str(session)).decode()


def steps(session: Path, which: str, form: str) -> str:
    """The steps that ``which`` names (``step_detail.of_session``), compared with the median step: as text, json or md.

    Raises:
        SessionError: the session is missing or damaged.
        UsageError: ``which`` names no step.
    """
    found = step_detail.of_session(SessionView(open_session(session)), which)
    if form == "json":
        return step_text.to_json(found).decode()
    return step_text.markdown(found) if form == "md" else step_text.text(found)
