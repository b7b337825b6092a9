"""Whether Python repeatedly writes variables outside any graph, so that no graph shows the write.

Such a write is a call that sets values (``v.assign``, ``model.set_weights``, an optimizer in eager code) in a loop, or
in a function that may run again, on a line that made no graph node. Writes in a tf.function have nodes; writes in the
program's own straight-line code run once. Which variable is written is not determined.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stepscope.derive.graph.index import GraphIndex

WRITES = frozenset(
    [
        *("assign", "assign_add", "assign_sub", "scatter_update", "scatter_add", "scatter_nd_update", "scatter_nd_add"),
        *("set_weights", "set_value", "load_weights", "apply_gradients", "minimize"),
    ]
)
"""TensorFlow and Keras methods and functions that set variables."""
_ONCE = frozenset({"__init__", "build", "main"})
"""Functions that run once, or in which variables are made."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def present(index: GraphIndex, sources: Mapping[str, str]) -> bool:
    """Whether any line of the sources, by absolute path, writes variables in Python."""
    found = {(file, lines) for file, text in sources.items() for lines in _written(text)}
    if not found:
        return False
    table = index.table
    made = {(table.text(table.file, row), int(line)) for row, line in enumerate(table.line.tolist()) if line}
    return any(not any((file, line) in made for line in range(first, last + 1)) for file, (first, last) in found)


def _written(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of the calls that may write more than once."""
    if not any(f"{word}(" in text for word in WRITES):
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    todo: list[tuple[ast.AST, bool]] = [(tree, False)]
    while todo:
        node, again = todo.pop()
        if isinstance(node, ast.Call) and again:
            func = node.func
            word = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
            if word in WRITES:
                yield node.lineno, node.end_lineno or node.lineno
        if isinstance(node, _FUNCTIONS):
            again = getattr(node, "name", "") not in _ONCE
        todo += [(child, again or isinstance(node, _LOOPS)) for child in ast.iter_child_nodes(node)]
