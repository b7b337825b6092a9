"""Small helpers for syntax trees: children, defaults, stored names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from stepscope.check.source.bindings import COMPREHENSIONS, FUNCTIONS, FunctionNode

_NO_NODES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment"})
"""Fields that hold operators, contexts and plain values."""
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def children(node: ast.AST) -> list[ast.AST]:
    """The direct children of a node in source order, without operators and contexts."""
    fields = _FIELDS.get(type(node))
    if fields is None:
        fields = _FIELDS[type(node)] = tuple(field for field in node._fields if field not in _NO_NODES)
    found: list[ast.AST] = []
    for field in fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def defaults(args: ast.arguments) -> list[ast.expr]:
    """Default values of parameters."""
    return [*args.defaults, *(d for d in args.kw_defaults if d is not None)]


def default(args: ast.arguments, name: str) -> ast.expr | None:
    """The default of a parameter."""
    positional = [*args.posonlyargs, *args.args]
    for arg, value in zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True):
        if arg.arg == name:
            return value
    for arg, given in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if arg.arg == name:
            return given
    return None


def annotations_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """Annotations of parameters and result."""
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *(a for a in (args.vararg, args.kwarg) if a is not None)]
    found = [a.annotation for a in every if a.annotation is not None]
    return [*found, node.returns] if node.returns is not None else found


def stored_names(node: ast.AST) -> set[str]:
    """Names that a statement's own scope binds somewhere inside it."""
    found: set[str] = set()
    todo: list[ast.AST] = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, ast.Name):
            if not isinstance(part.ctx, ast.Load):
                found.add(part.id)
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(part.name)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            found.update(a.asname or a.name.partition(".")[0] for a in part.names)
        elif not isinstance(part, (ast.Lambda, ast.Constant, *COMPREHENSIONS)):
            todo += children(part)
    return found


def absolute(module: str, level: int, package: str) -> str:
    """The module that an import names; ``level`` is the number of leading dots."""
    if level == 0:
        return module
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - (level - 1)]
    return ".".join([*kept, module] if module else kept)


def walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Nodes and all their descendants in source order, without the bodies of functions and classes defined there."""
    todo: list[ast.AST] = list(nodes)[::-1]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            todo += children(node)[::-1]


def leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body, unless something in it fails, ends the loop in its first iteration: ``break``, ``return``.

    ``while True: try: train(); break; except Unavailable: continue`` is such a loop: it repeats only what failed.
    """
    return _ends(statements) and not any(_goes_round(statement) for statement in statements)


def _ends(statements: Sequence[ast.stmt]) -> bool:
    last = statements[-1] if statements else None
    if isinstance(last, ast.Try):
        return _ends(last.finalbody) or _ends(last.orelse or last.body)
    if isinstance(last, (ast.With, ast.AsyncWith)):
        return _ends(last.body)
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, (ast.Break, ast.Return, ast.Raise))


def _goes_round(node: ast.AST) -> bool:
    """Whether a ``continue`` of the loop around a node is reached without an exception."""
    if isinstance(node, (ast.ExceptHandler, ast.For, ast.AsyncFor, ast.While, ast.expr, *FUNCTIONS, ast.ClassDef)):
        return False
    return isinstance(node, ast.Continue) or any(_goes_round(child) for child in children(node))


def last_word(expr: ast.expr) -> str:
    """The last word of a dotted expression: ``map`` in ``a.b.map``; "" for anything else."""
    return expr.attr if isinstance(expr, ast.Attribute) else expr.id if isinstance(expr, ast.Name) else ""


def argument(call: ast.Call, index: int, keyword: str) -> ast.expr | None:
    """An argument of a call by position or keyword; None if it is not given, or hidden behind a star."""
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    before = call.args[: index + 1]
    if 0 <= index < len(call.args) and not any(isinstance(a, ast.Starred) for a in before):
        return call.args[index]
    return None


def function_body(function: FunctionNode) -> list[ast.AST]:
    """The statements, or the expression of a lambda."""
    return [function.body] if isinstance(function, ast.Lambda) else list(function.body)
