"""The outputs of ``stepscope check``: gathers what renderers need besides the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from stepscope.check.fixing.edits import CannotFixError, ParserLines
from stepscope.check.fixing.files import PythonContent
from stepscope.check.registry import ALL
from stepscope.check.reports import check_github, check_gitlab, check_sarif, check_text
from stepscope.check.run.findings import finding as to_finding
from stepscope.check.run.run import FileResult
from stepscope.check.source import notebook
from stepscope.check.source.versions import parse
from stepscope.check.use_cases.check import encode
from stepscope.tables.check_report import CheckReport
from stepscope.tables.findings import Finding
from stepscope.tables.place import Place


def text(report: CheckReport, *, excerpts: bool, color: bool, width: int) -> str:
    """Text for people: one line per finding, followed by the source if ``excerpts``."""
    lines = Sources() if excerpts else None
    return check_text.render(report.findings, lines=lines, color=color, width=width)


def github(report: CheckReport, _: Iterable[FileResult] = ()) -> str:
    """Annotations of a pull request: workflow commands of GitHub Actions."""
    return check_github.render(report.findings)


def gitlab(report: CheckReport, _: Iterable[FileResult] = ()) -> str:
    """A Code Quality report of GitLab."""
    return check_gitlab.render(report.findings)


def sarif(report: CheckReport, results: Iterable[FileResult] = ()) -> str:
    """SARIF 2.1.0, for code scanning: the rules that occur, and the edits of each fix."""
    found = {finding.code for finding in report.findings}
    rules = [
        check_sarif.RuleText(code=r.code, name=r.name, severity=r.severity, remedy=r.remedy, doc=r.doc)
        for r in ALL
        if r.code in found
    ]
    return check_sarif.render(report, rules, Path.cwd(), _edits(report, results))


def _edits(report: CheckReport, results: Iterable[FileResult]) -> dict[Finding, tuple[check_sarif.Replacement, ...]]:
    """The edits of each finding's fix, in Python files that are as they were checked."""
    from stepscope.check.fixing.fixer import Fixer

    by_code = {rule.code: rule for rule in ALL}
    version = parse(report.target.tensorflow) or (0, 0)
    made = {}
    for result in results:
        fixable = [hit for hit in result.hits if hit.fix is not None] if not result.cells.starts else []
        try:
            text = PythonContent(Path(result.path).read_bytes()).text if fixable else ""
        except (OSError, CannotFixError):
            continue
        fixer, lines = Fixer(text, version), ParserLines(text)
        for hit in fixable:
            edits = fixer.plan(hit.fix).edits if hit.fix is not None else ()
            made[to_finding(by_code[hit.code], hit, result.cells)] = tuple(
                check_sarif.Replacement(lines.position(edit.start), lines.position(edit.end), edit.text)
                for edit in edits
            )
    return made


def json(report: CheckReport, _: Iterable[FileResult] = ()) -> str:
    """Schema ``stepscope.check/1``."""
    return f"{encode(report)}\n"


def summary(report: CheckReport) -> str:
    """Summary: what was checked, found, and can be fixed."""
    return check_text.summary(report)


MACHINES: Mapping[str, Callable[[CheckReport, Iterable[FileResult]], str]] = MappingProxyType(
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
