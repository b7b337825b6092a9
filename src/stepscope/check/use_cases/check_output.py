"""The outputs of ``stepscope check``: gathers what renderers need besides the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from stepscope.check.fixing.edits import CannotFixError
from stepscope.check.fixing.files import PythonContent
from stepscope.check.registry import ALL
from stepscope.check.reports import check_github, check_gitlab, check_sarif, check_text
from stepscope.check.source import notebook
from stepscope.check.use_cases.check import encode
from stepscope.tables.check_report import CheckReport
from stepscope.tables.place import Place


def text(report: CheckReport, *, excerpts: bool, color: bool, width: int) -> str:
    """Text for people: one line per finding, followed by the source if ``excerpts``."""
    lines = Sources() if excerpts else None
    return check_text.render(report.findings, lines=lines, color=color, width=width)


def github(report: CheckReport) -> str:
    """Annotations of a pull request: workflow commands of GitHub Actions."""
    return check_github.render(report.findings)


def gitlab(report: CheckReport) -> str:
    """A Code Quality report of GitLab."""
    return check_gitlab.render(report.findings)


def sarif(report: CheckReport) -> str:
    """SARIF 2.1.0, for code scanning."""
    rules = [
        check_sarif.RuleText(code=r.code, name=r.name, severity=r.severity, remedy=r.remedy, doc=r.doc)
        for r in ALL
        if r.code in report.rules
    ]
    return check_sarif.render(report, rules, Path.cwd())


def json(report: CheckReport) -> str:
    """Schema ``stepscope.check/1``."""
    return f"{encode(report)}\n"


def summary(report: CheckReport) -> str:
    """Summary: what was checked, found, and can be fixed."""
    return check_text.summary(report)


MACHINES: Mapping[str, Callable[[CheckReport], str]] = MappingProxyType(
    {"json": json, "sarif": sarif, "github": github, "gitlab": gitlab}
)
"""Formats for programs."""


class Sources:
    """Lines of the files that findings name, each file read once; empty if it cannot be read."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, int | None], list[str]] = {}
        self._seen: set[str] = set()

    def __call__(self, place: Place) -> list[str]:
        """The lines of a place's file, or of its cell."""
        if place.file not in self._seen:
            self._seen.add(place.file)
            self._load(place.file)
        return self._read.get((place.file, place.cell), [])

    def _load(self, path: str) -> None:
        try:
            data = Path(path).read_bytes()
            if path.endswith(".ipynb"):
                for cell in notebook.cells(data):
                    self._read[path, cell.number] = _lines(cell.text)
            else:
                self._read[path, None] = _lines(PythonContent(data).text)
        except (OSError, ValueError, CannotFixError):
            return


def _lines(content: str) -> list[str]:
    return content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
