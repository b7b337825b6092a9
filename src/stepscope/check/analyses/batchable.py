"""Whether code on one row would work on all rows at once: only TensorFlow ops that have a batch form."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from stepscope.check.context import Call, Context
from stepscope.check.inference.tags import Tag
from stepscope.check.source.syntax import walk

MAX_LEVELS = 2
"""Depth to which calls of project functions are followed."""
_OPS = frozenset(
    "abs add add_n subtract multiply divide truediv floordiv mod negative pow square sqrt exp log maximum minimum "
    "sin cos tan asin acos atan sinh cosh tanh sigmoid round floor ceil sign equal not_equal less less_equal "
    "greater greater_equal logical_and logical_or logical_not reduce_sum reduce_mean reduce_max reduce_min "
    "reduce_prod reduce_any reduce_all reduce_logsumexp matmul tensordot einsum argmax argmin argsort sort top_k "
    "cumsum cast identity one_hot gather gather_nd tensor_scatter_nd_update tensor_scatter_nd_add concat stack "
    "expand_dims squeeze reshape transpose tile reverse roll norm clip_by_value zeros_like ones_like shape size "
    "rank zeros ones fill constant convert_to_tensor broadcast_to stop_gradient saturate_cast divide_no_nan "
    "multiply_no_nan squared_difference searchsorted eye repeat linspace to_float to_int32 scalar_mul truncatediv "
    "realdiv floormod ensure_shape clip_by_norm sequence_mask unravel_index unstack".split()
)
"""Names in ``tensorflow.X`` that are elementwise, or have an axis or a batch form."""
_NAMESPACES = (
    "tensorflow.math.",
    "tensorflow.linalg.",
    "tensorflow.signal.",
    "tensorflow.bitwise.",
    "tensorflow.strings.",
)
"""Namespaces whose ops all work on batches, except those below."""
_NN = frozenset(
    "relu relu6 elu selu gelu swish silu softplus softsign leaky_relu softmax log_softmax sigmoid tanh "
    "l2_normalize conv1d conv2d conv3d avg_pool max_pool avg_pool2d max_pool2d bias_add moments top_k in_top_k "
    "embedding_lookup softmax_cross_entropy_with_logits sparse_softmax_cross_entropy_with_logits "
    "sigmoid_cross_entropy_with_logits depth_to_space space_to_depth l2_loss dropout".split()
)
_IMAGE = frozenset(
    "resize flip_left_right flip_up_down rgb_to_grayscale grayscale_to_rgb rgb_to_hsv hsv_to_rgb "
    "convert_image_dtype adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation central_crop "
    "rot90 transpose".split()
)
_RAGGED = frozenset(
    "tensorflow.strings.split tensorflow.strings.bytes_split tensorflow.strings.unicode_decode "
    "tensorflow.math.bincount tensorflow.math.confusion_matrix tensorflow.strings.format "
    "tensorflow.strings.unicode_split tensorflow.strings.ngrams tensorflow.math.in_top_k".split()
)
"""Ops whose results differ in length per row, or that count over all rows, as do sums over segments of a row."""
_BACKEND = frozenset(
    "abs sum mean max min square sqrt exp log pow clip dot batch_dot concatenate expand_dims squeeze cast epsilon "
    "equal greater less maximum minimum argmax argmin sigmoid softmax tanh relu sign prod var std stack reshape "
    "transpose flatten binary_crossentropy categorical_crossentropy switch zeros_like ones_like shape int_shape "
    "ndim".split()
)
_PYTHON = frozenset({"range", "len", "float", "int", "abs", "min", "max", "sum", "enumerate", "zip", "round"})
COLLECTING = frozenset({"append", "extend", "numpy", "write"})
"""Methods that store or convert an iteration's result."""
_SLICE_WRITES = frozenset({"assign", "assign_add", "assign_sub"})
"""Methods that write a part of a variable, ``grid[i, j].assign(x)``: ``scatter_nd_update`` writes all of them."""
_BY_ROW = frozenset({"tensorflow.map_fn", "tensorflow.vectorized_map", "keras.backend.map_fn"})


def batchable(ctx: Context, nodes: Iterable[ast.AST], levels: int = MAX_LEVELS) -> bool:
    """Whether every call below the nodes has a batch form; unknown calls have none."""
    return all(_batchable(ctx, node, levels) for node in walk(nodes) if isinstance(node, ast.Call))


def _batchable(ctx: Context, node: ast.Call, levels: int) -> bool:
    call = ctx.call(node)
    if call.name and (has_batch_form(call) or _masked_reduction(ctx, call)):
        return True
    if call.name in _BY_ROW:
        return _has_batchable(ctx, call.argument(0, "fn"), levels)
    if call.name == "tensorflow.cond":
        return all(_has_batchable(ctx, branch, levels) for branch in branches(call))
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SLICE_WRITES:
        written = node.func.value
        return isinstance(written, ast.Subscript) and ctx.tag(written.value) is Tag.VARIABLE
    callees = ctx.functions.callees(node)
    if callees:
        return levels > 0 and all(batchable(ctx.at(c.module), c.body, levels - 1) for c in callees)
    if isinstance(node.func, ast.Name):
        return node.func.id in _PYTHON and not ctx.definitions(node.func)
    return isinstance(node.func, ast.Attribute) and not call.name.startswith(("keras.", "tensorflow.random")) and (
        node.func.attr in COLLECTING
    )  # fmt: skip


def _has_batchable(ctx: Context, given: ast.expr | None, levels: int) -> bool:
    """Whether a given function is known, and has a batch form."""
    inner = ctx.function(given) if given is not None else None
    return inner is not None and levels > 0 and batchable(ctx.at(inner.module), inner.body, levels - 1)


def branches(cond: Call) -> tuple[ast.expr | None, ast.expr | None]:
    """The two functions of a ``tf.cond``: on a batch, ``tf.where`` chooses between their results."""
    return cond.argument(1, "true_fn"), cond.argument(2, "false_fn")


def _masked_reduction(ctx: Context, call: Call) -> bool:
    """Whether a call is ``reduce_min(boolean_mask(row, row > 0))``: on the batch it is ``reduce_min(where(rows > 0,
    rows, inf))``.
    """
    around = ctx.parent(call.node)
    return (
        call.name == "tensorflow.boolean_mask"
        and isinstance(around, ast.Call)
        and ctx.name(around.func).startswith(("tensorflow.reduce_", "tensorflow.argm", "tensorflow.math.reduce_"))
    )


def has_batch_form(call: Call) -> bool:
    """Whether a call is of a library op that accepts a batch as well as a row."""
    name, word = call.name, call.word
    if name in _RAGGED or "segment_" in word:
        return False
    if name == "tensorflow.where":
        return len(call.node.args) + len(call.node.keywords) > 1
    if name == f"tensorflow.{word}":
        return word in _OPS
    if name.startswith("tensorflow.random."):
        return word in ("uniform", "normal", "truncated_normal")
    if name.startswith("tensorflow.nn."):
        return word in _NN
    if name.startswith("tensorflow.image."):
        return word in _IMAGE
    if name.startswith("keras.backend."):
        return word in _BACKEND
    if name.startswith(("keras.ops.", "keras.losses.", "keras.activations.")):
        return word[:1].islower() and word not in ("map", "scan", "while_loop", "cond", "vectorized_map")
    if name.startswith("tensorflow.Tensor."):
        return word in ("numpy", "get_shape")
    return name.startswith(_NAMESPACES) or name == "tensorflow.TensorArray.write"
