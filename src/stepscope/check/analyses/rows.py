"""Whether an expression is a batch of a single row: ``x[None]``, ``np.expand_dims(x, 0)``, ``x.reshape(1, -1)``, ..."""

from __future__ import annotations

import ast

from stepscope.check.context import Context
from stepscope.check.inference.values import passed
from stepscope.check.source.bindings import Binding

MAX_DEPTH = 8
_EXPANDING = frozenset({"numpy.expand_dims", "tensorflow.expand_dims", "keras.ops.expand_dims"})
_LISTING = frozenset(
    "numpy.array numpy.asarray numpy.vstack numpy.stack numpy.atleast_2d tensorflow.constant "
    "tensorflow.convert_to_tensor tensorflow.stack keras.preprocessing.sequence.pad_sequences "
    "keras.utils.pad_sequences keras.ops.convert_to_tensor".split()
)
"""Functions that make a batch of a list of rows."""
_FILLING = frozenset(
    "numpy.zeros numpy.ones numpy.empty numpy.random.rand numpy.random.randn numpy.random.random "
    "numpy.random.Generator.random numpy.random.Generator.standard_normal tensorflow.zeros tensorflow.ones".split()
)
"""Functions that make an array of a shape."""
_KEEPING = frozenset({"astype", "copy", "texts_to_sequences", "texts_to_matrix", "transform", "float"})
"""Methods that preserve the number of rows."""
_RESHAPING = frozenset({"numpy.reshape", "tensorflow.reshape", "keras.ops.reshape"})


def single_row(ctx: Context, data: ast.expr) -> bool:
    """Whether data are a batch of one row, also through a name; a list counts as a list of inputs, all of which must be
    one.
    """
    return _single(ctx, data, 0)


def _single(ctx: Context, data: ast.expr, depth: int) -> bool:
    if depth > MAX_DEPTH:
        return False
    if isinstance(data, ast.Name):
        bindings = ctx.definitions(data)
        return bool(bindings) and all(_bound(ctx, b, depth) for b in bindings)
    if isinstance(data, (ast.List, ast.Tuple)):
        return bool(data.elts) and all(_input(ctx, e, depth, alone=len(data.elts) == 1) for e in data.elts)
    if isinstance(data, ast.Dict):
        return bool(data.values) and all(_single(ctx, v, depth + 1) for v in data.values)
    if isinstance(data, ast.Subscript):
        return _one(ctx, data.slice)
    if isinstance(data, ast.BinOp):
        return _single(ctx, data.left, depth + 1) or _single(ctx, data.right, depth + 1)
    return isinstance(data, ast.Call) and _call(ctx, data, depth)


def _input(ctx: Context, element: ast.expr, depth: int, *, alone: bool) -> bool:
    """Whether one of several inputs is a batch or list of one row; alone in its list also a row of plain numbers."""
    if isinstance(element, ast.List) and len(element.elts) == 1:
        return True
    plain = element.elts if isinstance(element, ast.List) else [element]
    return (alone and all(isinstance(e, ast.Constant) for e in plain)) or _single(ctx, element, depth + 1)


def _bound(ctx: Context, binding: Binding, depth: int) -> bool:
    """Whether a binding gives one row: by assignment, or because every call of the project passes one."""
    if binding.kind == "assign" and binding.value is not None:
        return _single(ctx, binding.value, depth + 1)
    if binding.kind == "param" and isinstance(binding.scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        function = ctx.engine.names.function(ctx.module, binding.scope.node)
        given = [(module, passed(call, function, binding.name)) for module, call in ctx.functions.callers(function)]
        return bool(given) and all(v is not None and _single(ctx.at(m), v, depth + 2) for m, v in given)
    return False


def _one(ctx: Context, index: ast.expr) -> bool:
    """Whether a subscript gives one row: ``[None]``, ``[np.newaxis, ...]``, ``[i:i + 1]``, ``[[i]]``."""
    first = _first(index)
    if isinstance(first, ast.Slice):
        return _next(ctx, first)
    return adds_axis(index) or (isinstance(first, ast.List) and len(first.elts) == 1)


def adds_axis(index: ast.expr) -> bool:
    """Whether a subscript is ``[None]`` or ``[np.newaxis, ...]``, which only arrays and tensors support."""
    first = _first(index)
    return (isinstance(first, ast.Constant) and first.value is None) or (
        isinstance(first, ast.Attribute) and first.attr == "newaxis"
    )


def _first(index: ast.expr) -> ast.expr | None:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return parts[0] if parts else None


def _next(ctx: Context, part: ast.Slice) -> bool:
    """Whether a slice is ``i:i + 1``, ``:1`` or ``-1:``."""
    if part.step is not None:
        return False
    if part.lower is None or (isinstance(part.lower, ast.Constant) and part.lower.value == 0):
        return part.upper is not None and ctx.loops.integer(part.upper) == 1
    if part.upper is None:
        return ctx.loops.integer(part.lower) == -1
    upper = part.upper
    return (
        isinstance(upper, ast.BinOp)
        and isinstance(upper.op, ast.Add)
        and ast.dump(upper.left) == ast.dump(part.lower)
        and ctx.loops.integer(upper.right) == 1
    )


def _call(ctx: Context, data: ast.Call, depth: int) -> bool:
    word = data.func.attr if isinstance(data.func, ast.Attribute) else ""
    name = ctx.name(data.func)
    first = data.args[0] if data.args else None
    if word == "reshape":
        sizes = data.args[1:] if name in _RESHAPING else data.args
        shape = sizes[0] if sizes else next((k.value for k in data.keywords if k.arg in ("shape", "newshape")), None)
        return shape is not None and _leading_one(ctx, shape)
    if name in _FILLING and first is not None:
        shape = next((k.value for k in data.keywords if k.arg in ("shape", "size")), first)
        return _leading_one(ctx, shape) and (word in ("rand", "randn") or not isinstance(shape, ast.Constant))
    if name in _EXPANDING:
        axis = next((k.value for k in data.keywords if k.arg == "axis"), data.args[1] if data.args[1:] else None)
        return axis is None or ctx.loops.integer(axis) == 0
    if name in _LISTING and first is not None:
        listed = isinstance(first, ast.List) and len(first.elts) == 1
        return listed or _single(ctx, first, depth + 1)
    if word in _KEEPING and isinstance(data.func, ast.Attribute):
        if first is not None and word in ("texts_to_sequences", "texts_to_matrix", "transform"):
            return _single(ctx, first, depth + 1) or (isinstance(first, ast.List) and len(first.elts) == 1)
        return _single(ctx, data.func.value, depth + 1)
    return False


def _leading_one(ctx: Context, shape: ast.expr) -> bool:
    """Whether a shape is ``1``, ``(1, 28, 28)``, ``(1,) + x.shape`` or ``(1, *x.shape)``."""
    if isinstance(shape, ast.BinOp) and isinstance(shape.op, ast.Add):
        return _leading_one(ctx, shape.left)
    if isinstance(shape, (ast.Tuple, ast.List)):
        return bool(shape.elts) and ctx.loops.integer(shape.elts[0]) == 1
    return ctx.loops.integer(shape) == 1
