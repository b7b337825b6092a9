"""Findings of the checker as SARIF 2.1.0, which code scanning services read.

Source: OASIS Standard, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 27 March 2020. Columns are
Unicode code points. Places in notebooks have no region, for a cell's lines are not the file's; the cell is a logical
location.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from msgspec import Struct

from stepscope.tables.check_report import CheckReport
from stepscope.tables.findings import Diagnostic, Finding
from stepscope.tables.place import Place

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}
ROOT = "%SRCROOT%"
FINGERPRINT = "stepscopeFinding/v1"
"""Name of the fingerprint; a new way to make it gets a new version."""
Json = dict[str, object]


class RuleText(Struct, frozen=True, kw_only=True):
    """What a log says of a rule."""

    code: str
    name: str
    severity: str
    remedy: str
    doc: str
    """Markdown; its first paragraph is the description."""


class Replacement(Struct, frozen=True):
    """One edit of a fix: the text between two places, each a line and a column from 1, is replaced."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


Fixes = Mapping[Finding, Sequence[Replacement]]


def render(report: CheckReport, rules: Sequence[RuleText], root: Path, fixes: Fixes = MappingProxyType({})) -> str:
    """A log with one run, as JSON text that ends in a newline.

    Args:
        report: what was found.
        rules: those that have findings, sorted by code.
        root: the folder that relative paths start from.
        fixes: edits of the findings that have some.
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
        "results": _results(report.findings, places, root, fixes),
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


def _results(findings: Sequence[Finding], rules: dict[str, int], root: Path, fixes: Fixes) -> list[Json]:
    """All results, with fingerprints that stay when lines move: findings that are alike are numbered."""
    seen: Counter[str] = Counter()
    made = []
    for finding in findings:
        place = finding.where[0]
        key = "\n".join((finding.code, place.file, str(place.cell), place.function, finding.title))
        seen[key] += 1
        result = _result(finding, rules, root)
        mark = hashlib.sha256(f"{key}\n{seen[key]}".encode()).hexdigest()
        result["partialFingerprints"] = {FINGERPRINT: mark}
        if edits := fixes.get(finding):
            result["fixes"] = [_change(finding, edits, root)]
        made.append(result)
    return made


def _change(finding: Finding, edits: Sequence[Replacement], root: Path) -> Json:
    replacements: list[Json] = [
        {
            "deletedRegion": dict(
                zip(("startLine", "startColumn", "endLine", "endColumn"), (*edit.start, *edit.end), strict=True)
            ),
            "insertedContent": {"text": edit.text},
        }
        for edit in edits
    ]
    change: Json = {"artifactLocation": _artifact(finding.where[0], root), "replacements": replacements}
    return {"description": {"text": f"{_fix(finding)}. {finding.explanation}"}, "artifactChanges": [change]}


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


def _artifact(place: Place, root: Path) -> Json:
    path = Path(place.file)
    if not path.is_absolute():
        return {"uri": quote(path.as_posix()), "uriBaseId": ROOT}
    if path.is_relative_to(root):
        return {"uri": quote(path.relative_to(root).as_posix()), "uriBaseId": ROOT}
    return {"uri": path.as_uri()}


def _location(place: Place, root: Path) -> Json:
    physical: Json = {"artifactLocation": _artifact(place, root)}
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
