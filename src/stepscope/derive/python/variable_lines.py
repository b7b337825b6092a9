"""The line of a program that makes a variable grow, or gives it its value, by its name in the source."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_GROW = frozenset({"append", "extend", "add", "insert", "update", "appendleft", "setdefault", "put", "add_sample"})
"""Methods that add to a container."""
_COPIES = frozenset({"array", "asarray", "stack", "vstack", "hstack", "concatenate", "concat", "convert_to_tensor"})
"""Functions of numpy and TensorFlow that make one array of several."""
_TENSORS = frozenset({"Variable", "constant", "from_tensors", "from_tensor_slices", "cast"})
"""Further ones that make a tensor, or another array, of one."""


def line_of(source: str, function: str, name: str) -> int:
    """Number of the line; 0 if the source does not show one.

    Args:
        source: text of the file.
        function: qualified name of the function that has the variable; ``<module>`` for one of the file's own.
        name: the variable, or ``variable.attribute``: then lines about that attribute count wherever they stand.
    """
    try:
        tree: ast.AST = ast.parse(source)
    except (SyntaxError, ValueError):
        return 0
    _, dot, attribute = name.partition(".")
    inside = tree if dot or function == "<module>" else _function(tree, function.rpartition(".")[2])
    wanted = attribute or name
    grows: list[int] = []
    made: list[int] = []
    for node in ast.walk(inside):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _GROW and _names(node.func.value) == wanted:
                grows.append(node.lineno)
        elif isinstance(node, ast.AugAssign) and _names(node.target) == wanted:
            grows.append(node.lineno)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and _names(target.value) == wanted:
                    grows.append(node.lineno)
                made += [node.lineno for part in _parts(target) if _names(part) == wanted]
        elif isinstance(node, ast.AnnAssign) and node.value is not None and _names(node.target) == wanted:
            made.append(node.lineno)
    return next(iter([*grows, *reversed(made)]), 0)


def is_copied(source: str, function: str, name: str) -> bool:
    """Whether the function makes one array of a container: ``np.array(images)``, ``tf.stack(images)``."""
    try:
        tree: ast.AST = ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    for node in ast.walk(tree if function == "<module>" else _function(tree, function.rpartition(".")[2])):
        if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
            copied = node.func.attr in _COPIES and _names(node.args[0]) == name.rpartition(".")[2]
            if copied:
                return True
    return False


def copy_at(source: str, line: int, names: Collection[str]) -> str:
    """The call in a line that makes a tensor or an array of a variable: ``tf.Variable(x)``; "" without one."""
    try:
        tree: ast.AST = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        if node.args and _names(node.func) in (_COPIES | _TENSORS) and _names(node.args[0]) in names:
            return f"{ast.unparse(node.func)}({ast.unparse(node.args[0])})"
    return ""


def _parts(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _names(node: ast.expr) -> str:
    """The name of a variable or of an attribute; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _function(tree: ast.AST, name: str) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            return node
    return tree
