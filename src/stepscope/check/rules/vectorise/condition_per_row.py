"""A Python loop evaluates a condition for each row or element of a tensor.

## What it does
Reports loops over a tensor in eager code with an `if` on the row or on one of its elements, if its branches only
compute or collect with ops that have a batch form.

## Why it is slow
Each comparison makes a tensor and waits for its value in Python; on a GPU each is a round trip. `tf.where`,
`tf.boolean_mask` and comparisons do it for all elements at once. Measured with 2,000 numbers: more than 1,000 times the
time of `tf.where`.

## Example
Slow:

```python
import tensorflow as tf

values = tf.random.normal([2000])
clipped = []
for value in values:
    if value > 0.5:
        clipped.append(value * 2.0)
    else:
        clipped.append(0.0)
```

Fixed:

```python
import tensorflow as tf

values = tf.random.normal([2000])
clipped = tf.where(values > 0.5, values * 2.0, 0.0)
```

## When it is silent
As VEC002: when an iteration needs the result of the previous one, stops the loop, or calls anything unknown. It is a
warning for 100 rows or more, or if the loop itself is repeated; otherwise info.

## Fix and its safety
Use `tf.where(condition, a, b)` if each element yields one, `tf.boolean_mask` if some are omitted. Both branches are
computed for all elements: if one of them would fail (division by zero), mask its input first. Not done automatically.

## Versions
All with eager execution.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.batchable import batchable
from stepscope.check.analyses.graphs import graph_mode
from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.row_loops import RowLoop, carries, often, row_loop
from stepscope.check.context import Context
from stepscope.check.hits import Hit
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

FEW = 10
"""Rows that are too few to matter."""


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report a loop over rows with a condition on the row."""
    if not isinstance(node, ast.For) or in_test(ctx):
        return
    found = row_loop(ctx, node, parts=True) if not ctx.once(graph_mode) else None
    if found is None or _within_another(ctx, node):
        return
    asked = _asked(ctx, found)
    if not asked:
        return
    yield ctx.hit(
        asked[0].test,
        f"a Python loop evaluates {ctx.text(asked[0].test)} for each row of {ctx.text(found.tensor)}",
        confidence=0.85,
        severity="warning" if often(ctx, node) else "info",
        also=[ctx.places.span(node.iter)],
    )


def _asked(ctx: Context, found: RowLoop) -> list[ast.If | ast.IfExp]:
    """The conditions on a row, if the loop does nothing that needs Python; none for few rows or traced code."""
    node = found.node
    times = ctx.engine.loops.iterations(ctx.module, node)
    if found.tag is Tag.NUMPY or ctx.traced(node) or (times is not None and times <= FEW):
        return []
    if any(isinstance(n, (ast.While, ast.Break, ast.Return, ast.Try)) for n in walk(found.body)):
        return []
    asked = [n for n in walk(found.body) if isinstance(n, (ast.If, ast.IfExp)) and found.mentions_row(n.test)]
    if any(_texts(part) for one in asked for part in (one.body, one.orelse) if isinstance(part, ast.expr)):
        return []
    return asked if asked and not carries(found.body) and batchable(ctx, found.body) else []


def _texts(branch: ast.expr) -> bool:
    """Whether a branch of a condition gives a string, which no tensor of numbers can be chosen from."""
    return isinstance(branch, ast.JoinedStr) or (isinstance(branch, ast.Constant) and isinstance(branch.value, str))


def _within_another(ctx: Context, node: ast.For) -> bool:
    """Whether a loop is inside another one over the rows of a tensor, which is reported itself."""
    around = (lp.node for lp in ctx.loops.around(node, calls=False))
    loops = (lp for lp in around if isinstance(lp, ast.For))
    return any((o := row_loop(ctx, lp, parts=True)) is not None and _asked(ctx, o) for lp in loops)


RULE = Rule(
    code="VEC004",
    name="condition-per-row",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: not using efficient API",
    introduced_stage="data preparation",
    exposed_stage="data preparation",
    pipeline_stage="preprocessing",
    speedup=1000.0,
    remedy="use tf.where or tf.boolean_mask on the whole tensor",
    nodes=(ast.For,),
    on_node=check,
    related=("HST001", "HST002"),
)
