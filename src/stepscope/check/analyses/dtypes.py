"""Element types of tensors, as far as the source states them. Unknown types are ""."""

from __future__ import annotations

import ast

from stepscope.check.context import Call, Context
from stepscope.check.inference.names import Function
from stepscope.check.source.bindings import Binding

MAX_DEPTH = 8
TYPES = frozenset("float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split())
_FLOAT32 = {
    "zeros": 1, "ones": 1, "eye": 3, "random.normal": 3, "random.uniform": 3, "random.truncated_normal": 3,
}  # fmt: skip
"""Ops whose elements are float32 if no type is given, with the position of the type."""
_KEEPING = frozenset(
    "reduce_sum reduce_mean reduce_max reduce_min reduce_prod square sqrt exp abs negative sin cos tanh sigmoid matmul "
    "transpose reshape expand_dims squeeze identity stop_gradient zeros_like ones_like reverse sort cumsum maximum "
    "minimum add subtract multiply pow math.square math.sqrt math.exp math.abs math.log nn.relu nn.softmax "
    "math.reduce_sum math.reduce_mean math.tanh math.sigmoid tile gather roll linalg.matmul".split()
)
"""Ops whose elements have the type of their first argument."""
_SAME_ELEMENTS = frozenset("batch shuffle repeat prefetch cache take skip shard unbatch".split())
"""Dataset stages that keep the type of their elements."""


def dtype(ctx: Context, expr: ast.expr, depth: int = 0) -> str:
    """The element type of a tensor or array, by TensorFlow's name: ``float32``; "" if unknown."""
    if depth > MAX_DEPTH:
        return ""
    if isinstance(expr, ast.Name):
        found = {_bound(ctx, b, depth + 1) for b in ctx.definitions(expr)}
        return found.pop() if len(found) == 1 else ""
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, (ast.Add, ast.Sub, ast.Mult, ast.MatMult)):
        return dtype(ctx, expr.left, depth + 1) or dtype(ctx, expr.right, depth + 1)
    if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.USub):
        return dtype(ctx, expr.operand, depth + 1)
    if isinstance(expr, ast.Subscript):
        return dtype(ctx, expr.value, depth + 1)
    return _call(ctx, ctx.call(expr), depth) if isinstance(expr, ast.Call) else ""


def _call(ctx: Context, call: Call, depth: int) -> str:
    if not call.name.startswith("tensorflow."):
        return ""
    op = call.name.removeprefix("tensorflow.")
    if op == "cast":
        return _written(ctx, call.argument(1, "dtype"))
    if op in _FLOAT32:
        given = call.argument(_FLOAT32[op], "dtype")
        return "" if call.opaque else "float32" if given is None else _written(ctx, given)
    if op in ("constant", "Variable", "convert_to_tensor"):
        given = call.argument(-1 if op == "Variable" else 1, "dtype")
        first = call.argument(0, "initial_value" if op == "Variable" else "value")
        if given is not None or first is None or call.opaque:
            return _written(ctx, given)
        return _literal(first) or dtype(ctx, first, depth + 1)
    first = call.node.args[0] if call.node.args else None
    return dtype(ctx, first, depth + 1) if op in _KEEPING and first is not None else ""


def _literal(expr: ast.expr) -> str:
    """The type that ``tf.constant`` makes of Python numbers."""
    while isinstance(expr, (ast.List, ast.Tuple)) and expr.elts:
        if any(_literal(e) == "float32" for e in expr.elts):
            return "float32"
        expr = expr.elts[0]
    if isinstance(expr, ast.UnaryOp):
        expr = expr.operand
    if not isinstance(expr, ast.Constant) or isinstance(expr.value, bool):
        return ""
    return "float32" if isinstance(expr.value, float) else "int32" if isinstance(expr.value, int) else ""


def _written(ctx: Context, expr: ast.expr | None) -> str:
    """The type written as ``tf.float32`` or ``"float32"``."""
    if isinstance(expr, ast.Constant):
        return expr.value if isinstance(expr.value, str) and expr.value in TYPES else ""
    name = ctx.name(expr) if expr is not None else ""
    word = name.rpartition(".")[2]
    return word if name in (f"tensorflow.{word}", f"tensorflow.dtypes.{word}") and word in TYPES else ""


def _bound(ctx: Context, binding: Binding, depth: int) -> str:
    if binding.kind == "assign" and binding.value is not None:
        return dtype(ctx, binding.value, depth)
    if binding.kind == "element" and binding.value is not None:
        return _element(ctx, binding, binding.value, depth)
    if binding.kind == "param" and isinstance(binding.scope.node, ast.FunctionDef):
        function: Function = ctx.engine.names.function(ctx.module, binding.scope.node)
        found = {
            dtype(at, e, depth + 1) if e is not None else "" for at, e in ctx.functions.given(function, binding.name)
        }
        return found.pop() if len(found) == 1 else ""
    return ""


def _element(ctx: Context, binding: Binding, source: ast.expr, depth: int) -> str:
    """The element type of a loop's iterable: a tensor, or a dataset of slices of one, also with enumerate."""
    path = binding.path
    if isinstance(source, ast.Call) and ctx.name(source.func) == "enumerate" and source.args and path[:1] == (1,):
        source, path = source.args[0], path[1:]
    if path:
        return ""
    chains = ctx.chains(source)
    found = set()
    for chain in chains:
        plain = chain.source.name == "from_tensor_slices" and set(chain.names[1:]) <= _SAME_ELEMENTS
        data = chain.source.argument(0, "tensors") if plain else None
        found.add(dtype(ctx.at(chain.source.module), data, depth + 1) if data is not None else "")
    return found.pop() if len(found) == 1 else "" if chains else dtype(ctx, source, depth + 1)
