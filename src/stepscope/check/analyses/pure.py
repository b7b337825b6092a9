"""TensorFlow ops that give the same tensor for the same arguments, so that they can be computed once."""

from __future__ import annotations

import ast

from stepscope.check.analyses.graphs import graph_mode
from stepscope.check.analyses.unchanged import unchanged
from stepscope.check.context import Call, Context
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag

IMPURE = (
    "tensorflow.random.", "tensorflow.Variable", "tensorflow.get_variable", "tensorflow.placeholder",
    "tensorflow.layers.", "tensorflow.nn.experimental.dropout", "tensorflow.sparse_placeholder",
    "tensorflow.contrib.", "tensorflow.assign", "tensorflow.scatter_", "tensorflow.train.", "tensorflow.image.random_",
    "tensorflow.nn.dropout", "tensorflow.nn.rnn_cell.", "tensorflow.nn.dynamic_rnn",
    "tensorflow.io.", "tensorflow.py_func", "tensorflow.numpy_function", "tensorflow.raw_ops.", "tensorflow.queue.",
    "tensorflow.timestamp", "tensorflow.Session.", "tensorflow.data.", "tensorflow.Tensor.",
    "tensorflow.cond", "tensorflow.case", "tensorflow.switch_case", "tensorflow.keras.", "tensorflow.lookup.",
    "tensorflow.distribute.", "tensorflow.multinomial", "tensorflow.map_fn", "tensorflow.stop_gradient",
    "tensorflow.get_local_variable", "tensorflow.identity", "tensorflow.TensorArray", "tensorflow.quantization.",
    "tensorflow.vectorized_map", "tensorflow.while_loop", "tensorflow.scan", "tensorflow.foldl", "tensorflow.foldr",
    "tensorflow.nest.", "tensorflow.summary.", "tensorflow.print", "tensorflow.Print", "tensorflow.debugging.",
    "tensorflow.nn.fractional_", "tensorflow.nn.sampled_softmax_loss", "tensorflow.nn.nce_loss",
    "tensorflow.image.sample_distorted", "tensorflow.image.stateless_sample", "tensorflow.count_up_to",
    "tensorflow.batch_", "tensorflow.saved_model.", "tensorflow.recompute_grad", "tensorflow.custom_gradient",
)  # fmt: skip
"""Prefixes of calls that make something new each time, have an effect, or are not worth reporting."""
INITIALIZERS = ("tensorflow.initializers.", "keras.initializers.")


_CANDIDATES = ("candidate_sampler",)
_NUMBERS = frozenset({"int", "float", "len", "abs", "min", "max", "round", "tuple", "list"})
"""Builtins that give the same result for the same arguments."""
_ARRAYS = (
    "math.",
    "numpy.arange",
    "numpy.linspace",
    "numpy.zeros",
    "numpy.ones",
    "numpy.eye",
    "numpy.sqrt",
    "numpy.log",
)


def pure(ctx: Context, call: Call) -> bool:
    """Whether a call makes a tensor or an initializer from its arguments alone; a function argument may read
    anything.
    """
    if call.name.startswith(IMPURE) or call.name.endswith(_CANDIDATES) or not (call.node.args or call.node.keywords):
        return False
    if any(ctx.function(given) is not None for given in (*call.node.args, *(k.value for k in call.node.keywords))):
        return False
    if call.name.startswith(INITIALIZERS) or call.name.endswith("_initializer"):
        return call.word != "get" and "variables" not in call.name
    return ctx.tag(call.node) is Tag.TENSOR


def unchanging(ctx: Context, call: Call, loop: Loop) -> bool:
    """Whether all arguments of a call are visible and the same in each iteration."""
    arguments = [*call.node.args, *(k.value for k in call.node.keywords)]
    return not call.opaque and all(same(ctx, a, loop) for a in arguments)


def same(ctx: Context, expr: ast.expr, loop: Loop) -> bool:
    """Whether an expression of a loop's body has the same value in each iteration; calls in it must be pure."""
    if isinstance(expr, ast.Call):
        inner = ctx.call(expr)
        plain = isinstance(expr.func, ast.Name) and expr.func.id in _NUMBERS and not ctx.definitions(expr.func)
        known = inner.name.startswith("tensorflow.") and pure(ctx, inner)
        return (known or plain or inner.name.startswith(_ARRAYS)) and unchanging(ctx, inner, loop)
    if isinstance(expr, ast.Name) and (made := made_in(ctx, expr, loop)) is not None:
        return same(ctx, made.value, loop)
    if isinstance(expr, (ast.Name, ast.Attribute)):
        return unchanged(ctx, expr, loop, symbolic=ctx.once(graph_mode))
    if isinstance(expr, ast.Constant):
        return True
    if isinstance(expr, (ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple, ast.Subscript, ast.Slice)):
        parts = [p for p in ast.iter_child_nodes(expr) if isinstance(p, ast.expr)]
        return all(same(ctx, part, loop) for part in parts)
    return False


def movable(ctx: Context, statement: ast.Assign, loop: Loop) -> bool:
    """Whether a statement runs in every iteration and binds its one name alone, so that reads get its value."""
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name) or ctx.parent(statement) is not loop.node:
        return False
    bound = [n for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Name) and n.id == target.id]
    return sum(not isinstance(n.ctx, ast.Load) for n in bound) == 1


def made_of(ctx: Context, expr: ast.expr, loop: Loop) -> list[ast.Assign]:
    """The statements of the loop that bind what an expression reads, and those that bind what these read."""
    found: list[ast.Assign] = []
    for name in (n for n in ast.walk(expr) if isinstance(n, ast.Name)):
        made = made_in(ctx, name, loop)
        if made is not None:
            found += [*made_of(ctx, made.value, loop), made]
    return found


def made_in(ctx: Context, name: ast.Name, loop: Loop) -> ast.Assign | None:
    """The statement of the loop that made the tensor in a name, if no other can have."""
    definitions = ctx.definitions(name)
    if len(definitions) != 1 or definitions[0].kind != "assign":
        return None
    node = definitions[0].node
    statement = node if isinstance(node, ast.Assign) else ctx.parent(node)
    if not isinstance(statement, ast.Assign) or not movable(ctx, statement, loop):
        return None
    return statement if ctx.tag(statement.value) is Tag.TENSOR else None
