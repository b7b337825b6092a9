"""Findings of the checker as SARIF 2.1.0, which code scanning services read.

Source: OASIS Standard, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 27 March 2020. Columns are
Unicode code points. Places in notebooks have no region, for a cell's lines are not the file's; the cell is a logical
location.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from stepscope.tables.check_report import CheckReport
from stepscope.tables.findings import Diagnostic, Finding
from stepscope.tables.place import Place

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}
ROOT = "%SRCROOT%"
Json = dict[str, object]


class RuleText(Struct, frozen=True, kw_only=True):
    """What a log says of a rule."""

    code: str
    name: str
    severity: str
    remedy: str
    doc: str
    """Markdown; its first paragraph is the description."""


def render(report: CheckReport, rules: Sequence[RuleText], root: Path) -> str:
    """A log with one run, as JSON text that ends in a newline.

    Args:
        report: what was found.
        rules: those that were run, sorted by code.
        root: the folder that relative paths start from.
    """
    places = {rule.code: number for number, rule in enumerate(rules)}
    run: Json = {
        "tool": {
            "driver": {"name": "stepscope", "semanticVersion": report.version, "rules": [_rule(r) for r in rules]}
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"uri": f"{root.resolve().as_uri()}/"}},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_notification(note) for note in report.diagnostics],
            }
        ],
        "results": [_result(finding, places, root) for finding in report.findings],
        "properties": {"tensorflow": report.target.tensorflow, "versionSource": report.target.source},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: RuleText) -> Json:
    words = rule.name.split("-")
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in words),
        "shortDescription": {"text": rule.doc.strip().partition("\n\n")[0].replace("\n", " ")},
        "help": {"text": rule.doc, "markdown": rule.doc},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": ["performance"], "remedy": rule.remedy},
    }


def _result(finding: Finding, rules: dict[str, int], root: Path) -> Json:
    places = [{**_location(place, root), "id": number} for number, place in enumerate(finding.where[1:], 1)]
    result: Json = {
        "ruleId": finding.code,
        "level": LEVELS.get(finding.severity, "warning"),
        "message": {"text": finding.title},
        "locations": [_location(finding.where[0], root)],
        "properties": {"confidence": finding.confidence, "fixSafety": _safety(finding), "fix": _fix(finding)},
    }
    if finding.code in rules:
        result["ruleIndex"] = rules[finding.code]
    if places:
        result["relatedLocations"] = places
    return result


def _safety(finding: Finding) -> str:
    return finding.remedies[0].safety if finding.remedies and finding.remedies[0].fix else "none"


def _fix(finding: Finding) -> str:
    return finding.remedies[0].fix if finding.remedies else ""


def _location(place: Place, root: Path) -> Json:
    path = Path(place.file)
    if not path.is_absolute():
        artifact: Json = {"uri": quote(path.as_posix()), "uriBaseId": ROOT}
    elif path.is_relative_to(root):
        artifact = {"uri": quote(path.relative_to(root).as_posix()), "uriBaseId": ROOT}
    else:
        artifact = {"uri": path.as_uri()}
    physical: Json = {"artifactLocation": artifact}
    location: Json = {"physicalLocation": physical}
    if place.cell is not None:
        location["logicalLocations"] = [{"name": f"cell {place.cell}", "kind": "member"}]
        location["message"] = {"text": f"cell {place.cell}, line {place.line}"}
        return location
    region: Json = {"startLine": place.line, "endLine": place.end_line or place.line}
    if place.column:
        region["startColumn"] = place.column
    if place.end_column:
        region["endColumn"] = place.end_column
    physical["region"] = region
    if place.function:
        location["logicalLocations"] = [{"fullyQualifiedName": place.function, "kind": "function"}]
    return location


def _notification(note: Diagnostic) -> Json:
    return {"descriptor": {"id": note.code}, "level": "note", "message": {"text": note.text}}
