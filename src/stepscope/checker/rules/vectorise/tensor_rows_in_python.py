"""A Python loop over the rows of a tensor calls ops that work on all rows at once.

## What it does
Reports `for row in tensor`, comprehensions over one, and `for i in range(n)` with `tensor[i]` in eager code, if the
loop does nothing but arithmetic and TensorFlow ops that have a batch form, and collects or sums the results.

## Why it is slow
Each `tensor[i]` and each op on a row is a call into TensorFlow of ten microseconds or more, for a few numbers; one op
on the whole tensor takes as long as a few of these. Measured with 2,000 rows of 64 numbers: more than 1,000 times the
time of the ops on the whole tensor.

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
When it is not known to be a tensor (lists of tensors, Datasets), or `isinstance(rows, (list, tuple))` says that it is
not; when an iteration needs the result of the previous one (recurrence, search); when anything unknown or without a
batch form is called (models, printing, drawing); in loops of at most ten iterations; in traced functions, which other
rules cover; with a condition on the row (VEC004); in tests.

It is a warning for 100 rows or more, or if the loop itself is repeated; otherwise info, as is a loop that only copies
rows.

## Fix and its safety
Write it for the whole tensor, with `axis=` or broadcasting. Summing in another order changes the last digits. Not done
automatically.

## Versions
All with eager execution.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.checker.analyses.batchable import batchable
from stepscope.checker.analyses.idioms import in_test
from stepscope.checker.analyses.row_loops import RowLoop, RowNode, carries, often, row_loop
from stepscope.checker.context import Context
from stepscope.checker.hits import Hit
from stepscope.checker.inference.tags import Tag
from stepscope.checker.rule import Rule
from stepscope.checker.source.syntax import walk

FEW = 10
"""Rows that are too few to matter."""


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report a loop over rows."""
    if not isinstance(node, (ast.For, ast.ListComp, ast.GeneratorExp)) or in_test(ctx):
        return
    found = row_loop(ctx, node)
    if found is None or ctx.traced(node) or not _one_op(ctx, found) or _nested(ctx, node):
        return
    if _assigned_to(ctx, found.tensor):
        return
    first = found.body[0]
    yield ctx.hit(
        node.iter if isinstance(node, ast.For) else node,
        f"a Python loop over the rows of {ctx.text(found.tensor)} calls ops that work on all rows at once",
        confidence=0.85,
        severity="warning" if often(ctx, node) and _computes(ctx, found) else "info",
        also=[ctx.places.span(first)],
    )


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
    return not _asks(found) and (_computes(ctx, found) or _copies(found))


def _nested(ctx: Context, node: RowNode) -> bool:
    """Whether a loop is inside another that is reported itself: pairs of rows."""
    parent = ctx.parent(node)
    while parent is not None and not isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        outer = row_loop(ctx, parent) if isinstance(parent, (ast.For, ast.ListComp, ast.GeneratorExp)) else None
        if outer is not None and _one_op(ctx, outer):
            return True
        parent = ctx.parent(parent)
    return False


def _short(ctx: Context, node: RowNode) -> bool:
    times = ctx.engine.loops.iterations(ctx.module, node)
    return times is not None and times <= FEW


def _asks(loop: RowLoop) -> bool:
    """Whether the loop has a condition in its body, or ends before the last row."""
    return any(isinstance(n, (ast.If, ast.IfExp, ast.While, ast.Break, ast.Return, ast.Try)) for n in walk(loop.body))


def _computes(ctx: Context, loop: RowLoop) -> bool:
    """Whether an op of TensorFlow, or arithmetic, works on a row."""
    for node in walk(loop.body):
        if isinstance(node, ast.Call) and ctx.tag(node) is Tag.TENSOR and any(loop.mentions_row(a) for a in node.args):
            return True
        if isinstance(node, ast.BinOp) and (loop.is_row(node.left) or loop.is_row(node.right)):
            return True
        if isinstance(node, ast.AugAssign) and loop.mentions_row(node.value):
            return True
        if isinstance(node, ast.Subscript) and loop.is_row(node.value) and loop.mentions_row(node.slice):
            return True
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Subscript) and loop.mentions_row(target.slice):
            return True
    return False


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
    related=("HST001",),
)
