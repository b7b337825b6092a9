"""What stands between two lines of a module that import: nothing but imports, or code that may take time."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from stepscope.derive.python import loop_source

if TYPE_CHECKING:
    from collections.abc import Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef)
_QUICK = frozenset({"os", "sys", "logging", "warnings"})
"""Modules whose functions are called among imports, to set something."""


@lru_cache(maxsize=64)
def only_imports(source: str | None, first: int, last: int) -> bool:
    """Whether the statements after the one of line ``first`` and before the one of ``last`` take no time: of the
    innermost function around the first line, else of the module.

    Without the source, lines that follow each other have nothing between them.
    """
    tree = loop_source.parsed(source) if source else None
    if tree is None:
        return last == first + 1
    if last <= first:
        return False
    inside = [n for n in ast.walk(tree) if isinstance(n, _DEFINED) and n.lineno < first <= (n.end_lineno or n.lineno)]
    body = max(inside, key=lambda n: n.lineno, default=tree)
    return not any(
        _takes_time(node)
        for node in _run_on_import(body)
        if node.lineno > first and (node.end_lineno or node.lineno) < last
    )


def statement_imports(source: str | None, line: int) -> tuple[str, ...]:
    """Packages that the import statement at a line names; none if there is no such statement."""
    tree = loop_source.parsed(source) if source else None
    if tree is None:
        return ()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node.lineno <= line <= (node.end_lineno or node.lineno):
            names = [node.module or "."] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
            return tuple(dict.fromkeys(name.partition(".")[0] for name in names))
    return ()


def _run_on_import(tree: ast.AST) -> Iterator[ast.stmt | ast.expr]:
    """Statements and expressions outside of bodies of functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.expr):
            yield node
        if isinstance(node, _FUNCTIONS):
            for decorator in getattr(node, "decorator_list", ()):
                yield decorator
                yield from _run_on_import(decorator)
        else:
            yield from _run_on_import(node)


def _takes_time(node: ast.stmt | ast.expr) -> bool:
    """Whether it calls something, or repeats."""
    if isinstance(node, ast.Call):
        return _root(node.func) not in _QUICK
    return isinstance(node, ast.For | ast.While)


def _root(function: ast.expr) -> str:
    while isinstance(function, ast.Attribute):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""
