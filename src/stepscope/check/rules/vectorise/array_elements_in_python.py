"""Nested Python loops go over the elements of a NumPy array.

## What it does
Reports two nested counting loops that read or fill `a[i, j]` of a NumPy array, in a program that uses
TensorFlow or Keras, if the body does nothing but arithmetic, comparisons and assignments.

## Why it is slow
Each access makes a Python object, each operation a few more: a hundred nanoseconds for what takes one nanosecond in an
array operation. If this happens before the first step, or for each batch, the device is idle meanwhile. Measured with
400 x 400 elements: 24 times the time of `np.where`.

It is a warning if the source says that this takes time: at least 1,000 elements in loops that are repeated themselves,
also through calls (each frame, each batch), or a million in all, a quarter of a second. Otherwise it is info, because
only a run shows whether the array is large and how often it is made.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf

scores = np.random.rand(400, 400)
mask = np.zeros((400, 400))
for i in range(400):
    for j in range(400):
        if scores[i, j] > 0.5:
            mask[i, j] = 1.0
mask = tf.constant(mask)
```

Fixed:

```python
import numpy as np
import tensorflow as tf

scores = np.random.rand(400, 400)
mask = np.where(scores > 0.5, 1.0, 0.0)
mask = tf.constant(mask)
```

## When it is silent
When an element depends on its neighbours (`a[i - 1, j]`, tables of dynamic programming); when the loop ends early or
calls anything but Python's and NumPy's arithmetic; in loops of at most ten iterations; in tests.

## Fix and its safety
Write it for the whole array: `np.where`, masks, broadcasting, `np.add.at` for counts. Not done automatically.

## Versions
All.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.row_loops import carries
from stepscope.check.context import Context
from stepscope.check.hits import Hit
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

FEW = 10
"""Rows or columns that are too few to matter."""
SOME = 1000
"""Elements that take a quarter of a millisecond: too few to matter once."""
MILLION = 1_000_000
"""Elements that matter even once."""
PLAIN = frozenset({"abs", "min", "max", "float", "int", "round", "len", "range"})
ENDS = (ast.Break, ast.Return, ast.While, ast.Try, ast.With, ast.Yield, ast.Await)


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report two nested loops and an array indexed by both."""
    inner = next((s for s in node.body if isinstance(s, ast.For)), None) if isinstance(node, ast.For) else None
    if inner is None or not isinstance(node, ast.For) or in_test(ctx) or not ctx.once(_uses_framework):
        return
    outer_index, inner_index = _index(ctx, node), _index(ctx, inner)
    if not outer_index or not inner_index or ctx.traced(node):
        return
    arrays = [b for p in walk(inner.body) if (b := _array(p, outer_index, inner_index)) is not None]
    known = [b for b in arrays if ctx.tag(b) is Tag.NUMPY]
    if not known or not _elementwise(ctx, node, inner, {ast.dump(b) for b in arrays}):
        return
    yield ctx.hit(
        node.iter,
        f"nested Python loops go over the elements of {ctx.text(known[0])}; use array operations",
        confidence=0.7,
        severity="warning" if _costly(ctx, node, inner) else "info",
        also=[ctx.places.span(inner.iter)],
    )


def _costly(ctx: Context, node: ast.For, inner: ast.For) -> bool:
    """Whether the source states that the loops take time: many elements, again and again or at once."""
    sizes = [ctx.engine.loops.iterations(ctx.module, loop) for loop in (node, inner)]
    elements = math.prod(size for size in sizes if size is not None)
    around = ctx.loops.around(node)
    if elements < SOME or None in sizes:
        return False
    total = elements * max((loop.iterations or 1 for loop in around), default=1)
    return total >= MILLION or any(loop.iterations is None or loop.iterations > FEW for loop in around)


def _uses_framework(ctx: Context) -> bool:
    """Whether the file imports TensorFlow or Keras."""
    targets = (target for found in ctx.module.flow.imported.values() for target in found)
    return any(target.partition(".")[0] in ("tensorflow", "keras", "tf_keras") for target in targets)


def _index(ctx: Context, node: ast.For | None) -> str:
    """The name that a loop counts with; "" if it does not count, or not far."""
    if node is None or not isinstance(node.target, ast.Name) or not isinstance(node.iter, ast.Call):
        return ""
    if getattr(node.iter.func, "id", "") != "range":
        return ""
    times = ctx.engine.loops.iterations(ctx.module, node)
    return node.target.id if times is None or times > FEW else ""


def _array(node: ast.AST, outer: str, inner: str) -> ast.expr | None:
    """The array in ``a[i, j]`` or ``a[i][j]``."""
    if not isinstance(node, ast.Subscript):
        return None
    if isinstance(node.slice, ast.Tuple):
        names = [e.id if isinstance(e, ast.Name) else "" for e in node.slice.elts]
        return node.value if names[:2] in ([outer, inner], [inner, outer]) else None
    if isinstance(node.value, ast.Subscript):
        names = [s.id if isinstance(s, ast.Name) else "" for s in (node.value.slice, node.slice)]
        return node.value.value if names in ([outer, inner], [inner, outer]) else None
    return None


def _elementwise(ctx: Context, node: ast.For, inner: ast.For, arrays: set[str]) -> bool:
    """Whether no element depends on another one, and only arithmetic is called."""
    if any(isinstance(n, ENDS) for n in walk(node.body)) or carries(inner.body) or len(node.body) > 1:
        return False
    for part in walk(inner.body):
        if isinstance(part, ast.Call):
            plain = isinstance(part.func, ast.Name) and part.func.id in PLAIN and not ctx.definitions(part.func)
            if not plain and not ctx.name(part.func).startswith(("numpy.", "math.")):
                return False
        shifted = isinstance(part, ast.Subscript) and any(isinstance(n, ast.BinOp) for n in ast.walk(part.slice))
        if shifted and isinstance(part, ast.Subscript) and _base(part) in arrays:
            return False
    return True


def _base(node: ast.Subscript) -> str:
    base: ast.expr = node
    while isinstance(base, ast.Subscript):
        base = base.value
    return ast.dump(base)


RULE = Rule(
    code="NPY003",
    name="array-elements-in-python",
    severity="warning",
    symptom="Time: slow execution time",
    cause="Data: inefficient data preprocessing",
    introduced_stage="data preparation",
    exposed_stage="data preparation",
    pipeline_stage="preprocessing",
    speedup=24.8,
    remedy="write it for the whole array: np.where, masks, broadcasting",
    nodes=(ast.For,),
    on_node=check,
)
