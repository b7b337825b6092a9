"""A Python loop over the rows of a tensor calls ops that work on all rows at once.

## What it does
Reports eager loops and comprehensions whose iterations take one part of a tensor each, if they do nothing but
arithmetic and TensorFlow ops that have a batch form, and collect or sum the results. A part is a row (`for row in
tensor`, `tensor[i]`), a slice of an inner axis (`tensor[:, :, i]`), an element at places that the loop is given
(`tensor[r, c]`), a place of a variable that is written (`grid[i, j].assign(x)`), a single random number, or a row of an
array that an op gets.

## Why it is slow
Each `tensor[i]` and each op on a row is a call into TensorFlow of ten microseconds or more, for a few numbers; one op
on the whole tensor takes as long as a few of these. Measured with 2,000 rows of 64 numbers: more than 1,000 times the
time of the ops on the whole tensor. So it is with single elements and single random numbers, and gradients repeat it
for each part.

## Example
Slow:

```python
import tensorflow as tf

points = tf.random.normal([2000, 64])
lengths = []
for i in range(points.shape[0]):
    lengths.append(tf.sqrt(tf.reduce_sum(tf.square(points[i]))))
```

Fixed:

```python
import tensorflow as tf

points = tf.random.normal([2000, 64])
lengths = tf.sqrt(tf.reduce_sum(tf.square(points), axis=1))
```

## When it is silent
When it is not known to be a tensor (lists of tensors, Datasets, dictionaries), or `isinstance(rows, (list, tuple))`
says that it is not; when an iteration needs the result of the previous one (recurrence, search); when anything unknown
or without a batch form is called (models, printing, drawing); when rows of an array are only converted; in loops of at
most ten iterations; in traced functions and graphs of version 1, which other rules cover; with a condition on the row
(VEC004); in tests.

It is a warning for 100 parts or more in all (nested loops multiply), or if the loop itself is repeated; otherwise info,
as is a loop that only copies rows, or goes along an inner axis of unknown length.

## Fix and its safety
Write it for the whole tensor: `axis=` or broadcasting; for inner axes `tf.transpose` before and after; for elements
`tf.gather_nd`, for writes `tf.scatter_nd` or `scatter_nd_update`; one draw with `shape=[n]`, whose `maxval` may be a
tensor. Summing in another order changes the last digits, one draw gives other random numbers. Not done automatically.

## Versions
All with eager execution.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.batchable import batchable
from stepscope.check.analyses.graphs import graph_mode
from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.row_loops import RowLoop, RowNode, body, carries, is_count, often, row_loop
from stepscope.check.context import Context
from stepscope.check.hits import Hit
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import argument, last_word, walk

FEW = 10
"""Rows that are too few to matter."""
CONVERSIONS = frozenset({"tensorflow.constant", "tensorflow.convert_to_tensor", "tensorflow.identity"})
"""Ops that only copy a row of an array."""


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report a loop over rows."""
    if not isinstance(node, (ast.For, ast.ListComp, ast.GeneratorExp)) or in_test(ctx):
        return
    if ctx.traced(node) or ctx.once(graph_mode):
        return
    found = row_loop(ctx, node, parts=True)
    if found is None:
        yield from _draws(ctx, node)
        return
    if not _one_op(ctx, found) or _nested(ctx, node) or _assigned_to(ctx, found.tensor):
        return
    first = found.body[0]
    what = "rows" if found.first else "parts"
    yield ctx.hit(
        node.iter if isinstance(node, ast.For) else node,
        f"a Python loop over the {what} of {ctx.text(found.tensor)} calls ops that work on all {what} at once",
        confidence=0.85,
        severity="warning" if _costly(ctx, found) else "info",
        also=[ctx.places.span(first)],
    )


def _costly(ctx: Context, found: RowLoop) -> bool:
    """Whether the loop is known to take more than a moment: an inner axis may be short."""
    known = found.first or not found.index or ctx.engine.loops.iterations(ctx.module, found.node) is not None
    return known and often(ctx, found.node) and _computes(ctx, found)


def _draws(ctx: Context, node: RowNode) -> Iterator[Hit]:
    """Report a loop that counts and draws a random number in each iteration."""
    head = node if isinstance(node, ast.For) else node.generators[0]
    if not isinstance(node, ast.For) and (len(node.generators) > 1 or node.generators[0].ifs):
        return
    if not isinstance(head.iter, ast.Call) or not is_count(ctx, head.iter) or _short(ctx, node):
        return
    parts = body(node)
    drawn = next((p for p in walk(parts) if isinstance(p, ast.Call) and _one_number(ctx, p)), None)
    collects = not isinstance(node, ast.For) or any(
        isinstance(p, ast.Call) and last_word(p.func) == "append" for p in walk(parts)
    )
    if drawn is None or not collects or carries(parts) or not batchable(ctx, parts) or _ends(parts):
        return
    yield ctx.hit(
        node.iter if isinstance(node, ast.For) else node,
        f"{ctx.text(drawn.func)} draws one number in each iteration; one call draws all of them",
        confidence=0.85,
        severity="warning" if often(ctx, node) else "info",
        also=[ctx.places.span(drawn)],
    )


