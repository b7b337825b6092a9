"""One finding has one name in every layer."""

from __future__ import annotations

import ast
from pathlib import Path

import stepscope
from stepscope.detectors import registry

CAUSES = Path(stepscope.__file__).parent / "causes"


def test_a_cause_bears_the_name_of_its_detector_or_says_whom_it_serves() -> None:
    """Who reads a finding's name finds why it was made; what explains several has a noun of its own, and says so."""
    names = {detector.name.replace("-", "_") for detector in registry.EVERY}
    others = [path for path in CAUSES.rglob("*.py") if path.stem not in {*names, "__init__"}]
    docs = {path.stem: ast.get_docstring(ast.parse(path.read_text())) or "" for path in others}
    assert [name for name, doc in docs.items() if "\nServes " not in doc] == []
