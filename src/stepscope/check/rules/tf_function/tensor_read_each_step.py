"""Every iteration reads a result of the compiled step into Python.

## What it does
Reports, as info, `.numpy()`, `float()`, `int()` and `.item()` of the result of a `tf.function`, in every iteration of
the loop that calls it, to print, log, collect or add it up.

## Why it is slow
A step on a GPU is only queued: Python continues and queues the next one. Reading a result waits until the device has
computed it, and the device then waits for Python. On a CPU a step is done when its call returns, and reading costs
microseconds, so it does not matter there. Nothing was measured on a GPU for this page.

## Example
Slow:

```python
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)

@tf.function
def step(x):
    return tf.reduce_sum(x)

losses = []
for x in data:
    losses.append(float(step(x)))
```

Fixed:

```python
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)

@tf.function
def step(x):
    return tf.reduce_sum(x)

losses = []
for x in data:
    losses.append(step(x))
losses = [float(loss) for loss in losses]
```

## When it is silent
When the value is not printed, logged, collected or added up; under a condition (every hundredth step), outside loops
over a Dataset, in tests.

## Fix and its safety
Keep the tensors and read them at intervals or at the end of the epoch, or add them up in a Keras metric.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test, over_dataset
from stepscope.check.context import Context
from stepscope.check.hits import Hit
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word, walk

READS = frozenset({"numpy", "item"})
CONVERTS = frozenset({"float", "int"})
SHOWS = frozenset("print append set_description set_postfix info debug scalar log update add_scalar".split())


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report a loop over a Dataset that reads its step's result."""
    if not isinstance(node, ast.For) or in_test(ctx) or not over_dataset(ctx, node) or ctx.traced(node):
        return
    for part in walk(node.body):
        read = _read(part)
        if read is None or not _from_step(ctx, read) or _guarded(ctx, part, node) or not _for_show(ctx, part, node):
            continue
        yield ctx.hit(
            part,
            f"{ctx.text(part)} waits in every iteration until the device has computed the step",
            confidence=0.6,
        )
        return


def _read(node: ast.AST) -> ast.expr | None:
    """The tensor that a call reads."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in READS and not node.args:
        return node.func.value
    if isinstance(node.func, ast.Name) and node.func.id in CONVERTS and len(node.args) == 1:
        return node.args[0]
    return None


def _from_step(ctx: Context, expr: ast.expr) -> bool:
    """Whether an expression is the result of a tf.function, also through a name or a tuple."""
    if isinstance(expr, ast.Call):
        return isinstance(expr.func, (ast.Name, ast.Attribute)) and ctx.tag(expr.func) is Tag.FUNCTION
    if isinstance(expr, ast.Subscript):
        return _from_step(ctx, expr.value)
    if isinstance(expr, ast.Name):
        made = ctx.definitions(expr)
        return any(
            b.kind in ("assign", "unpack") and isinstance(b.value, ast.Call) and _from_step(ctx, b.value) for b in made
        )
    return False


def _for_show(ctx: Context, node: ast.AST, loop: ast.AST) -> bool:
    """Whether a value is printed, logged, collected or added up, so that reading it can wait; other uses may not."""
    parent = ctx.parent(node)
    while parent is not None and parent is not loop:
        if isinstance(parent, ast.AugAssign):
            return True
        if isinstance(parent, ast.Call) and last_word(parent.func) in SHOWS:
            return True
        parent = ctx.parent(parent)
    return False


def _guarded(ctx: Context, node: ast.AST, loop: ast.AST) -> bool:
    """Whether a node runs not in every iteration of this loop, or in an inner loop."""
    parent = ctx.parent(node)
    while parent is not None and parent is not loop:
        if isinstance(parent, (ast.If, ast.IfExp, ast.For, ast.While, ast.Try)):
            return True
        parent = ctx.parent(parent)
    return False


RULE = Rule(
    code="TFF010",
    name="tensor-read-each-step",
    severity="info",
    symptom="Processor: abnormal GPU utilization",
    cause="Data: inefficient data transmission",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="device-to-host",
    speedup=1.0,
    remedy="keep the tensors and read them at intervals",
    nodes=(ast.For,),
    on_node=check,
    since_version=(2, 0),
    related=("HST008",),
)
