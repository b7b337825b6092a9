"""Batches that a Python generator yields: whether it ever ends, and how many rows each has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.context import Context
from stepscope.check.inference.names import Function
from stepscope.check.inference.values import passed
from stepscope.check.source.syntax import argument, default, last_word, walk

MAX_DEPTH = 6
"""Names and calls followed from a yielded value to what sets its number of rows."""
_KEEPS_ROWS = frozenset(
    "array asarray ascontiguousarray copy astype constant convert_to_tensor cast gather take list float32 "
    "preprocess_input to_categorical one_hot expand_dims".split()
)
"""Calls whose result has as many rows as their first argument, or as their object."""
_OF_SHAPE = frozenset({"zeros", "ones", "empty", "full"})
_DRAWS = {"choice": (1, "size"), "randint": (2, "size"), "integers": (2, "size"), "sample": (1, "k")}
"""Draws of numbers, with the place and the keyword of how many."""


def generators(ctx: Context, expr: ast.expr) -> Iterator[tuple[ast.Call | None, Function]]:
    """Yield the generator functions in ``gen(x)``, a name that stands for it, ``gen`` or ``lambda: gen(x)``.

    Each comes with the call that passes its arguments, if there is one.
    """
    if isinstance(expr, ast.Name):
        made = [b.value for b in ctx.definitions(expr) if b.kind == "assign"]
        if len(made) == 1 and isinstance(made[0], ast.Call):
            yield from generators(ctx, made[0])
            return
    if isinstance(expr, ast.Call):
        yield from ((expr, f) for f in ctx.functions.callees(expr) if f.scope.yields)
        return
    if isinstance(expr, ast.Lambda):
        if isinstance(expr.body, ast.Call):
            yield from generators(ctx, expr.body)
        return
    function = ctx.function(expr)
    if function is not None and function.scope.yields:
        yield None, function


def endless(function: Function) -> bool:
    """Whether a generator never ends: it yields within ``while True`` and has no way out of it."""
    for node in walk(function.body):
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value):
            parts = list(walk(node.body))
            if any(isinstance(p, ast.Return) for p in parts) or _breaks(node.body):
                return False
            if any(isinstance(p, (ast.Yield, ast.YieldFrom)) for p in parts):
                return True
    return False


def rows(ctx: Context, call: ast.Call | None, function: Function) -> int | None:
    """The number of rows of each batch that a generator yields; None if the source does not state it.

    Args:
        ctx: the file of the call.
        call: the call of the generator, which may pass the batch size.
        function: the generator.
    """
    sizes = {_Rows(ctx, call, function).of(_first(y)) for y in function.scope.yields}
    return sizes.pop() if len(sizes) == 1 else None


def _first(expr: ast.expr) -> ast.expr:
    """The first array of what is yielded: ``(x, y)``, ``({"a": x}, y)``."""
    while isinstance(expr, (ast.Tuple, ast.Dict)):
        parts = expr.elts if isinstance(expr, ast.Tuple) else expr.values
        if not parts:
            break
        expr = parts[0]
    return expr


def _breaks(body: list[ast.stmt]) -> bool:
    """Whether a loop's body has a break of this loop, not of an inner one."""
    for statement in body:
        if isinstance(statement, ast.Break):
            return True
        if isinstance(statement, (ast.For, ast.While)):
            if _breaks(statement.orelse):
                return True
            continue
        for field in ("body", "orelse", "finalbody"):
            if _breaks(getattr(statement, field, [])):
                return True
        if any(_breaks(handler.body) for handler in getattr(statement, "handlers", [])):
            return True
    return False


class _Rows:
    """Numbers of rows of expressions in one generator, for one call of it."""

    def __init__(self, ctx: Context, call: ast.Call | None, function: Function) -> None:
        self.ctx = ctx
        self.at = ctx.at(function.module)
        self.call = call
        self.function = function

    def of(self, expr: ast.expr, depth: int = 0) -> int | None:
        """The number of rows of an array."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(expr, ast.Name):
            made = self.at.definitions(expr)
            value = made[0].value if len(made) == 1 and made[0].kind == "assign" else None
            return self.of(value, depth + 1) if value is not None else None
        if isinstance(expr, ast.BinOp):
            known = {n for side in (expr.left, expr.right) if (n := self.of(side, depth + 1)) is not None}
            return known.pop() if len(known) == 1 else None
        if isinstance(expr, ast.ListComp) and len(expr.generators) == 1 and not expr.generators[0].ifs:
            over = expr.generators[0].iter
            counted = isinstance(over, ast.Call) and last_word(over.func) == "range" and len(over.args) == 1
            return self.number(over.args[0]) if isinstance(over, ast.Call) and counted else self.of(over, depth + 1)
        if isinstance(expr, ast.Subscript):
            index = expr.slice.elts[0] if isinstance(expr.slice, ast.Tuple) and expr.slice.elts else expr.slice
            return self.width(index) if isinstance(index, ast.Slice) else self.of(index, depth + 1)
        return self._made(expr, depth) if isinstance(expr, ast.Call) else None

    def _made(self, call: ast.Call, depth: int) -> int | None:
        word = last_word(call.func)
        if word in _OF_SHAPE:
            shape = argument(call, 0, "shape")
            first = shape.elts[0] if isinstance(shape, (ast.Tuple, ast.List)) and shape.elts else shape
            return self.number(first)
        if word in _DRAWS:
            size = argument(call, *_DRAWS[word])
            return None if isinstance(size, ast.Tuple) else self.number(size)
        if word == "stack" and len(call.args) == 1 and not call.keywords:
            return self.of(call.args[0], depth + 1)
        if word not in _KEEPS_ROWS:
            return None
        if call.args and not isinstance(call.args[0], ast.Constant) and word != "astype":
            found = self.of(call.args[1] if word in ("gather", "take") and call.args[1:] else call.args[0], depth + 1)
            if found is not None:
                return found
        return self.of(call.func.value, depth + 1) if isinstance(call.func, ast.Attribute) else None

    def width(self, cut: ast.Slice) -> int | None:
        """The width of ``[i:i + n]``, ``[i * n:(i + 1) * n]`` or ``[:n]``."""
        if cut.step is not None or cut.upper is None:
            return None
        if cut.lower is None:
            return self.number(cut.upper)
        low, high = cut.lower, cut.upper
        if isinstance(high, ast.BinOp) and isinstance(high.op, ast.Add):
            for same, rest in ((high.left, high.right), (high.right, high.left)):
                if ast.dump(same) == ast.dump(low):
                    return self.number(rest)
        if isinstance(low, ast.BinOp) and isinstance(low.op, ast.Mult) and isinstance(high, ast.BinOp):
            size = next(
                (s for s in (low.left, low.right) if ast.dump(s) in map(ast.dump, (high.left, high.right))), None
            )
            return self.number(size) if isinstance(high.op, ast.Mult) else None
        return None

    def number(self, expr: ast.expr | None) -> int | None:
        """An integer, also if it is a parameter that the call passes or leaves to its default."""
        if isinstance(expr, ast.Name) and any(b.kind == "param" for b in self.at.definitions(expr)):
            given = passed(self.call, self.function, expr.id) if self.call is not None else None
            if given is not None:
                return self.ctx.loops.integer(given)
            node = self.function.node
            told = default(node.args, expr.id)
            return self.at.loops.integer(told)
        return self.at.loops.integer(expr)
