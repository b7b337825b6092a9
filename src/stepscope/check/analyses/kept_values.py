"""Whether the values that code reads, other than its arguments, are the same in each run: code traced once keeps them.

A tf.function reads Python numbers, arrays, lists and attributes while it is traced, and variables while it runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.quiet import FILLING, IN_PLACE
from stepscope.check.analyses.unchanged import rebound, stored
from stepscope.check.context import Context
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Class, Tag

_STATE = (
    Tag.VARIABLE,
    Tag.MODEL,
    Tag.LAYER,
    Tag.OPTIMIZER,
    Tag.FUNCTION,
    Tag.TENSOR,
    Tag.PY_SCALAR,
    Tag.BOOL,
    Tag.PY_STRING,
)
"""Tags of values that cannot be modified in place, or are read while the graph runs."""


def keeps(ctx: Context, code: ast.AST) -> bool:
    """Whether nothing that the code reads is changed anywhere in its file.

    No function binds such a name, no attribute is assigned outside an ``__init__``, no array or container is modified.
    """
    own = {n.arg for n in ast.walk(code) if isinstance(n, ast.arg)}
    own |= {n.id for n in ast.walk(code) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for node in ast.walk(code):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if not ctx.names(node) and stored(ctx, ctx.module, node.attr, inits=True):
                return False
        elif isinstance(node, ast.Name) and node.id not in own and _changed(ctx, node):
            return False
    return True


def _changed(ctx: Context, name: ast.Name) -> bool:
    return rebound(ctx, name.id) or (_fillable(ctx, name) and _filled(ctx, name.id))


def keeps_made(ctx: Context, made: ast.AST) -> bool:
    """The answer of ``keeps`` for a function, or for those that an expression wraps: ``tf.function(f)``, a lambda."""
    return all(keeps(at, code) for at, code in _code(ctx, made))


def changed_by(ctx: Context, expr: ast.AST, loop: Loop | None) -> bool:
    """Whether a loop's repeated code binds a name or assigns an attribute that an expression reads, or receives its
    container.

    Without a loop: whether anything but an ``__init__`` assigns the attribute.
    """
    names = {n.id for n in ast.walk(expr) if isinstance(n, ast.Name)}
    attributes = {n.attr for n in ast.walk(expr) if isinstance(n, ast.Attribute) and not ctx.names(n)}
    if loop is None:
        return any(stored(ctx, ctx.module, attr, inits=True) for attr in attributes)
    held = {n.value.id for n in ast.walk(expr) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)}
    start = ctx.at(loop.module)
    if any(_assigns(part, attributes) for part in loop.body):
        return True
    for at, call in start.functions.calls_below(loop.body):
        functions = [function for function in at.functions.callees(call.node) if function.name != "__init__"]
        if functions and any(isinstance(a, ast.Name) and a.id in held for a in call.node.args):
            return True
        for function in functions:
            if names & function.scope.shared or any(_assigns(part, attributes) for part in function.body):
                return True
    return False


def _assigns(part: ast.AST, attributes: set[str]) -> bool:
    return any(
        isinstance(n, ast.Attribute) and n.attr in attributes and not isinstance(n.ctx, ast.Load)
        for n in ast.walk(part)
    )


def _code(ctx: Context, made: ast.AST) -> Iterator[tuple[Context, ast.AST]]:
    if isinstance(made, ast.FunctionDef):
        yield ctx, made
        return
    for node in ast.walk(made):
        if isinstance(node, ast.Lambda):
            yield ctx, node
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            function = ctx.function(node)
            if function is not None:
                yield ctx.at(function.module), function.node


def _fillable(ctx: Context, name: ast.Name) -> bool:
    if any(isinstance(thing, (Function, Class)) for thing in ctx.things(name)) or ctx.names(name):
        return False
    value = ctx.value(name)
    return value.many or bool(value.parts) or value.tag not in _STATE


def _filled(ctx: Context, name: str) -> bool:
    """Whether an object is stored into by its name, or a method or project function may do so."""
    flow = ctx.module.flow
    for store in flow.stores:
        base: ast.AST = store
        while isinstance(base, (ast.Attribute, ast.Subscript)):
            base = base.value
        if isinstance(base, ast.Name) and base.id == name:
            return True
    for word, calls in flow.calls.items():
        for call in calls:
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            if word in FILLING | IN_PLACE and isinstance(receiver, ast.Name) and receiver.id == name:
                return True
            if any(isinstance(a, ast.Name) and a.id == name for a in call.args) and (
                word in IN_PLACE or ctx.functions.callees(call)
            ):
                return True
    return False
