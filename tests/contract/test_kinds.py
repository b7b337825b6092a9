"""Sets of kinds of records stand in one table; what is said of each kind, in another."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import stepscope
from stepscope.derive.kinds import KINDS
from stepscope.model.report import record_kinds
from stepscope.wire.kinds import KIND_TRAITS, Kind, Trait, kinds_with

SRC = Path(stepscope.__file__).parent
FORMAT = {"UNCOMMITTED_KINDS"}
"""The order of counters in a ring's header."""
TABLE = "wire/kinds.py"


def test_every_kind_has_its_traits() -> None:
    """In the order of their numbers, so that answers do not depend on the table's."""
    assert list(KIND_TRAITS) == sorted(Kind)


def test_every_trait_is_of_a_kind() -> None:
    """Else the question is never asked with effect."""
    assert [trait.name for trait in Trait if not kinds_with(trait)] == []


def test_every_kind_is_described() -> None:
    """In the order of their numbers. Each is drawn, or left out for a reason, unless it is the agent's own."""
    assert list(record_kinds.KINDS) == [kind.name.lower() for kind in sorted(Kind)]
    for kind, about in KINDS.items():
        assert not (about.drawn and about.undrawn), kind
        assert about.drawn or about.undrawn or kind in kinds_with(Trait.OURS), kind


def test_what_makes_steps_has_a_title() -> None:
    """A kind that may be a step has a rank, and what has a rank has a title."""
    ranked = [kind for kind, about in KINDS.items() if about.rank is not None]
    assert ranked == [kind for kind, about in KINDS.items() if about.step]
    assert set(kinds_with(Trait.STEP)) <= set(ranked)


def test_every_word_of_tasks_is_of_a_kind() -> None:
    """Requests alone are of several."""
    assert {about.task for about in KINDS.values() if about.task} == set(get_args(record_kinds.TaskKind)) - {"request"}


def test_no_other_set_of_kinds() -> None:
    """A tuple, list, set, table or pattern with two kinds of records stands nowhere but in the tables."""
    found = []
    for path in SRC.rglob("*.py"):
        place = path.relative_to(SRC).as_posix()
        if place == TABLE:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kept = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in FORMAT for t in node.targets)
        }
        found += [
            f"{place}:{getattr(node, 'lineno', 0)}"
            for node in ast.walk(tree)
            if id(node) not in kept and _kinds(node) > 1
        ]
    assert found == []


def _kinds(node: ast.AST) -> int:
    parts: list[ast.expr | None] = []
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        parts = [*node.elts]
    elif isinstance(node, ast.Dict):
        parts = [*node.keys]
    elif isinstance(node, ast.MatchOr):
        parts = [p.value for p in node.patterns if isinstance(p, ast.MatchValue)]
    return sum(isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name) and e.value.id == "Kind" for e in parts)
