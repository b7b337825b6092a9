"""Shapes between the layers of a Keras model, as far as the source states numbers.

Follows ``Sequential([...])``, ``model.add(...)`` and the functional style. Shapes omit the batch dimension; an unknown
dimension is None, and so is an entirely unknown shape.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from msgspec import Struct

from stepscope.check.context import Call, Context
from stepscope.check.inference.values import passed
from stepscope.check.source.bindings import Binding
from stepscope.check.source.syntax import default

MAX_LAYERS = 200
Shape = tuple[int | None, ...]
_SAME = frozenset(
    "Dropout BatchNormalization Activation ReLU LeakyReLU PReLU ELU Softmax GaussianNoise GaussianDropout "
    "AlphaDropout SpatialDropout1D SpatialDropout2D SpatialDropout3D LayerNormalization GroupNormalization "
    "UnitNormalization Rescaling ActivityRegularization Masking Normalization RandomFlip RandomRotation "
    "RandomZoom RandomContrast RandomTranslation RandomBrightness Identity ThresholdedReLU".split()
)
"""Layers whose output has the shape of their input."""
_RANKS = {"1D": 1, "2D": 2, "3D": 3}


class FlattenedInput(Struct, frozen=True):
    """The input of a Dense layer."""

    features: int
    flat: bool
    """Flag: a Flatten is directly before the layer, except for layers that keep the shape."""
    before: Shape | None
    """Shape before it was flattened."""


def dense_input(ctx: Context, call: Call) -> FlattenedInput | None:
    """The number of features that a ``Dense`` call is built on; None if unknown."""
    chain = _before(ctx, call.node)
    if chain is None:
        return None
    shape: Shape | None = None
    before: Shape | None = None
    flat = False
    for layer in chain:
        name = layer.word
        if name == "Flatten":
            before, flat = shape or _declared(ctx, layer), True
        elif name not in _SAME:
            flat = False
        shape = output(ctx, layer, shape)
    if not chain:
        shape = _declared(ctx, call)
    if shape is None or not shape or shape[-1] is None:
        return None
    return FlattenedInput(shape[-1], flat, before if flat else None)


# ---- what stands before a layer ----------------------------------------------------------------------------------


def _before(ctx: Context, node: ast.Call) -> list[Call] | None:
    """The layers before one, first to last; None if the path is not straight."""
    parent = ctx.parent(node)
    if isinstance(parent, ast.List) and isinstance(outer := ctx.parent(parent), ast.Call):
        if not ctx.name(outer.func).endswith(".Sequential"):
            return None
        return _calls(ctx, parent.elts[: parent.elts.index(node)])
    if isinstance(parent, ast.Call) and parent.func is node:
        return _functional(ctx, parent.args[0], 0) if parent.args else None
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "add":
        return _added(ctx, parent)
    return None


def _calls(ctx: Context, elements: list[ast.expr]) -> list[Call] | None:
    found = []
    for element in elements:
        if not isinstance(element, ast.Call):
            return None
        found.append(ctx.call(element))
    return found


def _added(ctx: Context, add: ast.Call) -> list[Call] | None:
    """The layers added before, in a body without branches and loops between them."""
    model = add.func.value if isinstance(add.func, ast.Attribute) else None
    if not isinstance(model, ast.Name):
        return None
    bindings = ctx.definitions(model)
    if len(bindings) != 1 or not isinstance(bindings[0].value, ast.Call) or bindings[0].kind != "assign":
        return None
    made = bindings[0].value
    if not ctx.name(made.func).endswith(".Sequential"):
        return None
    first = made.args[0] if made.args else None
    if first is not None and not isinstance(first, ast.List):
        return None
    found = _calls(ctx, first.elts) if isinstance(first, ast.List) else []
    if found is None:
        return None
    block = ctx.parent(bindings[0].node) if not isinstance(bindings[0].node, ast.stmt) else bindings[0].node
    home = ctx.parent(block) if block is not None else None
    for other in ctx.module.flow.calls.get("add", ()):
        owner = other.func.value if isinstance(other.func, ast.Attribute) else None
        if not isinstance(owner, ast.Name) or owner.id != model.id or ctx.definitions(owner) != bindings:
            continue
        if (other.lineno, other.col_offset) >= (add.lineno, add.col_offset):
            continue
        statement = ctx.parent(other)
        if statement is None or ctx.parent(statement) is not home or len(other.args) != 1:
            return None
        layer = _calls(ctx, other.args[:1])
        if layer is None:
            return None
        found += layer
    return found


def _functional(ctx: Context, expr: ast.expr, depth: int) -> list[Call] | None:
    """The layers that made a tensor: ``Dense(8)(Flatten()(x))``."""
    if depth > MAX_LAYERS:
        return None
    if isinstance(expr, ast.Name):
        bindings = ctx.definitions(expr)
        if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].value is None:
            return None
        return _functional(ctx, bindings[0].value, depth + 1)
    if not isinstance(expr, ast.Call):
        return None
    if ctx.name(expr.func) in ("keras.Input", "keras.layers.Input"):
        return [ctx.call(expr)]
    inner = expr.func
    if isinstance(inner, ast.Name):
        layers = [b.value for b in ctx.definitions(inner) if b.kind == "assign"]
        inner = layers[0] if len(layers) == 1 and layers[0] is not None else inner
    if not isinstance(inner, ast.Call) or not expr.args:
        return None
    before = _functional(ctx, expr.args[0], depth + 1)
    return [*before, ctx.call(inner)] if before is not None else None


# ---- shapes ------------------------------------------------------------------------------------------------------


def output(ctx: Context, layer: Call, shape: Shape | None) -> Shape | None:
    """The shape of a layer's output for an input; None if unknown."""
    word = layer.word
    if not layer.name.startswith("keras.") or _channels_first(layer):
        return None
    if word in ("Input", "InputLayer"):
        declared = layer.argument(0, "shape") or layer.argument(-1, "input_shape")
        return sizes(ctx, declared)
    shape = shape if shape is not None else _declared(ctx, layer)
    if word in _SAME:
        return shape
    if shape is None:
        return None
    if word == "Flatten":
        return (_product(shape),)
    if word == "Dense":
        return (*shape[:-1], ctx.loops.integer(layer.argument(0, "units")))
    if word == "Reshape":
        return _reshape(ctx, layer, shape)
    if word.startswith(("Global",)):
        return (shape[-1],)
    handler = next((h for start, h in _WINDOWS if word.startswith(start)), None)
    rank = _RANKS.get(word[-2:]) or _RANKS.get(word.removesuffix("Transpose")[-2:])
    if handler is None or rank is None or len(shape) != rank + 1:
        return _sequence(ctx, layer, shape)
    return handler(ctx, layer, shape, rank)


