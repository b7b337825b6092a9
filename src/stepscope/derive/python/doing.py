"""What a hot spot of the user's Python does: the function that it calls, in one or two words.

A function of a library has a frame on the stacks: it is named if more than half of the time is in it, by the interval
of the samples. A function written in C has none: then the calls of the line with more than half of the time are named,
as its source has them. A library's private function is named by the call in the source that reaches it, or not at all.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stepscope.derive.numeric import proportion
from stepscope.derive.python import loop_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stepscope.derive.python.hot_spots import HotSpot

    SourceOf = Callable[[str], str | None]

MIN_RATIO = 0.5
"""Share of the spot's time that a callee must have at least to be named, by the lower end of its interval."""
MOST = 2
"""A line with more calls names none: which of them takes the time is not known."""
_PLAIN = frozenset({"enumerate", "float", "int", "isinstance", "len", "range", "str", "zip"})
"""Calls that hardly take time."""
_UNNAMED = frozenset({"wrapper", "<lambda>", "<listcomp>", "<genexpr>", "__call__", "error_handler", "call"})
"""Names of functions that say nothing about what they do."""


def of_spot(spot: HotSpot, source_of: SourceOf) -> str:
    """The same as ``build``, for a hot spot."""
    return build(spot.culprit.file, spot.most, _sure(spot), source_of)


def callee(spot: HotSpot, source_of: SourceOf) -> str:
    """The one function that most of a hot spot's time is in; "" without one."""
    called = _sure(spot)
    return _callee(called, _names(spot.culprit.file, spot.most, source_of)) if called else ""


def sure(called: str, ratio: float, samples: float) -> str:
    """A function with a share of the time, if that is more than half by its interval; else ""."""
    low, _ = proportion.interval(ratio, samples)
    return called if low >= MIN_RATIO else ""


def _sure(spot: HotSpot) -> str:
    return sure(spot.called, spot.called_ratio, spot.effective)


def build(file: str, lines: Sequence[int], called: str, source_of: SourceOf) -> str:
    """``copy.deepcopy``, or ``np.sort, np.diff``; "" if nothing is known.

    Args:
        file: of the user's lines.
        lines: the fewest that have most of the time.
        called: function with a frame below them that has most of the time; "" without one.
        source_of: the text of a user's file, None if it is not known.
    """
    names = _names(file, lines, source_of)
    if called:
        return _callee(called, names)
    return ", ".join(names) if len(lines) == 1 and len(names) <= MOST else ""


def public(called: str) -> str:
    """The name of a library's function without its class; "" for a private one, which the user's code does not call."""
    name = called.rpartition(".")[2]
    return "" if name.startswith("_") else name


def _callee(called: str, names: Sequence[str]) -> str:
    """A function by the text of its call, else by its name; "" if it says nothing."""
    name = called.rpartition(".")[2]
    if name in _UNNAMED:
        return ""
    written = next((one for one in names if _last(one) == name), "")
    if written or not name.startswith("_"):
        return written or name
    if name.startswith("__"):
        owner = called.split(".")[-2:-1]
        return ".".join((*owner, name)) if owner and not owner[0].startswith("_") else ""
    behind = [one for one in names if f"{name[1:]}_".startswith(f"{_last(one)}_")] or names
    return behind[0] if len(behind) == 1 else ""


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _names(file: str, lines: Sequence[int], source_of: SourceOf) -> list[str]:
    """What is called on some lines, each once, without what hardly takes time."""
    source = source_of(file)
    tree = loop_source.parsed(source) if source else None
    calls = (name for line in lines for name in _calls(tree, line)) if tree is not None else ()
    return list(dict.fromkeys(name for name in calls if name not in _PLAIN))


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
