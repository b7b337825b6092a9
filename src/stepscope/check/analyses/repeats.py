"""How often code runs, beyond the visible loops: guards for every n-th time, request handlers, external callers.

Used by rules about code in loops; an answer is given only if the source states it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.context import Context
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.names import Function
from stepscope.check.inference.values import passed
from stepscope.check.source.bindings import FUNCTIONS, Binding
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import default, last_word

MAX_LEVELS = 3
"""Calls followed up to a handler, or to code that nothing in the project calls."""
_LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)
_VERBS = frozenset({"get", "post", "put", "delete", "patch", "route", "api_route", "websocket", "endpoint"})
_HANDLING = frozenset({"get", "post", "put", "patch", "do_GET", "do_POST", "on_post", "on_get", "on_message"})
_HANDLERS = frozenset(
    "flask_restful.Resource flask_restx.Resource flask.views.MethodView http.server.BaseHTTPRequestHandler "
    "http.server.SimpleHTTPRequestHandler tornado.web.RequestHandler tornado.websocket.WebSocketHandler "
    "rest_framework.views.APIView django.views.View django.views.generic.View".split()
)
_APPLYING = ("apply", "applymap", "progress_apply", "map")
_STARTERS = frozenset({"main", "_main", "run_main"})
_CACHES = frozenset({"lru_cache", "cache", "cached_property", "cache_resource", "cache_data", "memoize", "cached"})


def guard(module: Module, node: ast.AST, stop: ast.AST | None = None) -> ast.BinOp | None:
    """The ``step % n`` that lets a node run only every n-th time, between the node and its function or ``stop``.

    Both ``if step % n == 0: node`` and ``if step % n: return`` before the node count.
    """
    child, parent = node, module.parent(node)
    while parent is not None and not isinstance(child, FUNCTIONS) and child is not stop:
        if isinstance(parent, ast.If) and child is not parent.test and (found := _modulo(parent.test)) is not None:
            return found
        if isinstance(parent, ast.IfExp) and child is not parent.test and (found := _modulo(parent.test)) is not None:
            return found
        if isinstance(child, ast.stmt):
            for before in _before(parent, child):
                if isinstance(before, ast.If) and isinstance(before.body[-1], _LEAVES):
                    found = _modulo(before.test)
                    if found is not None:
                        return found
        child, parent = parent, module.parent(parent)
    return None


def _before(parent: ast.AST, child: ast.stmt) -> Iterator[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and child in block:
            yield from block[: block.index(child)]


def _modulo(test: ast.expr) -> ast.BinOp | None:
    for part in ast.walk(test):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
            text = isinstance(part.left, ast.JoinedStr) or (
                isinstance(part.left, ast.Constant) and isinstance(part.left.value, str)
            )
            if not text:
                return part
    return None


def rarely(ctx: Context, node: ast.AST, loop: Loop) -> bool:
    """Whether a node runs only in every n-th iteration of a loop, also through a guard around a call on the way."""
    places: list[tuple[Module, ast.AST]] = [(ctx.module, node), *reversed(loop.via)]
    return any(guard(module, place, loop.node) is not None for module, place in places)


def times(ctx: Context, node: ast.AST, loop: Loop) -> int | None:
    """The number of times a loop reaches a node, if the source states it: 20 for ``i % 50 == 0`` in ``range(1000)``."""
    if loop.iterations is None:
        return None
    often = loop.iterations
    for module, place in ((ctx.module, node), *reversed(loop.via)):
        found = guard(module, place, loop.node)
        every = ctx.at(module).loops.integer(found.right) if found is not None else None
        if every is not None and every > 1:
            often = -(-often // every)
    return often


def optional(module: Module, node: ast.AST) -> bool:
    """Whether a node runs only if something is missing: ``if self.model is None:``, ``if key not in cache:``, try."""
    child, parent = node, module.parent(node)
    while parent is not None and not isinstance(child, FUNCTIONS):
        if isinstance(parent, ast.If) and child is not parent.test and _absent(parent.test):
            return True
        if isinstance(parent, ast.ExceptHandler):
            return True
        if isinstance(child, ast.stmt):
            for before in _before(parent, child):
                if isinstance(before, ast.If) and isinstance(before.body[-1], ast.Return) and _present(before.test):
                    return True
        child, parent = parent, module.parent(parent)
    return False


def _absent(test: ast.expr) -> bool:
    for part in ast.walk(test):
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            return True
        if isinstance(part, ast.Compare) and any(isinstance(op, (ast.Is, ast.NotIn, ast.Eq)) for op in part.ops):
            return True
    return False


def _present(test: ast.expr) -> bool:
    for part in ast.walk(test):
        if isinstance(part, ast.Compare) and any(isinstance(op, (ast.IsNot, ast.In)) for op in part.ops):
            return True
    return isinstance(test, (ast.Name, ast.Attribute))


def cached(function: Function) -> bool:
    """Whether a decorator caches the function's result: ``functools.lru_cache``, ``st.cache_resource``."""
    for decorator in function.decorators:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if last_word(target) in _CACHES:
            return True
    return False


def handler(ctx: Context, node: ast.AST) -> Function | None:
    """The request handler in which a node runs, directly or through calls, and so once per request."""
    return _handler(ctx, node, MAX_LEVELS, frozenset())


