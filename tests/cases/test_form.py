"""Cases are well-formed, and nothing in the tool knows them."""

import ast
import re
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from stepscope.tables.findings import Cause, PipelineStage, Stage, Symptom

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
CASES = sorted(path.parent for path in (ROOT / "bench" / "cases").glob("**/case.toml"))
FIELDS = {
    "id", "title", "source", "api", "symptom", "cause", "introduced_stage", "exposed_stage", "pipeline_stage",
    "expect", "expect_keywords", "wrong_answers", "static_catchable", "where", "measured", "finding",
}  # fmt: skip
WORDS = {
    "symptom": get_args(Symptom),
    "cause": get_args(Cause),
    "introduced_stage": get_args(Stage),
    "exposed_stage": get_args(Stage),
    "pipeline_stage": get_args(PipelineStage),
}


def _known(folder: Path) -> dict[str, Any]:
    known: dict[str, Any] = tomllib.loads((folder / "case.toml").read_text())
    return known


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_a_case_is_complete(folder: Path) -> None:
    """A case has every field, the codebook's words, culprit lines that exist, and a measured ratio that matters."""
    known = _known(folder)
    assert set(known) - {"also_causes", "needs_libraries"} == FIELDS
    assert known["id"] == folder.name
    if not known["finding"]:
        assert (folder / "clean.py").exists() or (folder / "clean.sh").exists()
        return
    assert {field: known[field] for field, words in WORDS.items() if known[field] not in words} == {}
    assert set(known.get("also_causes", ())) <= set(WORDS["cause"])
    assert known["measured"]["ratio"] > 1.05 or known["symptom"].startswith("Memory")
    for place in known["where"]:
        lines = (folder / place["file"]).read_text().splitlines()
        assert 1 <= place["line"] <= place["end_line"] <= len(lines)


@pytest.mark.parametrize(
    "program", sorted((ROOT / "bench" / "cases").glob("**/*.py")), ids=lambda path: path.parent.name
)
def test_a_program_runs_on_the_oldest_python(program: Path) -> None:
    """Programs use no grammar newer than Python 3.9, because jobs' Pythons are that old."""
    ast.parse(program.read_text(), feature_version=(3, 9))


def test_pairs_differ() -> None:
    """The slow and the fixed program are two files that differ."""
    for folder in CASES:
        for suffix in (".py", ".sh"):
            slow, fixed = folder / f"slow{suffix}", folder / f"fixed{suffix}"
            if slow.exists():
                assert slow.read_text() != fixed.read_text()


def test_the_tool_knows_no_case() -> None:
    """No class of a case's program, if its name is of two words or more, is named in the package."""
    names = set()
    for program in (ROOT / "bench" / "cases").glob("**/*.py"):
        tree = ast.parse(program.read_text())
        names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    peculiar = {name for name in names if len(re.findall(r"[A-Z][a-z]+", name)) > 1}
    assert len(peculiar) > 10
    assert [name for name in sorted(peculiar) if re.search(rf"\b{name}\b", source)] == []