def _one_number(ctx: Context, call: ast.Call) -> bool:
    """Whether a call draws a single random number: its shape is ``[]`` or ``[1]``."""
    shape = argument(call, 0, "shape")
    if not ctx.name(call.func).startswith("tensorflow.random.") or not isinstance(shape, (ast.List, ast.Tuple)):
        return False
    return all(ctx.loops.integer(size) == 1 for size in shape.elts)


def _assigned_to(ctx: Context, rows: ast.expr) -> bool:
    """Whether elements are assigned, which a tensor does not allow: the object is then a list."""
    text = ast.unparse(_base(rows))
    stored = (s for s in ctx.module.flow.stores if isinstance(s, ast.Subscript))
    same = ctx.module.scope_of(rows) if isinstance(_base(rows), ast.Name) else None
    return any(ast.unparse(_base(s)) == text and same in (None, ctx.module.scope_of(s)) for s in stored)


def _base(expr: ast.expr) -> ast.expr:
    """The base of an index chain: ``layers`` in ``layers[i][j]``."""
    while isinstance(expr, ast.Subscript):
        expr = expr.value
    return expr


def _one_op(ctx: Context, found: RowLoop) -> bool:
    """Whether the loop's work could be done for all rows at once."""
    node = found.node
    if _short(ctx, node) or carries(found.body) or not batchable(ctx, found.body):
        return False
    if found.tag is Tag.NUMPY and not _collects(node):
        return False
    return not _ends(found.body) and (_computes(ctx, found) or (found.tag is not Tag.NUMPY and _copies(found)))


def _collects(node: RowNode) -> bool:
    """Whether the results of the iterations are kept: in a list, a sum, an array."""
    return not isinstance(node, ast.For) or any(
        isinstance(p, ast.AugAssign)
        or (isinstance(p, ast.Call) and last_word(p.func) == "append")
        or (isinstance(p, ast.Assign) and isinstance(p.targets[0], ast.Subscript))
        for p in walk(node.body)
    )


def _nested(ctx: Context, node: RowNode) -> bool:
    """Whether a loop is inside another that is reported itself: pairs of rows."""
    parent = ctx.parent(node)
    while parent is not None and not isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        outer = (
            row_loop(ctx, parent, parts=True) if isinstance(parent, (ast.For, ast.ListComp, ast.GeneratorExp)) else None
        )
        if outer is not None and _one_op(ctx, outer):
            return True
        parent = ctx.parent(parent)
    return False


def _short(ctx: Context, node: RowNode) -> bool:
    times = ctx.engine.loops.iterations(ctx.module, node)
    return times is not None and times <= FEW


def _ends(parts: list[ast.AST]) -> bool:
    """Whether the loop has a condition in its body, or ends before the last row."""
    return any(isinstance(n, (ast.If, ast.IfExp, ast.While, ast.Break, ast.Return, ast.Try)) for n in walk(parts))


def _computes(ctx: Context, loop: RowLoop) -> bool:
    """Whether an op of TensorFlow, or arithmetic of tensors, works on a row."""
    for node in walk(loop.body):
        if isinstance(node, ast.Call) and ctx.tag(node) is Tag.TENSOR:
            if loop.tag is Tag.NUMPY and ctx.name(node.func) in CONVERSIONS:
                continue
            if any(loop.mentions_row(a) for a in (*node.args, *(k.value for k in node.keywords))):
                return True
            if isinstance(node.func, ast.Attribute) and loop.mentions_row(node.func.value):
                return True  # a part of a variable is written
        if loop.tag is Tag.NUMPY:
            continue
        if isinstance(node, ast.BinOp) and (loop.is_row(node.left) or loop.is_row(node.right)):
            return True
        if isinstance(node, ast.AugAssign) and loop.mentions_row(node.value):
            return True
        if isinstance(node, ast.Subscript) and _reads(ctx, loop, node):
            return True
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Subscript) and loop.mentions_row(target.slice):
            return True
    return False


def _reads(ctx: Context, loop: RowLoop, node: ast.Subscript) -> bool:
    """Whether a tensor is read at a place that is a row, or at several places that the loops count."""
    if not loop.index and loop.mentions_row(node.slice):
        return loop.is_row(node.value) or ctx.tag(node.value) in (Tag.TENSOR, Tag.VARIABLE)
    return loop.is_row(node.value) and loop.mentions_row(node.slice)


def _copies(loop: RowLoop) -> bool:
    """Whether the loop stores rows: ``batch[i] = row``."""
    return any(
        isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Subscript) and loop.is_row(n.value)
        for n in walk(loop.body)
    )


RULE = Rule(
    code="VEC002",
    name="tensor-rows-in-python",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: not using efficient API",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    speedup=1000.0,
    remedy="call the ops on the whole tensor, with axis= or broadcasting",
    nodes=(ast.For, ast.ListComp, ast.GeneratorExp),
    on_node=check,
    related=("HST001", "HST002"),
)
