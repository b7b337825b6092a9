"""docs/security.md: every claim names its test, and the test is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<claim>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<name>test_\w+)`")


def claims() -> list[tuple[str, list[tuple[str, str]]]]:
    """Each claim with the files and names of its tests."""
    rows = [(row["claim"], row["tests"]) for row in ROW.finditer(PAGE) if row["claim"] != "claim"]
    return [(claim, [(one["file"], one["name"]) for one in TEST.finditer(tests)]) for claim, tests in rows]


def test_every_claim_has_a_test() -> None:
    """A row without one would be a promise."""
    assert len(claims()) > 40
    assert [claim for claim, tests in claims() if not tests] == []
    assert PAGE.count("\n| ") - PAGE.count("\n| claim | test |") == len(claims())  # none has another form


def test_every_test_is_there() -> None:
    """A test that is renamed takes its claim along."""
    named = {pair for _, tests in claims() for pair in tests}
    there = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in named if (ROOT / file).is_file()}
    assert [f"{file}::{name}" for file, name in sorted(named) if f"\ndef {name}(" not in there.get(file, "")] == []
