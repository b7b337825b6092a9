"""Findings of the checker as a Code Quality report of GitLab.

Source: GitLab Docs, "Code Quality", "Code Quality report format".
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable

from stepscope.tables.findings import Finding

SEVERITIES = {"error": "major", "warning": "minor", "info": "info"}


def render(findings: Iterable[Finding]) -> str:
    """JSON text that ends in a newline. Fingerprints stay when lines move; a notebook's cell is in the text."""
    seen: Counter[str] = Counter()
    return json.dumps([_issue(finding, seen) for finding in findings], indent=1, ensure_ascii=False) + "\n"


def _issue(finding: Finding, seen: Counter[str]) -> dict[str, object]:
    place = finding.where[0]
    cell = f"cell {place.cell}, line {place.line}: " if place.cell is not None else ""
    key = f"{finding.code}\n{place.file}\n{place.function}\n{finding.title}"
    seen[key] += 1
    return {
        "description": f"{cell}{finding.title}",
        "check_name": f"{finding.code} {finding.name}",
        "fingerprint": hashlib.sha256(f"{key}\n{seen[key]}".encode()).hexdigest(),
        "severity": SEVERITIES.get(finding.severity, "minor"),
        "location": {"path": place.file.removeprefix("./"), "lines": {"begin": 1 if cell else place.line}},
    }