def _declared(ctx: Context, layer: Call) -> Shape | None:
    """The ``input_shape=`` or ``input_dim=`` of a first layer."""
    given = layer.argument(-1, "input_shape")
    if given is not None:
        return sizes(ctx, given)
    width = layer.argument(-1, "input_dim")
    return (ctx.loops.integer(width),) if width is not None and layer.word != "Embedding" else None


def sizes(ctx: Context, expr: ast.expr | None) -> Shape | None:
    """A shape written in the source, also through a name."""
    if isinstance(expr, ast.Name):
        bindings = ctx.definitions(expr)
        return _bound_sizes(ctx, bindings[0]) if len(bindings) == 1 and bindings[0].value is not expr else None
    if isinstance(expr, (ast.Tuple, ast.List)):
        if any(isinstance(e, ast.Starred) for e in expr.elts):
            return None
        return tuple(ctx.loops.integer(e) for e in expr.elts)
    return None


def _bound_sizes(ctx: Context, binding: Binding) -> Shape | None:
    """The shape bound to a name; for a parameter, the one that every call of the project passes, else its default."""
    if binding.kind == "assign":
        return sizes(ctx, binding.value)
    node = binding.scope.node
    if binding.kind != "param" or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    function = ctx.engine.names.function(ctx.module, node)
    fallback = sizes(ctx, default(node.args, binding.name))
    calls = ctx.functions.callers(function)
    given = [(module, passed(call, function, binding.name)) for module, call in calls]
    found = {sizes(ctx.at(module), expr) if expr is not None else fallback for module, expr in given} or {fallback}
    return found.pop() if len(found) == 1 else None


def _product(shape: Shape) -> int | None:
    total = 1
    for size in shape:
        if size is None:
            return None
        total *= size
    return total


def _channels_first(layer: Call) -> bool:
    given = layer.argument(-1, "data_format") or layer.argument(-1, "dim_ordering")
    return given is not None and not (isinstance(given, ast.Constant) and given.value in ("channels_last", "tf", None))


