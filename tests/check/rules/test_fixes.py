"""Fixes that the rules plan: each is an action that exists, is done on the rule's own example, and silences it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.check.checking import examples
from tests.check.fixing.planning import fixed_by, hits_of

from stepscope.check.fixing.actions import ACTIONS
from stepscope.check.hits import FixPlan
from stepscope.check.registry import ALL
from stepscope.check.rule import Rule

ROOT = Path(__file__).resolve().parents[3]


def test_actions_are_documented() -> None:
    """The page for authors of rules lists every action, and no other."""
    page = (ROOT / "docs" / "writing-rules.md").read_text()
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == sorted(ACTIONS)


def newest(rule: Rule) -> str:
    """A version that a rule is meant for."""
    return "2.21" if rule.applies((2, 21)) else "2.10" if rule.applies((2, 10)) else "1.15"


def programs(rule: Rule) -> list[str]:
    """The slow program of the rule's page, and that of its pair where it has one."""
    pair = ROOT / "bench" / "rules" / rule.code / "slow.py"
    return [examples(rule)[0], *([pair.read_text()] if pair.is_file() else [])]


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_fix_of_rule(rule: Rule) -> None:
    """Where the rule plans a fix it is done, the rule is silent afterwards, and a second time nothing changes."""
    version = newest(rule)
    for text in programs(rule):
        hits = hits_of({"main.py": text.encode()}, version, [rule])["main.py"]
        for hit in hits:
            if hit.fix is not None:
                check_plan(hit.fix)
        if hits and all(hit.fix for hit in hits):
            done = fixed_by(text, rule.code, version=version)
            assert done != text
            assert fixed_by(done, rule.code, version=version) == done


def check_plan(plan: FixPlan) -> None:
    """A plan names an action, and says what it does and what changes, in words for people."""
    for part in (plan, *plan.parts):
        assert part.action in ACTIONS
    assert re.fullmatch(r"[A-Z].*[^.]", plan.title), "an imperative without a full stop"
    assert re.fullmatch(r"[A-Z].*\.", plan.behaviour), "a sentence"