def _handler(ctx: Context, node: ast.AST, levels: int, seen: frozenset[ast.AST]) -> Function | None:
    function = ctx.enclosing(node)
    if function is None or function.node in seen:
        return None
    if _handles(ctx, function):
        return function
    for module, call in ctx.functions.callers(function) if levels else ():
        found = _handler(ctx.at(module), call, levels - 1, seen | {function.node})
        if found is not None:
            return found
    return None


def _handles(ctx: Context, function: Function) -> bool:
    for decorator in function.decorators:
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute):
            first = decorator.args[0] if decorator.args else None
            path = first.value if isinstance(first, ast.Constant) else None
            if decorator.func.attr in _VERBS and isinstance(path, str) and path.startswith("/"):
                return True
    if function.cls is not None and function.name in _HANDLING:
        return bool(_HANDLERS & set(ctx.engine.names.lineage(function.cls)))
    return [a.arg for a in function.parameters] == ["event", "context"] and "handler" in function.name


def applied(ctx: Context, node: ast.AST) -> ast.Call | None:
    """The call that runs a node's function for each element: ``frame["text"].apply(f)``, ``map(f, rows)``."""
    function = ctx.enclosing(node)
    if function is None:
        return None
    for word in _APPLYING:
        for call in function.module.flow.calls.get(word, ()):
            first = call.args[0] if call.args else None
            named = isinstance(first, ast.Name) and first.id == function.name
            if (first is function.node or named) and isinstance(
                call.func, ast.Attribute if word != "map" else ast.Name
            ):
                return call
    return None


def offered(ctx: Context, node: ast.AST) -> bool:
    """Whether a node's function is only called from outside the project, an unknown number of times."""
    return _offered(ctx, node, MAX_LEVELS, frozenset())


def _offered(ctx: Context, node: ast.AST, levels: int, seen: frozenset[ast.AST]) -> bool:
    function = ctx.enclosing(node)
    if function is None or function.name in _STARTERS or function.node in seen:
        return False
    callers = ctx.functions.callers(function)
    if not callers:
        return not isinstance(function.node, ast.Lambda)
    return levels > 0 and any(_offered(ctx.at(m), c, levels - 1, seen | {function.node}) for m, c in callers)


def loop_parts(ctx: Context, node: ast.AST, loop: Loop) -> list[tuple[Context, ast.AST]]:
    """The code that a loop repeats on the way to a node: its body, and the bodies of functions between."""
    parts: list[tuple[Context, ast.AST]] = [(ctx.at(loop.module), part) for part in loop.body]
    function = ctx.enclosing(node)
    if loop.via and function is not None:
        parts += [(ctx, part) for part in function.body]
        for module, inner in loop.via[1:]:
            at = ctx.at(module)
            between = at.enclosing(inner)
            parts += [(at, part) for part in between.body] if between is not None else []
    return parts


def called_in(ctx: Context, node: ast.AST, loop: Loop) -> frozenset[str]:
    """Names of everything called in a loop's repeated code around a node, and two levels below."""
    return frozenset(
        inner.name or f"?.{last_word(inner.node.func)}"
        for at, part in loop_parts(ctx, node, loop)
        for _, inner in at.functions.calls_below([part])
    )


def waits(ctx: Context, node: ast.AST, loop: Loop) -> bool:
    """Whether the loop asks a person in each iteration, compared with which computation takes no time."""
    return bool(called_in(ctx, node, loop) & {"input", "builtins.input", "?.input"})


def every(ctx: Context, modulo: ast.BinOp) -> int | None:
    """The n of ``step % n``: a literal, or the only value that an attribute or parameter is known to get."""
    return _number(ctx, modulo.right, 0)


def _number(ctx: Context, expr: ast.expr, depth: int) -> int | None:
    known = ctx.loops.integer(expr)
    if known is not None or depth > MAX_LEVELS:
        return known
    value = ctx.value(expr.value) if isinstance(expr, ast.Attribute) else None
    if isinstance(expr, ast.Attribute) and value is not None and value.cls is not None:
        owner = ctx.engine.names.owner(value.cls, expr.attr)
        bindings = owner.scope.attributes[expr.attr] if owner is not None else []
        at = ctx.at(owner.module) if owner is not None else ctx
    elif isinstance(expr, ast.Name):
        bindings, at = list(ctx.definitions(expr)), ctx
    else:
        return None
    found = {_bound_number(at, b, depth) for b in bindings}
    return found.pop() if len(found) == 1 else None


def _bound_number(ctx: Context, binding: Binding, depth: int) -> int | None:
    if binding.kind == "assign" and binding.value is not None:
        return _number(ctx, binding.value, depth + 1)
    node = binding.scope.node
    if binding.kind == "unpack" and isinstance(binding.value, ast.Tuple) and len(binding.path) == 1:
        return _number(ctx, binding.value.elts[binding.path[0]], depth + 1)
    if binding.kind != "param" or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    function = ctx.engine.names.function(ctx.module, node)
    fallback = default(node.args, binding.name)
    found = set()
    for module, call in ctx.functions.callers(function):
        given = passed(call, function, binding.name)
        if given is not None:
            found.add(_number(ctx.at(module), given, depth + 1))
        elif fallback is not None:
            found.add(_number(ctx, fallback, depth + 1))
    if not ctx.functions.callers(function) and fallback is not None:
        found.add(_number(ctx, fallback, depth + 1))
    return found.pop() if len(found) == 1 else None
