"""Python of which it is known that it calls no framework, in jobs whose framework's calls are not measured.

The calls of PyTorch and JAX are mostly functions in C, which have no frame on a stack: of ``x @ w`` the user's line is
the innermost. So a sample there counts as Python only if its source proves it: each call of the line is a builtin, a
method that only lists, dictionaries, sets and texts have, or a function of the standard library or of a package that
works on arrays in memory. A sample in a function of these, which has a frame, counts, too.
"""

from __future__ import annotations

import ast
import builtins
import sys
from typing import TYPE_CHECKING

from stepscope.derive.python import loop_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stepscope.derive.python.stack_samples import Sample, Spot

    SourceOf = Callable[[str], str | None]

MIN_RATIO = 0.5
"""Share of a function's time from which it counts as such Python."""
_ARRAYS = frozenset({"numpy", "scipy", "pandas", "PIL", "cv2", "skimage", "sklearn", "matplotlib"})
"""Packages that call no framework."""
_BUILTINS = frozenset(dir(builtins)) - {"next", "iter", "getattr", "map", "filter", "print", "sorted"}
"""Functions that run nothing of their argument but what a line of Python does."""
_METHODS = frozenset({*dir(list), *dir(dict), *dir(set), *dir(str)}) - {
    *("add", "copy", "index", "sort", "split", "values", "clear", "get", "items", "keys", "update", "pop"),
}
"""Methods of Python's own types that tensors, modules and optimizers lack."""
_INSTALLED = "-packages/"


def share(taken: Iterable[Sample], source_of: SourceOf, *, arrays: bool) -> float:
    """Share of the samples' time in Python that calls no framework.

    Args:
        taken: the samples.
        source_of: the text of a user's file, None if it is not known.
        arrays: whether packages of arrays are none; they are what computes in a job of NumPy.
    """
    plain = _ARRAYS if arrays else frozenset()
    weights = {True: 0, False: 0}
    for sample in taken:
        weights[_is_known(sample, source_of, plain)] += sample.weight_ns
    return weights[True] / max(1, sum(weights.values()))


def _is_known(sample: Sample, source_of: SourceOf, plain: frozenset[str]) -> bool:
    """Whether a sample is in Python that calls no framework; ``plain``: packages that are none."""
    below = sample.below_user()
    if below:
        return all(_calls_none(frame, plain) for frame in below)
    culprit = sample.culprit
    source = source_of(culprit.file) if culprit is not None else None
    tree = loop_source.parsed(source) if source else None
    if culprit is None or tree is None:
        return False
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.lineno <= culprit.line <= (node.end_lineno or node.lineno)
    ]
    modules = _modules(tree)
    return bool(calls) and all(_is_plain(call.func, modules, plain) for call in calls)


def _calls_none(frame: Spot, plain: frozenset[str]) -> bool:
    """Whether a frame of no user code is of the standard library, or of a package of arrays."""
    path = frame.file.replace("\\", "/")
    _, installed, inside = path.rpartition(_INSTALLED)
    return inside.partition("/")[0] in plain if installed else "/python" in path or path.startswith("<frozen")


def _modules(tree: ast.Module) -> dict[str, str]:
    """The package behind each name that a file imports, or imports from."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                found[name.asname or name.name.partition(".")[0]] = name.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                found[name.asname or name.name] = node.module.partition(".")[0]
    return found


def _is_plain(function: ast.expr, modules: dict[str, str], plain: frozenset[str]) -> bool:
    """Whether what is called calls no framework."""
    parts = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        package = modules.get(function.id, "")
        if package:
            return package in plain or package in sys.stdlib_module_names
        if not parts:
            return function.id in _BUILTINS
    return bool(parts) and parts[0] in _METHODS
