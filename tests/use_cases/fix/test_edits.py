"""The table of edits is whole."""

from __future__ import annotations

import inspect
import sys

from stepscope.check.registry import ALL
from stepscope.detectors.registry import EVERY
from stepscope.use_cases.fix import edits


def test_every_detector_has_an_edit_or_a_reason() -> None:
    """And none has both."""
    lines = {line.code: line for line in edits.table()}
    assert list(lines) == [detector.code for detector in EVERY]
    with_edit = {code for code, line in lines.items() if line.rules or line.input}
    assert [code for code, line in lines.items() if code not in with_edit and not line.why] == []
    assert with_edit.isdisjoint(edits.WHY_NONE)
    assert set(edits.WHY_NONE) <= set(lines)


def test_every_rule_with_a_fix_has_a_class() -> None:
    """What a fix that needs review may change is written down, not guessed."""
    sources = {rule.code: inspect.getsource(sys.modules[rule.check.__module__]) for rule in ALL}
    fixing = {code for code, source in sources.items() if "safety=" in source or "hoisting" in source}
    assert fixing == edits.REVIEWED.keys() | edits.SAFE_ONLY


def test_several_edits_have_the_weakest_class() -> None:
    assert edits.weakest(frozenset({"rule", "same"})) == "same"
    assert edits.weakest(frozenset({"rule", "order", "results"})) == "order"
    assert edits.weakest(frozenset({"rule"})) == "rule"
