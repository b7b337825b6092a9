"""What a hot spot of the user's Python does: the function that it calls, in one or two words.

A function of a library has a frame on the stacks. A function written in C has none: then the calls of the
sampled line are named, as its source has them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stepscope.derive.python import loop_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepscope.derive.python.hot_spots import HotSpot

    SourceOf = Callable[[str], str | None]

MIN_RATIO = 0.5
"""Share of the spot's time that a callee must have to be named."""
MOST = 2
"""Number of calls named of one line."""
_PLAIN = frozenset({"enumerate", "float", "int", "isinstance", "len", "range", "str", "zip"})
"""Calls that hardly take time."""
_UNNAMED = frozenset({"wrapper", "<lambda>", "<listcomp>", "<genexpr>", "__call__", "error_handler", "call"})
"""Names of functions that say nothing about what they do."""


def of_spot(spot: HotSpot, source_of: SourceOf) -> str:
    """The same as ``build``, for a hot spot."""
    culprit = spot.culprit
    return build(culprit.file, culprit.line, spot.called, spot.called_ratio, source_of)


def build(file: str, line: int, called: str, called_ratio: float, source_of: SourceOf) -> str:
    """``copy.deepcopy``, or ``np.sort, np.diff``; "" if nothing is known.

    Args:
        file: of the user's line.
        line: that was sampled most.
        called: function that has a frame below it most often.
        called_ratio: its share of the time.
        source_of: the text of a user's file, None if it is not known.
    """
    source = source_of(file)
    tree = loop_source.parsed(source) if source else None
    names = dict.fromkeys(name for name in (_calls(tree, line) if tree is not None else ()) if name not in _PLAIN)
    name = called.rpartition(".")[2]
    if not name or called_ratio < MIN_RATIO:
        return ", ".join(list(names)[:MOST])
    if name in _UNNAMED:
        return ""
    if name.startswith("__"):
        return ".".join(called.split(".")[-2:])
    return next((one for one in names if one.endswith(f".{name}")), name)


def _calls(tree: ast.Module, line: int) -> Iterator[str]:
    """Names of what is called on a line, the outermost call first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno):
            name = _dotted(node.func)
            if name and _in_line(node, line):
                yield name


def _in_line(call: ast.Call, line: int) -> bool:
    """Whether the name of what is called stands on the line: calls around it may begin above."""
    return (call.func.end_lineno or call.func.lineno) == line


def _dotted(function: ast.expr) -> str:
    """``np.linalg.norm``; of a method of a result its name alone; "" for anything else."""
    if isinstance(function, ast.Name):
        return function.id
    if not isinstance(function, ast.Attribute):
        return ""
    before = _dotted(function.value)
    return f"{before}.{function.attr}" if before else function.attr
