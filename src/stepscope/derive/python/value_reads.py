"""Whether a function reads a tensor's value into Python, which no graph can do.

Read from the session's copy of its file, helpers of the same file that it names included. By the method's name: a type
is not known, but nothing else in common use has ``.numpy()``.
"""

from __future__ import annotations

import ast
from typing import TypeGuard

from stepscope.derive.python import loop_source, random_draws


def of_function(source: str, line: int) -> tuple[str, int] | None:
    """The first such call of the function around ``line``, as the source has it, with its line; None: none is seen."""
    tree = loop_source.parsed(source)
    if tree is None:
        return None
    for function in random_draws.reached(tree, line):
        reads = [node for node in ast.walk(function) if _reads(node)]
        if reads:
            first = min(reads, key=lambda node: node.lineno)
            return ast.unparse(first), first.lineno
    return None


def _reads(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "numpy"
        and not node.args
    )
