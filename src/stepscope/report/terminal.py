"""The report for a terminal: in at most twelve lines, or all of it with ``-v``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import text
from stepscope.report.brief import text as brief_text

if TYPE_CHECKING:
    from stepscope.model.report.report import Report


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
