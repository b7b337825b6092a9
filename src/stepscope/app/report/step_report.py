"""``stepscope report --step``: opens a session and renders some of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.app import bundle
from stepscope.app.report import step_detail
from stepscope.derive.view import SessionView
from stepscope.reports import step_text

if TYPE_CHECKING:
    from pathlib import Path


def render(path: Path, which: str, form: str) -> str:
    """The steps that ``which`` names, of the session at ``path``, as text, json or md.

    Raises:
        SessionError: the session is missing or damaged.
        UsageError: ``which`` names no step.
    """
    found = step_detail.of_session(SessionView(bundle.open_session(path)), which)
    if form == "json":
        return step_text.to_json(found).decode()
    return step_text.markdown(found) if form == "md" else step_text.text(found)
