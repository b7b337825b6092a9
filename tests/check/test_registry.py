"""The registry of rules is complete, every rule explains itself, and its examples are true."""

import re
from pathlib import Path

import pytest
from tests.check import checking

import stepscope
from stepscope.check.registry import ALL
from stepscope.check.rule import Rule
from stepscope.detectors.registry import ALL as DETECTORS

RULES = Path(stepscope.__file__).parent / "check" / "rules"
DOCS = Path(__file__).resolve().parents[2] / "docs"
HEADINGS = (
    "What it does",
    "Why it is slow",
    "Example",
    "When it is silent",
    "Fix and its safety",
    "Versions",
)
FAMILIES = ("TFD", "TFF", "VEC", "NPY", "KER", "OPS", "DEV", "LIB")
CODE = re.compile(rf"(?:{'|'.join(FAMILIES)})\d{{3}}")
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
every_rule = pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)


def test_every_file_is_registered() -> None:
    """A rule that has a file is listed in ``registry.ALL``, once, sorted by code."""
    files = sorted(path.stem for path in RULES.rglob("*.py") if path.stem != "__init__")
    assert sorted(rule.check.__module__.rpartition(".")[2] for rule in ALL) == files
    found = [rule.code for rule in ALL]
    assert found == sorted(set(found))


@every_rule
def test_a_rule_is_documented(rule: Rule) -> None:
    """A rule's module has every heading, in order, each with prose, and its section is in docs/rules.md."""
    sections = re.findall(r"^## (.+)\n+((?:(?!## ).*\n?)*)", rule.doc, re.MULTILINE)
    assert tuple(title for title, _ in sections) == HEADINGS
    assert all(body.strip() for _, body in sections)
    assert f"## {rule.code} {rule.name}\n" in (DOCS / "rules.md").read_text()


@every_rule
def test_a_rule_is_named_by_the_bad_pattern(rule: Rule) -> None:
    """Codes are of a known family and no detector's; names are lower-case words with hyphens."""
    assert CODE.fullmatch(rule.code)
    assert NAME.fullmatch(rule.name)
    assert rule.code not in {detector.code for detector in DETECTORS}
    assert rule.name not in {detector.name for detector in DETECTORS}
    assert set(rule.related) <= {detector.code for detector in DETECTORS}


@every_rule
def test_a_rule_asks_for_something(rule: Rule) -> None:
    """Exactly one function, with what it wants to see; a warning or error has a measured pay-off of 1.5 at least."""
    given = [rule.on_call, rule.on_node, rule.on_file]
    assert sum(function is not None for function in given) == 1
    assert bool(rule.calls) == (rule.on_call is not None)
    assert bool(rule.nodes) == (rule.on_node is not None)
    assert rule.severity == "info" or rule.speedup >= 1.5


@every_rule
def test_the_examples_are_true(rule: Rule) -> None:
    """The slow example of a rule's documentation is reported by it, and by it alone; the fixed one by none."""
    slow, fixed = checking.examples(rule)
    version = "1.15" if rule.before_version <= (2, 0) else "2.21"
    if rule.before_version < (99, 0) and version == "2.21":
        major, minor = rule.before_version
        version = f"{major}.{minor - 1}"
    assert rule.code in checking.codes(slow, version=version)
    assert checking.codes(fixed, version=version) == []
