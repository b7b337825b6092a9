"""What a cell shows: the first lines of a report, as text and as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import terminal
from stepscope.report.brief import fragment

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.report.report import Report


class ShownReport:
    """A report as the value of a cell."""

    def __init__(self, report: Report, path: Path) -> None:
        """``path``: of the session, as a user would write it."""
        self._report = report
        self._path = path

    def __repr__(self) -> str:
        html = str(self._path / "report.html")
        return terminal.render(self._report, width=100, session_path=str(self._path), html_path=html).rstrip("\n")

    def _repr_html_(self) -> str:
        """For front ends that show HTML: no script, no style sheet, no address outside of the page."""
        return str(fragment.render(self._report, str(self._path)))
