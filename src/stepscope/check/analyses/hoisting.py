"""Plans that move what a loop makes repeatedly to a place where it is made once. Rules decide what may be moved."""

from __future__ import annotations

import ast
from collections.abc import Callable

from stepscope.check.analyses.kept_values import keeps_made
from stepscope.check.context import Context
from stepscope.check.hits import FixPlan
from stepscope.check.inference.loops import Loop
from stepscope.check.source.bindings import FUNCTIONS

ONCE = "It is computed once, also if the loop does not run at all."
_SCOPES = (*FUNCTIONS, ast.ClassDef)


Unchanging = Callable[[ast.expr], bool]
"""Predicate: an expression is the same in each iteration."""


def statement(
    ctx: Context, node: ast.AST, loop: Loop, *, behaviour: str = ONCE, also: Unchanging | None = None
) -> FixPlan | None:
    """Move ``name = node``, or a function, before the loop.

    It must be the only binding of the name and need nothing that the loop binds. Later assignments that then stay the
    same, by ``also``, move with it.
    """
    made = node if isinstance(node, ast.FunctionDef) else ctx.parent(node)
    if loop.via or not isinstance(made, ast.stmt) or not movable(ctx, made, loop) or not keeps_made(ctx, made):
        return None
    moved = [made]
    known = frozenset({_bound(made)})
    body = list(loop.node.body) if also is not None and isinstance(loop.node, (ast.For, ast.While)) else []
    for after in body[body.index(made) + 1 :] if made in body else ():
        if (
            also is not None
            and isinstance(after, ast.Assign)
            and also(after.value)
            and movable(ctx, after, loop, known)
        ):
            moved.append(after)
            known |= {_bound(after)}
    return ctx.fix(
        "hoist-statement",
        f"Make {_bound(made)} before the loop",
        *moved,
        loop.node,
        safety="unsafe",
        behaviour=behaviour,
    )


def expression(ctx: Context, node: ast.expr, loop: Loop, name: str, *, behaviour: str = ONCE) -> FixPlan | None:
    """Put ``name = node`` before the loop and the name in its place, if the node needs nothing that the loop binds."""
    if loop.via or not isinstance(loop.node, (ast.For, ast.While)) or not known_before(ctx, node, loop):
        return None
    parent = ctx.parent(node)
    while parent is not None and parent is not loop.node:
        if isinstance(parent, (*_SCOPES, ast.With, ast.AsyncWith)):
            return None
        parent = ctx.parent(parent)
    return ctx.fix(
        "hoist-expression",
        f"Make {name} before the loop",
        node,
        loop.node,
        safety="unsafe",
        behaviour=behaviour,
        name=name,
    )


def movable(ctx: Context, made: ast.stmt, loop: Loop, known: frozenset[str] = frozenset()) -> bool:
    """Whether a statement of the loop's own body is all that readers of its name get, and needs nothing that the loop
    binds.

    The statements in ``known`` move with it.
    """
    name = _bound(made)
    if not name or ctx.parent(made) is not loop.node or not known_before(ctx, _needs(made), loop, known):
        return False
    if not _read_alone(ctx, made, name):
        return False
    bound = [n for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Name) and n.id == name]
    return sum(not isinstance(n.ctx, ast.Load) for n in bound) == isinstance(made, ast.Assign)


def _read_alone(ctx: Context, made: ast.stmt, name: str) -> bool:
    """Whether all reads of the name get the value bound by the statement, never an earlier one."""
    scope = ctx.module.scope_of(made)
    own = {made, *(made.targets if isinstance(made, ast.Assign) else ())}
    if any(name in inner.shared for inner in ctx.module.flow.scopes.values()):
        return False
    reads = [
        n for n in ast.walk(scope.node) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
    ]
    return all(b.node in own for read in reads for b in ctx.definitions(read))


def known_before(ctx: Context, node: ast.AST, loop: Loop, known: frozenset[str] = frozenset()) -> bool:
    """Whether a node reads nothing bound by the loop, except its own names and those in ``known``."""
    own = _own(node) | known
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in own]
    return not any(ctx.loops.inside(b.node, loop) for n in names for b in ctx.definitions(n))


def _needs(made: ast.stmt) -> ast.AST:
    """The part of a statement that reads names: for an assignment its value."""
    return made.value if isinstance(made, ast.Assign) else made


def _own(node: ast.AST) -> set[str]:
    """Names that a node itself binds: arguments, variables, functions."""
    own = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    own |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return own | {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef)}


def out_of_function(ctx: Context, made: ast.stmt, title: str, behaviour: str) -> FixPlan | None:
    """Move a statement of a function's body that needs only names of the module above the function, or its class.

    None if the module already has the name, or another function binds or reads it.
    """
    outermost: ast.AST = made
    parent = ctx.parent(made)
    depth = 0
    while parent is not None and not isinstance(parent, ast.Module):
        if not isinstance(parent, _SCOPES):
            return None
        depth += isinstance(parent, FUNCTIONS)
        outermost, parent = parent, ctx.parent(parent)
    if depth != 1 or not isinstance(outermost, (ast.FunctionDef, ast.ClassDef)):
        return None
    name = _bound(made)
    function = ctx.enclosing(made)
    if not name or function is None or not _of_module(ctx, made, outermost) or not keeps_made(ctx, made):
        return None
    inside = set(ast.walk(function.node))
    if any(_names(n, name) for n in ast.walk(ctx.module.tree) if n not in inside):
        return None
    stored = [n for n in inside if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)]
    if len(stored) != isinstance(made, ast.Assign):
        return None
    return ctx.fix("hoist-statement", title, made, outermost, safety="unsafe", behaviour=behaviour)


def _bound(made: ast.stmt) -> str:
    """The one name that a statement binds."""
    if isinstance(made, ast.FunctionDef):
        return made.name
    if isinstance(made, ast.Assign) and len(made.targets) == 1 and isinstance(made.targets[0], ast.Name):
        return made.targets[0].id
    return ""


def _names(node: ast.AST, name: str) -> bool:
    """Whether a node binds or reads a name: as a variable, an argument, a function or an import."""
    if isinstance(node, ast.Name):
        return node.id == name
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == name
    return name in (getattr(node, "arg", None), getattr(node, "name", None))


def _of_module(ctx: Context, made: ast.stmt, place: ast.stmt) -> bool:
    """Whether every name that a statement reads is bound once by the module, above the place, or is a builtin."""
    own = _own(_needs(made))
    for node in ast.walk(_needs(made)):
        if not isinstance(node, ast.Name) or node.id in own or not isinstance(node.ctx, ast.Load):
            continue
        bindings = ctx.module.flow.module.bindings.get(node.id, [])
        found = ctx.definitions(node)
        if any(b.scope is not ctx.module.flow.module for b in found):
            return False
        if len(bindings) > 1 or any(getattr(b.node, "lineno", 0) >= place.lineno for b in bindings):
            return False
    return True
