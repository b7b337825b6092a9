"""Gradients computed one variable at a time: each call repeats the backward pass.

Only in eager code: in a graph equal nodes are merged.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.python import loop_source, stack_samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stepscope.derive.python.stack_samples import Sample

TAPE = "/eager/backprop.py"
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class SeparateGradients(Struct, frozen=True, kw_only=True):
    """The calls of one statement."""

    file: str
    function: str
    line: int
    ratio: float
    """Share of the time of all samples of the steady steps."""
    samples: int
    """Number of samples in the statement; ``of`` counts all samples."""
    of: int


def build(taken: Sequence[Sample], sources: Mapping[str, str]) -> SeparateGradients | None:
    """The costliest statement; None if there is none."""
    weight: Counter[tuple[str, str, int]] = Counter()
    count: Counter[tuple[str, str, int]] = Counter()
    for sample in taken:
        spot = sample.culprit
        if spot is not None and any(TAPE in f.file and f.function.endswith("gradient") for f in sample.below_user()):
            weight[spot.file, spot.function, spot.line] += sample.weight_ns
            count[spot.file, spot.function, spot.line] += 1
    for place, spent in weight.most_common():
        if place[0] in sources and asks_for_one(sources[place[0]], place[2]):
            file, function, line = place
            ratio = spent / stack_samples.weight_of(taken)
            return SeparateGradients(
                file=file, function=function, line=line, ratio=ratio, samples=count[place], of=len(taken)
            )
    return None


def asks_for_one(source: str, line: int) -> bool:
    """Whether a loop or comprehension at a line computes the gradient of the same target with respect to its loop
    variable.
    """
    tree = loop_source.parsed(source)
    return tree is not None and any(_separate(call, through, made) for call, through, made in _in_loops(tree, line))


def _in_loops(tree: ast.Module, line: int) -> Iterator[tuple[ast.Call, frozenset[str], frozenset[str]]]:
    """Calls at a line inside a loop, the loop's variables, and those plus the names that it binds in each iteration."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            through = _names([node.target])
        elif isinstance(node, _COMPREHENSIONS):
            through = _names([part.target for part in node.generators])
        else:
            continue
        made = frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and call.lineno <= line <= (call.end_lineno or call.lineno):
                yield call, through, made


def _separate(call: ast.Call, through: frozenset[str], made: frozenset[str]) -> bool:
    """Whether it is ``tape.gradient(loss, variable)`` in a loop through the variables with a constant loss."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "gradient"):
        return False
    given = {word.arg: word.value for word in call.keywords}
    target = call.args[0] if call.args else given.get("target")
    sources = call.args[1] if len(call.args) > 1 else given.get("sources")
    if target is None or sources is None:
        return False
    return not _names([target, call.func.value]) & made and bool(_names([sources]) & through)


def _names(nodes: Iterable[ast.expr]) -> frozenset[str]:
    return frozenset(n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name))
