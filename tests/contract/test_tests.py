"""Tests stand where what they test stands, and share by plain modules."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

registry = importlib.import_module("stepscope.detectors.registry")


def _places() -> dict[str, str]:
    """The module of each detector by the file of its tests: ``detectors/<family>/test_<module>.py``."""
    modules = [detector.detect.__module__ for detector in registry.EVERY]
    return {"detectors/{}/test_{}.py".format(*module.split(".")[-2:]): module for module in modules}


def test_every_detector_has_its_file_of_tests() -> None:
    """And every file of tests in a family's folder its detector."""
    files = {path.relative_to(TESTS).as_posix() for path in (TESTS / "detectors").glob("*/*.py")}
    assert files == set(_places())


@pytest.mark.parametrize(("file", "module"), _places().items(), ids=_places())
def test_a_detector_is_tested_with_its_fixtures(file: str, module: str) -> None:
    """All claims of ``tests/detectors/fixture.py`` are made of the detector's own fixtures."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    lines = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, (ast.ImportFrom, ast.expr))}
    assert f"from {module} import DETECTOR" in lines
    assert {"pytest.mark.parametrize('claim', CLAIMS)", "claim(DETECTOR, FIXTURES)"} <= lines


def _imported(node: ast.AST) -> list[str]:
    """The dotted parts of what a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [*(node.module or "").split("."), *(alias.name for alias in node.names)]
    return [part for alias in node.names for part in alias.name.split(".")] if isinstance(node, ast.Import) else []


def test_nothing_is_imported_from_tests() -> None:
    """What several files of tests need stands in a module that holds no test, or in a conftest."""
    found = [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for path in TESTS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any(part.startswith("test_") for part in _imported(node))
    ]
    assert found == []