def _reshape(ctx: Context, layer: Call, shape: Shape) -> Shape | None:
    target = sizes(ctx, layer.argument(0, "target_shape"))
    if target is None or target.count(-1) != 1:
        return target
    total, rest = _product(shape), _product(tuple(s for s in target if s != -1))
    return tuple(s if s != -1 else (total // rest if total and rest else None) for s in target)


def _per_axis(ctx: Context, expr: ast.expr | None, rank: int, fallback: int | None) -> Shape:
    """A size given once for all axes, or for each."""
    if expr is None:
        return (fallback,) * rank
    given = sizes(ctx, expr)
    if given is not None:
        return given if len(given) == rank else (None,) * rank
    return (ctx.loops.integer(expr),) * rank


def _same(layer: Call, index: int) -> bool | None:
    padding = layer.argument(index, "padding") or layer.argument(-1, "border_mode")
    if padding is None:
        return False
    if isinstance(padding, ast.Constant) and isinstance(padding.value, str):
        return {"same": True, "valid": False, "causal": True}.get(padding.value.lower())
    return None


def _window(size: int | None, kernel: int | None, stride: int | None, *, same: bool | None) -> int | None:
    if size is None or stride is None or stride <= 0 or same is None:
        return None
    if same:
        return -(-size // stride)
    return (size - kernel) // stride + 1 if kernel is not None and size >= kernel else None


def _conv(ctx: Context, layer: Call, shape: Shape, rank: int) -> Shape | None:
    if layer.argument(-1, "dilation_rate") is not None and not _same(layer, 3):
        return None
    depthwise = layer.word.startswith("Depthwise")
    kernels = _per_axis(ctx, layer.argument(0 if depthwise else 1, "kernel_size"), rank, None)
    strides = _per_axis(ctx, layer.argument(1 if depthwise else 2, "strides"), rank, 1)
    same = _same(layer, 2 if depthwise else 3)
    filters = shape[-1] if depthwise else ctx.loops.integer(layer.argument(0, "filters"))
    if layer.word.endswith("Transpose"):
        grown = tuple(
            None if s is None or t is None or k is None or same is None else s * t if same else s * t + max(k - t, 0)
            for s, k, t in zip(shape[:-1], kernels, strides, strict=True)
        )
        return (*grown, filters)
    reduced = tuple(_window(s, k, t, same=same) for s, k, t in zip(shape[:-1], kernels, strides, strict=True))
    return (*reduced, filters)


def _pool(ctx: Context, layer: Call, shape: Shape, rank: int) -> Shape | None:
    pools = _per_axis(ctx, layer.argument(0, "pool_size"), rank, 2)
    given = layer.argument(1, "strides")
    given = None if isinstance(given, ast.Constant) and given.value is None else given
    strides = pools if given is None else _per_axis(ctx, given, rank, None)
    same = _same(layer, 2)
    reduced = tuple(_window(s, k, t, same=same) for s, k, t in zip(shape[:-1], pools, strides, strict=True))
    return (*reduced, shape[-1])


def _grow(ctx: Context, layer: Call, shape: Shape, rank: int) -> Shape | None:
    factors = _per_axis(ctx, layer.argument(0, "size"), rank, 2)
    return (*(s * f if s and f else None for s, f in zip(shape[:-1], factors, strict=True)), shape[-1])


def _pad(ctx: Context, layer: Call, shape: Shape, rank: int) -> Shape | None:
    sign = -1 if layer.word.startswith("Cropping") else 1
    given = layer.argument(0, "padding" if sign > 0 else "cropping")
    if given is not None and isinstance(given, (ast.Tuple, ast.List)) and not all(
        isinstance(e, ast.Constant) for e in given.elts
    ):  # fmt: skip
        return None
    amounts = _per_axis(ctx, given, rank, 1)
    return (
        *(s + sign * 2 * a if s and a is not None else None for s, a in zip(shape[:-1], amounts, strict=True)),
        shape[-1],
    )


def _sequence(ctx: Context, layer: Call, shape: Shape) -> Shape | None:
    """The output shape of recurrent layers and embeddings."""
    if layer.word == "Embedding":
        return (*shape, ctx.loops.integer(layer.argument(1, "output_dim")))
    if layer.word in ("LSTM", "GRU", "SimpleRNN", "CuDNNLSTM", "CuDNNGRU"):
        units = ctx.loops.integer(layer.argument(0, "units"))
        every = layer.argument(-1, "return_sequences")
        if isinstance(every, ast.Constant) and every.value is True:
            return (shape[0], units)
        return (units,) if every is None or isinstance(every, ast.Constant) else None
    return None


_Window = Callable[[Context, Call, Shape, int], "Shape | None"]
_WINDOWS: tuple[tuple[str, _Window], ...] = (
    ("Conv", _conv),
    ("Separable", _conv),
    ("Depthwise", _conv),
    ("MaxPool", _pool),
    ("AveragePool", _pool),
    ("UpSampling", _grow),
    ("ZeroPadding", _pad),
    ("Cropping", _pad),
)
