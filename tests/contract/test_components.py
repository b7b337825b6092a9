"""What is said of the step's components stands in one table; what they are made of, in one module."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

import stepscope
from stepscope.derive.steps.anatomy import MEASURED, NAMED_BY
from stepscope.model.report.components import (
    COMPONENTS,
    PAINTED,
    REST,
    ComponentName,
    Trait,
    components_with,
    stage_in_step,
)
from stepscope.model.report.ledger import PHASES
from stepscope.model.report.step_summary import MakerKind
from stepscope.report.page import sheet

SRC = Path(stepscope.__file__).parent
FRONTEND = SRC.parents[1] / "frontend" / "src"
KEPT = {
    "model/report/components.py": "the table",
    "derive/steps/anatomy.py": "what components are made of",
    "causes/general/spent_lines.py": "what knows the lines of each component",
}
PARTS = "derive/optrace/steps/step_parts.py"
"""Its table of an op trace's parts, some of which bear a component's name."""
COLOUR = re.compile(r"#[0-9a-f]{6}")
NAMES = "|".join(COMPONENTS)


def test_every_component_has_a_row() -> None:
    assert tuple(COMPONENTS) == get_args(ComponentName)


def test_every_component_is_measured() -> None:
    """Of each as many sets of intervals as depths that it is painted at; one component is what is left."""
    assert {name: len(found) for name, found in MEASURED.items()} == {
        name: len(about.painted) for name, about in COMPONENTS.items() if name != REST
    }
    assert COMPONENTS[REST].painted == ()
    assert NAMED_BY.keys() <= MEASURED.keys()


def test_the_painting_has_one_order() -> None:
    depths = sorted(depth for about in COMPONENTS.values() for depth in about.painted)
    assert depths == list(range(1, len(PAINTED) + 1))


@pytest.mark.parametrize("field", ["word", "runs", "light", "dark", "page"])
def test_no_two_are_told_alike(field: str) -> None:
    """Neither by a word nor by a colour."""
    told = [getattr(about, field) for about in COMPONENTS.values()]
    assert len(set(told)) == len(told)
    assert all(told)


def test_colours_can_be_read() -> None:
    """They are of six digits, and what is written on them has the contrast that text needs."""
    for about in COMPONENTS.values():
        assert all(COLOUR.fullmatch(colour) for colour in (about.light, about.dark, about.page))
        for colour in (about.light, about.dark):
            assert max(sheet.contrast(ink, colour) for ink in (sheet.BRIGHT, sheet.DARK)) >= sheet.MIN_CONTRAST


def test_every_trait_is_of_a_component() -> None:
    """Else the question is never asked with effect."""
    assert [trait.name for trait in Trait if not components_with(trait)] == []


def test_time_in_a_step_counts_under_a_stage() -> None:
    """What lies between steps elsewhere is output when it interrupts one; all else counts under its own stage."""
    for name, about in COMPONENTS.items():
        assert stage_in_step(name) == ("output-processing" if about.stage == "none" else about.stage)
    assert stage_in_step("") == "none"


def test_no_other_set_of_components() -> None:
    """A tuple, list, set, table or pattern that names two components stands nowhere else."""
    found = []
    for path in SRC.rglob("*.py"):
        place = path.relative_to(SRC).as_posix()
        if place in KEPT or place.startswith(("agent/", "check/")):
            continue
        found += [
            f"{place}:{getattr(node, 'lineno', 0)} {sorted(_named(node))}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if len(_named(node)) > 1 and not (place == PARTS and isinstance(node, ast.Dict))
        ]
    assert found == []


def test_no_other_style_of_components() -> None:
    """Hand-written styles define neither a component's colour nor its class."""
    sheets = [SRC / "report" / "report.css", *FRONTEND.rglob("*.css")]
    named = re.compile(rf"(--(?:part-)?(?:{NAMES}):|\.(?:on-)?c-(?:{NAMES})(?![\w-]))")
    found = [f"{path.name}: {hit}" for path in sheets if not _made(path) for hit in named.findall(path.read_text())]
    assert found == []


def test_no_other_list_of_components_in_the_page() -> None:
    """No source of the page names two components, as strings, keys or colours."""
    named = re.compile(rf"""["'](?:--part-)?({NAMES})["']|^\s*({NAMES}):""", re.MULTILINE)
    for path in [*FRONTEND.rglob("*.ts"), *FRONTEND.rglob("*.tsx")]:
        if not _made(path):
            assert len({a or b for a, b in named.findall(path.read_text())}) < 2, path.name


def _made(path: Path) -> bool:
    return "generated" in path.relative_to(SRC.parents[1]).parts


def _named(node: ast.AST) -> set[str]:
    """Components that a node lists. What makes steps, and phases of a job, are called as some components are: these are
    other lists.
    """
    parts: list[ast.expr | ast.pattern | None] = []
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        parts = [*node.elts]
    elif isinstance(node, ast.Dict):
        parts = [*node.keys]
    elif isinstance(node, ast.MatchOr):
        parts = [p.value for p in node.patterns if isinstance(p, ast.MatchValue)]
    words = {str(p.value) for p in parts if isinstance(p, ast.Constant)}
    return words & set(COMPONENTS) if words not in (set(get_args(MakerKind)), set(PHASES)) else set()
