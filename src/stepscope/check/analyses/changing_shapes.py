"""Whether a tensor that is passed repeatedly has another shape each time, as far as the source shows.

The answer is the reason in words, for messages; "" if nothing indicates that the shape changes. The last, partial batch
of an epoch does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from stepscope.check.analyses.idioms import FEW, iterated, of_graph
from stepscope.check.context import Context
from stepscope.check.inference.datasets import Stage
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Class, Tag
from stepscope.check.source.syntax import last_word

MAX_DEPTH = 4
"""Depth to which names are followed."""
SHAPED = {
    **dict.fromkeys(
        "tensorflow.zeros tensorflow.ones tensorflow.fill tensorflow.random.uniform tensorflow.random.normal "
        "tensorflow.random.truncated_normal numpy.zeros numpy.ones numpy.empty numpy.full numpy.random.normal "
        "tensorflow.random.stateless_uniform tensorflow.random.stateless_normal tensorflow.range numpy.arange "
        "numpy.random.rand numpy.random.randn numpy.random.random tensorflow.eye numpy.eye".split(),
        0,
    ),
    "numpy.random.uniform": 2,
}
"""Calls that receive a shape, with its position among the arguments."""
CONVERTING = frozenset(
    "tensorflow.constant tensorflow.convert_to_tensor tensorflow.cast tensorflow.expand_dims tensorflow.identity "
    "tensorflow.stack tensorflow.concat numpy.array numpy.asarray numpy.expand_dims numpy.stack numpy.float32 "
    "tensorflow.ragged.constant".split()
)
LENGTHS = frozenset(
    "encode tokenize split texts_to_sequences text_to_sequence encode_as_ids EncodeAsIds word_tokenize".split()
)
"""Methods whose result is as long as their input text."""
CHANGED_LATER = frozenset({"__init__", "build", "setUp", "setup", "reset", "_build", "__enter__"})


def changing_calls(ctx: Context) -> tuple[tuple[ast.Call, ast.expr, str], ...]:
    """The file's calls of tf.functions that have an argument with a changing shape: the argument, and the reason."""
    every = (call for same in ctx.module.flow.calls.values() for call in same if call.args or call.keywords)
    own = (call for call in every if not ctx.engine.names.is_foreign(ctx.module, call.func))
    changing = ((call, found) for call in own if (found := changing_argument(ctx, call)) is not None)
    return tuple((call, *found) for call, found in changing if of_graph(ctx, call))


def changing_argument(ctx: Context, call: ast.Call) -> tuple[ast.expr, str] | None:
    """The first argument whose shape changes, and the reason."""
    loops = ctx.loops.around(call, calls=False)
    if any(loop.iterations is not None and loop.iterations <= FEW for loop in loops[:1]):
        return None
    for argument in [*call.args, *(k.value for k in call.keywords)]:
        reason = varying(ctx, argument, loops)
        if reason:
            return argument, reason
    return None


def varying(ctx: Context, expr: ast.expr, loops: tuple[Loop, ...], depth: int = MAX_DEPTH) -> str:
    """The reason why an argument's shape differs between calls; "" if there is none.

    Args:
        ctx: the file that contains the expression.
        expr: the argument.
        loops: the loops of the same function that repeat the call.
        depth: the number of names that may still be followed.
    """
    if depth == 0:
        return ""
    if isinstance(expr, ast.Name):
        return _first(_bound(ctx, expr, loops, depth))
    if isinstance(expr, ast.Subscript):
        if isinstance(expr.slice, ast.Slice):
            return _sliced(ctx, expr, expr.slice, loops)
        return varying(ctx, expr.value, loops, depth - 1) if isinstance(expr.slice, ast.Constant) else ""
    if isinstance(expr, (ast.List, ast.Tuple)):
        return _first(varying(ctx, e, loops, depth - 1) for e in expr.elts[:8])
    if isinstance(expr, ast.Call):
        return _made(ctx, expr, loops, depth)
    return ""


def _first(reasons: Iterable[str]) -> str:
    return next((reason for reason in reasons if reason), "")


def _bound(ctx: Context, name: ast.Name, loops: tuple[Loop, ...], depth: int) -> Iterator[str]:
    for binding in ctx.definitions(name):
        if binding.value is None:
            continue
        if binding.kind == "element":
            yield _elements(ctx, binding.value)
        elif binding.kind in ("assign", "unpack"):
            yield varying(ctx, binding.value, loops, depth - 1)


