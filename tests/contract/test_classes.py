"""A class is a concept: what it offers can be read in one look."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import stepscope

SRC = Path(stepscope.__file__).parent
MOST_MEMBERS = 25
TABLES = frozenset({"Enum", "IntEnum", "IntFlag", "Event", "Table"})
"""Bases of classes whose fields are words of a list or columns: methods alone count, as in what ``STORED`` has."""
STORED = SRC / "model"
"""Records here are stored or sent: their fields are keys of a format."""


def _last(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _members(cls: ast.ClassDef, *, stored: bool) -> set[str]:
    """Public methods and properties, and attributes: declared in the class, or set by its ``__init__``."""
    methods = [node for node in cls.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = {node.name for node in methods}
    bases = {_last(base) for base in cls.bases}
    if not (TABLES & bases or (stored and "Struct" in bases)):
        made = [node for method in methods if method.name == "__init__" for node in ast.walk(method)]
        found |= {node.attr for node in made if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
        fields = [node.target for node in cls.body if isinstance(node, ast.AnnAssign)]
        found |= {node.id for node in fields if isinstance(node, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def test_classes_have_few_members() -> None:
    """At most 25 public ones each."""
    counts = {
        f"{path.relative_to(SRC)}:{node.name}": len(_members(node, stored=path.is_relative_to(STORED)))
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    assert {name: count for name, count in counts.items() if count > MOST_MEMBERS} == {}


def before_the_job() -> set[Path]:
    """Modules that are imported before a job is started: they need the standard library and click alone."""
    ours = "stepscope.cli.main, stepscope.cli.run, stepscope.use_cases.record"
    code = f"import sys, {ours}; print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('stepscope')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {Path(name) for name in done.stdout.split()}


def test_records_are_structs() -> None:
    """A dataclass stands only where a Struct cannot (docs/decisions/0113): each costs a millisecond of every start."""
    light = before_the_job()
    needless = [
        f"{path.relative_to(SRC)}:{node.name}"
        for path in SRC.rglob("*.py")
        if not path.is_relative_to(SRC / "agent") and path not in light
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any("dataclass" in ast.unparse(one) for one in node.decorator_list)
        and not any(word in ast.unparse(node) for word in ("@cached_property", "field(init=False"))
    ]
    assert needless == []
