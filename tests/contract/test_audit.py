"""``make audit``: what its tools answer is read as they mean it; not asked is not the same as nothing found."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("audit", ROOT / "scripts" / "audit.py")
assert SPEC is not None
assert SPEC.loader is not None
audit = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(audit)

SKIPPED = {"name": "mcp", "skip_reason": "Dependency not found on PyPI and could not be audited: mcp (2.3.0)"}
WHOLE = {"name": "six", "version": "1.17.0", "vulns": []}
DEFECT = {"name": "jinja2", "version": "2.4.1", "vulns": [{"id": "PYSEC-2014-8", "fix_versions": ["2.7.3"]}]}


@pytest.mark.parametrize(
    ("packages", "text", "bad"),
    [
        ([SKIPPED, SKIPPED], "not asked: none of 2 packages could be looked up", False),
        ([WHOLE, SKIPPED], "2 packages, 0 known defects, 1 could not be looked up", False),
        ([WHOLE, DEFECT], "2 packages, 1 known defects: jinja2 2.4.1 (PYSEC-2014-8)", True),
    ],
)
def test_pip_audit(packages: list[dict[str, object]], text: str, bad: bool) -> None:
    """pip-audit says "No known vulnerabilities found" where it could look up nothing, and exits with 0; we do not."""
    assert audit.of_pip_audit(json.dumps({"dependencies": packages, "fixes": []})) == (f"pip-audit: {text}", bad)


def test_npm_audit() -> None:
    """High and critical defects count; a registry that refuses the question has answered nothing."""
    counts = {"info": 0, "low": 2, "moderate": 0, "high": 0, "critical": 0, "total": 2}
    assert audit.of_npm_audit(json.dumps({"metadata": {"vulnerabilities": counts}})) == ("npm audit: 2 low", False)
    counts |= {"critical": 1, "total": 3}
    said = audit.of_npm_audit(json.dumps({"metadata": {"vulnerabilities": counts}}))
    assert said == ("npm audit: 2 low, 1 critical", True)
    refused = json.dumps({"message": "405 Method Not Allowed", "statusCode": 405, "error": {"summary": ""}})
    assert audit.of_npm_audit(refused) == ("npm audit: not asked: the registry gave no answer", False)


@pytest.mark.parametrize("answer", ["", "[]", "{}", "null", "Traceback"])
def test_no_answer_is_said(answer: str) -> None:
    """A tool that fails (no network) gives a line that says so."""
    assert "not asked" in audit.of_pip_audit(answer).text
    assert "not asked" in audit.of_npm_audit(answer).text


def test_bandit() -> None:
    """Any finding counts, of whatever severity."""
    clean = {"metrics": {"_totals": {"loc": 1234}}, "results": []}
    assert audit.of_bandit(json.dumps(clean)) == ("bandit: no findings in 1,234 lines", False)
    one = {"filename": "src/a.py", "line_number": 3, "test_id": "B301", "issue_severity": "MEDIUM"}
    said = audit.of_bandit(json.dumps({**clean, "results": [one]}))
    assert said == ("bandit: 1 medium in 1,234 lines: src/a.py:3 B301", True)


def test_parts_are_what_pip_would_install() -> None:
    """The package itself is the whole, not one of its parts."""
    names = [("stepscope", "0.1.0"), ("numpy", "2.1"), ("click", "8.1")]
    report = json.dumps({"install": [{"metadata": {"name": name, "version": version}} for name, version in names]})
    assert audit.installed_with_it(report) == "click==8.1\nnumpy==2.1\n"


def test_each_skip_of_bandit_has_a_reason() -> None:
    """A line of ``tool.bandit`` that leaves something out says why, and ruff's rules of the same name look there."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    part = text.split("[tool.bandit]", 1)[1].split("]\n", 1)[0]
    skips = re.findall(r'"(B\d+)"', part)
    reasons = {line.split("#", 1)[0]: line.split("#", 1)[1] for line in part.splitlines()[2:] if "#" in line}
    assert sum(f'"{skip}"' in codes for skip in skips for codes in reasons) == len(skips)
    assert all(": S" in why or "ruff's S" in why for why in reasons.values())
