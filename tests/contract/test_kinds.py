"""Sets of kinds of records stand in one table."""

from __future__ import annotations

import ast
from pathlib import Path

import stepscope
from stepscope.wire.kinds import KIND_TRAITS, Kind, Trait, kinds_with

SRC = Path(stepscope.__file__).parent
FORMAT = {"UNCOMMITTED_KINDS"}
"""The order of counters in a ring's header."""


def test_every_kind_has_its_traits() -> None:
    """In the order of their numbers, so that answers do not depend on the table's."""
    assert list(KIND_TRAITS) == sorted(Kind)


def test_every_trait_is_of_a_kind() -> None:
    """Else the question is never asked with effect."""
    assert [trait.name for trait in Trait if not kinds_with(trait)] == []


def test_no_other_set_of_kinds() -> None:
    """A tuple, list or set with two kinds of records stands nowhere but in the table."""
    found = []
    for path in SRC.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kept = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in FORMAT for t in node.targets)
        }
        found += [
            f"{path.relative_to(SRC)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, (ast.Tuple, ast.List, ast.Set)) and id(node) not in kept and _kinds(node) > 1
        ]
    assert found == []


def _kinds(node: ast.Tuple | ast.List | ast.Set) -> int:
    return sum(
        isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name) and e.value.id == "Kind" for e in node.elts
    )
