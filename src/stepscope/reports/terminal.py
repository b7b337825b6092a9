"""The report for a terminal: in at most twelve lines, or all of it with ``-v``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.reports import text
from stepscope.reports.brief import text as brief_text

if TYPE_CHECKING:
    from stepscope.model.report.finding import Report


def render(
    report: Report,
    *,
    color: bool = False,
    width: int = 120,
    session_path: str = "",
    html_path: str = "",
    verbose: bool = False,
    price: float = 0.0,
) -> str:
    """Lines of text that end in a newline; arguments as of ``text.render``."""
    if verbose:
        return text.render(
            report,
            color=color,
            width=width,
            session_path=session_path,
            html_path=html_path,
            verbose=True,
            price=price,
        )
    return brief_text.render(
        report, color=color, width=width, session_path=session_path, html_path=html_path, price=price
    )