def _elements(ctx: Context, source: ast.expr) -> str:
    """The reason if an expression is an element of a Dataset padded to the longest of its batch."""
    for chain in ctx.chains(iterated(source)):
        for stage in chain.stages:
            if stage.call is None:
                continue
            if stage.name == "padded_batch" and _open(ctx, stage):
                return "the length that padded_batch pads a batch to"
            if stage.name == "bucket_by_sequence_length" and not _to_boundary(stage):
                return "the length that bucket_by_sequence_length pads a batch to"
    return ""


def _open(ctx: Context, stage: Stage) -> bool:
    """Whether a stage is a padded_batch with an open dimension."""
    call = stage.call
    if call is None or any(k.arg is None for k in call.keywords):
        return False
    given = next((k.value for k in call.keywords if k.arg == "padded_shapes"), None)
    if given is None:
        given = call.args[1] if len(call.args) > 1 else None
    if given is None:
        return ctx.target.tensorflow >= (2, 2)
    return any(isinstance(part, ast.Constant) and part.value is None for part in ast.walk(given))


def _to_boundary(stage: Stage) -> bool:
    keywords = stage.call.keywords if stage.call is not None else []
    return any(k.arg == "pad_to_bucket_boundary" and not _false(k.value) for k in keywords)


def _false(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Constant) and expr.value is False


def _sliced(ctx: Context, expr: ast.Subscript, part: ast.Slice, loops: tuple[Loop, ...]) -> str:
    """The reason for ``x[:n]`` if n changes; for a moving window both bounds change."""
    bounds = [b for b in (part.lower, part.upper) if b is not None]
    if len(bounds) != 1 or part.step is not None or ctx.tag(expr.value) is Tag.PY_STRING:
        return ""
    return f"the length of {ctx.text(expr)}" if _changes(ctx, bounds[0], loops) else ""


def _made(ctx: Context, call: ast.Call, loops: tuple[Loop, ...], depth: int) -> str:
    name = ctx.name(call.func)
    if name in SHAPED:
        index = SHAPED[name]
        shape = next((k.value for k in call.keywords if k.arg in ("shape", "size", "dims")), None)
        shape = shape if shape is not None else call.args[index] if len(call.args) > index else None
        parts = shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else [shape] if shape is not None else []
        for part in parts:
            if _changes(ctx, part, loops):
                return f"value of {ctx.text(part)}, which is part of its shape"
        return ""
    if name in CONVERTING and call.args:
        return varying(ctx, call.args[0], loops, depth - 1)
    word = last_word(call.func)
    if word in LENGTHS and call.args and any(ctx.loops.varies(call.args[0], loop) is True for loop in loops):
        return f"length that {word} gives"
    return ""


def _changes(ctx: Context, expr: ast.expr, loops: tuple[Loop, ...], depth: int = MAX_DEPTH) -> bool:
    """Whether a Python number differs in the next call; batch sizes are not meant."""
    if any(_of_size(part) for part in ast.walk(expr)):
        return False
    if isinstance(expr, ast.Attribute):
        return _reassigned(ctx, expr)
    if isinstance(expr, ast.Name) and depth:
        made = [b.value for b in ctx.definitions(expr) if b.kind == "assign" and b.value is not None]
        if any(
            _changes(ctx, value, loops, depth - 1) for value in made if isinstance(value, (ast.Attribute, ast.Name))
        ):
            return True
        if any(_of_size(part) for value in made for part in ast.walk(value)):
            return False
    return any(ctx.loops.varies(expr, loop) is True for loop in loops)


def _of_size(node: ast.AST) -> bool:
    """Whether a node is ``x.shape``, ``len(x)`` or ``min(n, ...)``: the same for all batches but the last."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("shape", "size")
    return isinstance(node, ast.Call) and last_word(node.func) in ("len", "shape", "min", "max", "size")


def _reassigned(ctx: Context, expr: ast.Attribute) -> bool:
    """Whether a method recomputes an attribute of self from data: ``self.n = int(tf.reduce_sum(...))``."""
    owner = ctx.value(expr.value).cls
    cls = ctx.engine.names.owner(owner, expr.attr) if isinstance(owner, Class) else None
    if cls is None:
        return False
    at = ctx.at(cls.module)
    for binding in cls.scope.attributes[expr.attr]:
        method = binding.scope.name.rpartition(".")[2]
        value = binding.value
        if method in CHANGED_LATER or not isinstance(value, ast.Call) or last_word(value.func) not in ("int", "len"):
            continue
        if value.args and at.tag(value.args[0]) in (Tag.TENSOR, Tag.VARIABLE, Tag.NUMPY):
            return True
    return False
