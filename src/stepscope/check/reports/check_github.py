"""Findings of the checker as annotations of GitHub Actions.

Source: GitHub Docs, "Workflow commands for GitHub Actions", setting an error, warning and notice message.
"""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.tables.findings import Finding

COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(findings: Iterable[Finding]) -> str:
    """A workflow command for each finding. A notebook's findings are put at the file: its lines are not the cells'."""
    return "".join(f"{_command(finding)}\n" for finding in findings)


def _command(finding: Finding) -> str:
    place = finding.where[0]
    end = place.end_line or place.line
    values: list[tuple[str, object]] = [("title", f"stepscope {finding.code} ({finding.name})"), ("file", place.file)]
    text = finding.title
    if place.cell is None:
        values += [("line", place.line), ("endLine", end)]
        if end == place.line and place.column:
            values += [("col", place.column), ("endColumn", place.end_column or place.column)]
    else:
        text = f"cell {place.cell}, line {place.line}: {text}"
    remedy = finding.remedies[0].text if finding.remedies else ""
    text = f"{text}\n{remedy}" if remedy else text
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in values)
    return f"::{COMMANDS.get(finding.severity, 'warning')} {properties}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
