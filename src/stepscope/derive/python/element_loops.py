"""Loops whose turns do not need each other's results, so that one computation on whole arrays could replace them.

From the source alone: names that a turn reads before it binds them are carried from turn to turn. What a turn appends
to, or adds to a sum, carries nothing that another turn reads.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.python import loop_source

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PARTS_OF_MODELS = frozenset(
    {
        "gradients",
        "grads",
        "layers",
        "models",
        "trainable_variables",
        "trainable_weights",
        "variables",
        "weights",
    }
)
"""Names of what a loop goes over if its turns work on different variables: no arrays could hold them all."""


class LoopLines(Struct, frozen=True):
    """First and last line of a loop."""

    first: int
    last: int
    independent: bool = True
    """Whether no turn needs the result of another, and it goes over no parts of a model."""


def around(source: str, line: int) -> tuple[LoopLines, ...]:
    """The loops around a line within its innermost function whose turns are independent, innermost first.

    The first loop that carries a result, or that goes over parts of a model, ends the list.
    """
    return tuple(itertools.takewhile(lambda loop: loop.independent, every(source, line)))


def every(source: str, line: int) -> tuple[LoopLines, ...]:
    """All loops around a line within its innermost function, innermost first."""
    tree = loop_source.parsed(source)
    if tree is None:
        return ()
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.stmt | ast.expr) and n.lineno <= line <= _last(n)]
    owner = max((n.lineno for n in nodes if isinstance(n, _FUNCTIONS)), default=0)
    kinds = (ast.For, ast.While, *_COMPREHENSIONS)
    loops = sorted(
        (n for n in nodes if isinstance(n, kinds) and n.lineno >= owner), key=lambda n: (-n.lineno, _last(n))
    )
    return tuple(LoopLines(loop.lineno, _last(loop), _independent(loop)) for loop in loops)


def reads_target(source: str, loop: LoopLines) -> bool:
    """Whether the turns of a loop read what it goes over: one that does not does the same in each."""
    tree = loop_source.parsed(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.For) and (node.lineno, _last(node)) == (loop.first, loop.last):
            return bool(set(_bound([node.target])) & set().union(*map(_read, node.body)))
        if isinstance(node, _COMPREHENSIONS) and (node.lineno, _last(node)) == (loop.first, loop.last):
            targets = set(_bound([one.target for one in node.generators]))
            return bool(targets & {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _loads(n)})
    return False


def keeps_state(source: str, line: int) -> bool:
    """Whether the innermost function around a line sets an attribute, or a name of another one, that it also reads: its
    next call may need what this one leaves.
    """
    tree = loop_source.parsed(source)
    around = [n for n in ast.walk(tree) if isinstance(n, _DEFINED) and n.lineno <= line <= _last(n)] if tree else []
    if not around:
        return False
    inside = list(ast.walk(max(around, key=lambda n: n.lineno)))
    foreign = {name for n in inside if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
    names = [(_name(n), _loads(n)) for n in inside if isinstance(n, ast.Attribute) or getattr(n, "id", "") in foreign]
    return bool({name for name, loads in names if loads} & {name for name, loads in names if not loads})


def _loads(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def calls(source: str, loop: LoopLines, name: str) -> bool:
    """Whether a loop holds a call of a function or method of this name."""
    tree = loop_source.parsed(source)
    found = (
        (n.func for n in ast.walk(tree) if isinstance(n, ast.Call) and loop.first <= n.lineno <= loop.last)
        if tree
        else ()
    )
    return any(name == (f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")) for f in found)


def _last(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def _independent(loop: ast.stmt | ast.expr) -> bool:
    if isinstance(loop, _COMPREHENSIONS):
        return not any(_over_parts(one.iter) for one in loop.generators)
    if not isinstance(loop, ast.For) or _over_parts(loop.iter) or any(isinstance(n, ast.Break) for n in ast.walk(loop)):
        return False
    bound = set(_bound([loop.target]))
    later = set(_bound(loop.body))
    for statement in _simple(loop.body):
        if any(name in later and name not in bound for name in _read(statement)):
            return False
        bound |= set(_bound([statement]))
    return True


def _over_parts(iterable: ast.expr) -> bool:
    """Whether something that a loop goes over is named like variables or layers."""
    names = (n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(iterable))
    return any(name.rpartition("_")[2] in _PARTS_OF_MODELS or name in _PARTS_OF_MODELS for name in names)


def _simple(body: Iterable[ast.stmt]) -> Iterable[ast.AST]:
    """The parts of statements in the order in which they run: the head of a compound one, then its body."""
    for statement in body:
        if isinstance(statement, ast.For):
            yield statement.iter
            yield statement.target
        elif isinstance(statement, ast.While | ast.If):
            yield statement.test
        elif isinstance(statement, ast.With):
            yield from statement.items
        elif not isinstance(statement, ast.Try):
            yield statement
            continue
        for name in ("body", "orelse", "handlers", "finalbody"):
            inner = getattr(statement, name, ())
            yield from _simple([n for n in inner if isinstance(n, ast.stmt)])


def _read(node: ast.AST) -> set[str]:
    """Names whose values a statement needs. An item that is set needs its container, but no value of it."""
    set_in = {id(n.value) for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)}
    return {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in set_in
    }


def _bound(nodes: Iterable[ast.AST]) -> Iterable[str]:
    """Names that are bound, or of which an item is set."""
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                yield inner.id
            elif isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store):
                yield from (inner.value.id,) if isinstance(inner.value, ast.Name) else ()
