"""Walls between packages: what others may import of one stands in its README."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import stepscope

SRC = Path(stepscope.__file__).parent
WALLED = ("agent", "check", "clocks", "native", "readers", "sandbox", "wire")
PUBLIC = re.compile(r"^Public: (.*?)\.$", re.MULTILINE | re.DOTALL)


def _said(package: str) -> set[str]:
    """Modules that the README calls public."""
    found = PUBLIC.search((SRC / package / "README.md").read_text(encoding="utf-8"))
    return set(re.findall(r"`([\w.]+)`", found[1])) if found else set()


def _imported(tree: ast.AST, package: str) -> set[str]:
    """Modules of a package that a file imports."""
    begin = f"stepscope.{package}"
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{begin}."):
            names |= {_module(f"{node.module}.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if f"{alias.name}.".startswith(f"{begin}.")}
    return {name.removeprefix(f"{begin}.") for name in names}


def _module(name: str) -> str:
    """A module, of its name or that of a thing in it."""
    path = SRC.joinpath(*name.split(".")[1:])
    return name if path.is_dir() or path.with_suffix(".py").is_file() else name.rpartition(".")[0]


@pytest.mark.parametrize("package", WALLED)
def test_others_import_what_is_public(package: str) -> None:
    """All that is public is used, too: what nobody else needs is private."""
    others = [path for path in SRC.rglob("*.py") if path.relative_to(SRC).parts[0] != package]
    found = {name for path in others for name in _imported(ast.parse(path.read_text(encoding="utf-8")), package)}
    assert found == _said(package)
