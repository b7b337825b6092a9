"""Whether an expression is the same in every iteration of a loop, including a loop around the callers of its
function.

It builds on ``inference.loops.varies``, which answers for one file. ``analyses.unchanged`` asks for the value, not only
the object: use it before code is moved out of a loop.
"""

from __future__ import annotations

import ast

from stepscope.check.analyses.kept_values import changed_by
from stepscope.check.context import Context
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Class
from stepscope.check.inference.values import passed
from stepscope.check.source.bindings import Binding
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import default

MAX_DEPTH = 12
_PURE = ("os.path.", "pathlib.", "str.", "math.", "os.environ", "os.getenv")
_PURE_BUILTINS = frozenset({"str", "int", "float", "len", "dict", "list", "tuple", "min", "max", "abs", "round"})
_PURE_METHODS = frozenset({"format", "join", "get_layer"})
Via = tuple[tuple[Module, ast.Call], ...]


def invariant(ctx: Context, exprs: list[ast.expr], loop: Loop) -> bool:
    """Whether every expression is known to be the same in each iteration; unknown ones count as changing."""
    if _made_of_other(ctx, loop):
        return False
    return all(_fixed(ctx, e, loop, loop.via, 0) for e in exprs)


def constant(ctx: Context, exprs: list[ast.expr]) -> bool:
    """Whether every expression is the same in each call of its function: constants, globals and attributes of self."""
    return all(_fixed(ctx, e, None, (), 0) for e in exprs)


def _made_of_other(ctx: Context, loop: Loop) -> bool:
    """Whether an object on the way is made from something that changes, so that its attributes change with it."""
    for index, (module, call) in enumerate(loop.via):
        at = ctx.at(module)
        if any(isinstance(thing, Class) for thing in at.things(call.func)):
            given = [*call.args, *(k.value for k in call.keywords)]
            if not all(_fixed(at, g, loop, loop.via[:index], 0) for g in given):
                return True
    return False


def _fixed(ctx: Context, expr: ast.AST, loop: Loop | None, via: Via, depth: int) -> bool:
    """Whether an expression is fixed, in the loop's body if ``via`` is empty, otherwise in the function that its last
    call runs.

    Without a loop: in a function that is called repeatedly with different arguments.
    """
    if depth > MAX_DEPTH:
        return False
    if isinstance(expr, ast.Constant):
        return True
    if isinstance(expr, ast.keyword):
        expr = expr.value
    if changed_by(ctx, expr, loop):
        return False
    if loop is not None and not via and isinstance(expr, ast.expr):
        known = ctx.loops.varies(expr, loop.node)
        if known is not None or isinstance(expr, ast.Attribute):
            return known is False
    if isinstance(expr, ast.Name):
        return all(_fixed_binding(ctx, b, loop, via, depth) for b in ctx.definitions(expr))
    parts = [c for c in ast.iter_child_nodes(expr) if isinstance(c, (ast.expr, ast.keyword))]
    if isinstance(expr, ast.Call):
        if not _pure(ctx, expr):
            return False
        parts = [*expr.args, *expr.keywords, *([expr.func.value] if isinstance(expr.func, ast.Attribute) else [])]
    return all(_fixed(ctx, p, loop, via, depth + 1) for p in parts)


def _pure(ctx: Context, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id in _PURE_BUILTINS and not ctx.definitions(call.func):
        return True
    method = isinstance(call.func, ast.Attribute) and call.func.attr in _PURE_METHODS
    return method or ctx.name(call.func).startswith(_PURE)


def _fixed_binding(ctx: Context, binding: Binding, loop: Loop | None, via: Via, depth: int) -> bool:
    if binding.kind in ("import", "def", "class"):
        return True
    if loop is not None and not via:
        inside = ctx.loops.inside(binding.node, loop)
        return inside and binding.value is not None and binding.kind == "assign" and _fixed(
            ctx, binding.value, loop, via, depth + 1
        )  # fmt: skip
    if not binding.scope.is_function:
        again = loop is not None and ctx.module is loop.module and ctx.loops.inside(binding.node, loop)
        return binding.kind in ("assign", "unpack") and not again
    if binding.kind == "param":
        return _fixed_parameter(ctx, binding, loop, via, depth)
    return binding.kind == "assign" and binding.value is not None and _fixed(ctx, binding.value, loop, via, depth + 1)


def _fixed_parameter(ctx: Context, binding: Binding, loop: Loop | None, via: Via, depth: int) -> bool:
    node = binding.scope.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    function = ctx.engine.names.function(ctx.module, node)
    first = function.parameters[0].arg if function.parameters else ""
    if function.cls is not None and first == binding.name:
        return True
    if loop is None or not via:
        return False
    module, call = via[-1]
    at = ctx.at(module)
    given = passed(call, function, binding.name)
    if given is None:
        return default(node.args, binding.name) is not None and not at.call(call).opaque
    return _fixed(at, given, loop, via[:-1], depth + 1)
