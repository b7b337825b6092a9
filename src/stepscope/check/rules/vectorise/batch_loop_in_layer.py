"""A custom loss, metric or layer goes over the batch in a Python loop.

## What it does
Reports loops over the first axis of an argument, `for i in range(batch_size)` with `y_pred[i]` or `for row in y_pred`,
in functions that Keras compiles: a loss or metric passed to `compile`, `call` of a layer or model, a `Lambda`.

## Why it is slow
The loop is unrolled while the graph is traced: the graph contains the body's ops once per row, and each works on a few
numbers. Tracing takes long, and so does every step. Measured with a loss over a batch of 128 rows of 32 numbers and 60
steps, tracing included: 8.2 times the time.

## Example
Slow:

```python
import tensorflow as tf

BATCH = 128

def distance(y_true, y_pred):
    total = 0.0
    for i in range(BATCH):
        total += tf.norm(y_true[i] - y_pred[i])
    return total / BATCH

model = tf.keras.Sequential([tf.keras.layers.Input((32,)), tf.keras.layers.Dense(32)])
model.compile("adam", loss=distance)
```

Fixed:

```python
import tensorflow as tf

def distance(y_true, y_pred):
    return tf.reduce_mean(tf.norm(y_true - y_pred, axis=-1))

model = tf.keras.Sequential([tf.keras.layers.Input((32,)), tf.keras.layers.Dense(32)])
model.compile("adam", loss=distance)
```

## When it is silent
For loops over layers, several inputs, weights, time steps (`x[:, t]`), heads or scales; for loops of at most ten
iterations; when an iteration needs the result of the previous one. It is info if the body calls something unknown or
without a batch form.

## Fix and its safety
Write it for the whole batch, with `axis=`, broadcasting or `batch_dims=`. Summing in another order changes the last
digits. Not done automatically.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.batchable import batchable
from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.row_loops import carries, row_loop
from stepscope.check.context import Context
from stepscope.check.hits import Hit
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word

FEW = 10
"""Rows that are too few to matter."""
MAX_LEVELS = 5
"""Assignments followed between a function's argument and the looped value."""
METHODS = frozenset({"call", "update_state", "compute_loss"})
NOT_TENSORS = frozenset({"self", "training", "mask", "cls", "kwargs", "config"})


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report a loop over the batch in a function that Keras compiles."""
    if not isinstance(node, ast.For) or in_test(ctx):
        return
    times = ctx.engine.loops.iterations(ctx.module, node)
    function = ctx.enclosing(node)
    if function is None or (times is not None and times <= FEW):
        return
    role = _role(ctx, function)
    if not role:
        return
    tensors = frozenset(a.arg for a in function.parameters) - NOT_TENSORS
    if function.name in METHODS and not _over_shape(node.iter):
        tensors = frozenset()  # a layer's input may be a list of tensors
    found = row_loop(ctx, node, tensors)
    if found is None or carries(node.body) or not _of_input(ctx, found.tensor):
        return
    whole = batchable(ctx, node.body)
    yield ctx.hit(
        node.iter,
        f"{role} {function.name} goes over the batch in Python: the graph contains the loop's body once per row",
        severity="warning" if whole else "info",
        confidence=0.85 if whole else 0.6,
        also=[ctx.places.span(node.body[0])],
    )


def _of_input(ctx: Context, expr: ast.expr, levels: int = MAX_LEVELS) -> bool:
    """Whether an expression is an argument of the function or computed from one; not a weight of the layer."""
    for name in ast.walk(expr):
        for made in ctx.definitions(name) if isinstance(name, ast.Name) else ():
            if made.kind == "param":
                if made.name not in NOT_TENSORS:
                    return True
            elif made.value is not None and levels and _of_input(ctx, made.value, levels - 1):
                return True
    return False


def _over_shape(iterated: ast.expr) -> bool:
    """Whether the loop counts along an axis: ``range(tf.shape(x)[0])``, ``range(x.shape[0])``."""
    return any(last_word(n) in ("shape", "int_shape") for n in ast.walk(iterated) if isinstance(n, ast.Attribute))


def _role(ctx: Context, function: Function) -> str:
    """The role in which Keras compiles a function; "" if it does not, as far as known."""
    if function.cls is not None and function.name in METHODS:
        value = ctx.engine.inference.instance(function.cls)
        if value.tag in (Tag.LAYER, Tag.MODEL) and function.name == "call":
            return "the layer's"
        if value.kind.startswith(("keras.losses.", "keras.metrics.")):
            return "the loss's" if value.kind.startswith("keras.losses.") else "the metric's"
        return ""
    for call in ctx.calls("compile"):
        if call.name == "keras.Model.compile":
            for index, keyword in ((1, "loss"), (2, "metrics")):
                given = call.argument(index, keyword)
                if given is not None and any(_is(ctx, e, function) for e in _elements(given)):
                    return "the loss" if keyword == "loss" else "the metric"
    for call in ctx.calls("Lambda"):
        given = call.argument(0, "function")
        if call.name == "keras.layers.Lambda" and given is not None and _is(ctx, given, function):
            return "the Lambda's"
    return ""


def _elements(given: ast.expr) -> list[ast.expr]:
    if isinstance(given, (ast.List, ast.Tuple)):
        return given.elts
    return given.values if isinstance(given, ast.Dict) else [given]


def _is(ctx: Context, expr: ast.expr, function: Function) -> bool:
    found = ctx.function(expr)
    return found is not None and found.node is function.node


RULE = Rule(
    code="VEC005",
    name="batch-loop-in-layer",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: not using efficient API",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=8.2,
    remedy="write it for the whole batch, with axis= or broadcasting",
    nodes=(ast.For,),
    on_node=check,
    related=("GRF003",),
)
