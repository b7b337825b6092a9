"""Whether an object in a loop is made once and kept, or once per device, rather than in each iteration.

A guard that fails once the object is made (`if key not in cache: cache[key] = ...`), and a loop that places each of its
iterations elsewhere (`with tf.device("/gpu:%d" % i)`), limit how often code runs, regardless of the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from stepscope.check.context import Context
from stepscope.check.inference.loops import Loop
from stepscope.check.source.bindings import FUNCTIONS
from stepscope.check.source.syntax import last_word

LOOKUPS = frozenset({"KeyError", "LookupError", "AttributeError", "NameError", "ValueError", "NotFoundError"})
"""Exceptions that a failed look-up raises."""
PLACES = frozenset(
    "tensorflow.device tensorflow.name_scope tensorflow.variable_scope tensorflow.Graph.device "
    "tensorflow.Graph.name_scope".split()
)
"""Calls that place everything built inside on a device or under a name."""
RANGES = frozenset({"range", "xrange", "trange", "arange", "count"})
BARS = frozenset({"tqdm", "track", "progress_bar"})
_LEAVES = (ast.Return, ast.Continue)


def kept(ctx: Context, node: ast.AST, loop: Loop) -> bool:
    """Whether a node in a loop runs only until its object exists, also through a guard around a call on the way."""
    places = [(ctx, node), *((ctx.at(module), call) for module, call in loop.via)]
    return any(_guarded(at, place, loop.node) for at, place in places)


def placed(ctx: Context, node: ast.AST, loop: Loop) -> bool:
    """Whether each iteration of a loop builds on its own device, or in its own named scope: towers, layers of a
    model.
    """
    at, child = (ctx.at(loop.via[0][0]), loop.via[0][1]) if loop.via else (ctx, node)
    parent = at.parent(child)
    while parent is not None and parent is not loop.node:
        for item in parent.items if isinstance(parent, (ast.With, ast.AsyncWith)) else ():
            call = item.context_expr
            if isinstance(call, ast.Call) and at.name(call.func) in PLACES and _varied(at, call, loop):
                return True
        parent = at.parent(parent)
    return False


def single(ctx: Context, node: ast.AST, loop: Loop) -> bool:
    """Whether a node runs in one iteration of a loop, named by a condition: ``if step == last:``."""
    counter = _counter(loop.node)
    if not counter:
        return False
    at, child = (ctx.at(loop.via[0][0]), loop.via[0][1]) if loop.via else (ctx, node)
    parent = at.parent(child)
    while parent is not None and parent is not loop.node:
        if isinstance(parent, ast.If) and child in parent.body and _names_one(at, parent.test, counter, loop):
            return True
        child, parent = parent, at.parent(parent)
    return False


def _counter(loop: ast.AST) -> str:
    """The name that is a different number in each iteration of a loop: in ``for i in range(n)`` or ``enumerate``."""
    if not isinstance(loop, ast.For):
        return ""
    target, counted = loop.target, loop.iter
    while isinstance(counted, ast.Call) and last_word(counted.func) in BARS and counted.args:
        counted = counted.args[0]
    word = last_word(counted.func) if isinstance(counted, ast.Call) else ""
    if word == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    elif word not in RANGES:
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def _names_one(ctx: Context, test: ast.expr, counter: str, loop: Loop) -> bool:
    """Whether a test compares the loop's counter with something that stays the same, alone or with other conditions."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_names_one(ctx, value, counter, loop) for value in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    counted = [isinstance(side, ast.Name) and side.id == counter for side in sides]
    return any(
        here and ctx.loops.varies(other, loop.node) is False
        for here, other in zip(counted, reversed(sides), strict=True)
    )


def _varied(ctx: Context, call: ast.Call, loop: Loop) -> bool:
    return any(ctx.loops.varies(given, loop.node) for given in [*call.args, *(k.value for k in call.keywords)])


def _guarded(ctx: Context, node: ast.AST, stop: ast.AST) -> bool:
    child, parent = node, ctx.parent(node)
    while parent is not None and child is not stop and not isinstance(child, FUNCTIONS):
        if isinstance(parent, ast.If) and child is not parent.test:
            inside, missing = (parent.body, True) if child in parent.body else (parent.orelse, False)
            if _stored(ctx, inside) & set(_tested(parent.test, missing=missing)):
                return True
        if isinstance(parent, ast.ExceptHandler) and _lookup(parent):
            return True
        if isinstance(child, ast.stmt) and _left_before(ctx, parent, child):
            return True
        child, parent = parent, ctx.parent(parent)
    return False


def _left_before(ctx: Context, parent: ast.AST, child: ast.stmt) -> bool:
    """Whether ``if key in cache: return`` comes before, and later code stores the key."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and child in block:
            for index, before in enumerate(block[: block.index(child)]):
                if not isinstance(before, ast.If) or not isinstance(before.body[-1], _LEAVES):
                    continue
                if _stored(ctx, block[index + 1 :]) & set(_tested(before.test, missing=False)):
                    return True
    return False


def _lookup(handler: ast.ExceptHandler) -> bool:
    """Whether an except clause handles a failed look-up."""
    kind = handler.type
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind] if kind is not None else []
    return any(last_word(k) in LOOKUPS for k in kinds)


def _tested(test: ast.expr, *, missing: bool) -> Iterator[str]:
    """The objects that a condition tests: if it is true, the object is missing (or, if not ``missing``, present)."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _tested(value, missing=missing)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _tested(test.operand, missing=not missing)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        op, right = test.ops[0], test.comparators[0]
        nothing = isinstance(right, ast.Constant) and right.value is None
        if isinstance(op, ast.NotIn if missing else ast.In):
            yield ast.unparse(_table(right))
        elif nothing and isinstance(op, (ast.Is, ast.Eq) if missing else (ast.IsNot, ast.NotEq)):
            yield ast.unparse(test.left)
    elif isinstance(test, ast.Call) and last_word(test.func) == "hasattr" and not missing and len(test.args) > 1:
        name = test.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield f"{ast.unparse(test.args[0])}.{name.value}"
    elif isinstance(test, (ast.Name, ast.Attribute)) and not missing:
        yield ast.unparse(test)


def _table(expr: ast.expr) -> ast.expr:
    """The table behind a look-up: ``cache`` in ``cache.keys()``."""
    keys = isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr == "keys"
    return expr.func.value if keys and isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) else expr


def _stored(ctx: Context, block: Iterable[ast.AST]) -> set[str]:
    """The names, attributes and modified containers that a block assigns; attributes also in its callees."""
    parts = list(block)
    found = set(_targets(parts))
    for part in parts:
        for call in ctx.module.calls_in(part):
            for function in ctx.functions.callees(call):
                found.update(t for t in _targets(function.body) if "." in t)
    return found


def _targets(block: Iterable[ast.AST]) -> Iterator[str]:
    for part in block:
        for node in ast.walk(part):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                yield ast.unparse(node)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                yield ast.unparse(node.value)
            elif isinstance(node, ast.Call) and last_word(node.func) in ("append", "add", "setdefault", "update"):
                yield ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
