"""Keras' predict is called again and again in a loop.

## What it does
Reports `model.predict(x)` in a loop, also one around the function that calls it, where the model stays the same and the
input is another one each time.

## Why it is slow
Each call of `predict` makes a data adapter, a tf.data iterator and callbacks, and collects results: milliseconds around
a model that needs microseconds for a row. Measured on 30 single rows of a small model: 29 times the CPU time of one
`predict` for all of them, 44 times that of `model(x)`.

## Example
Slow:

```python
import numpy as np
import keras

model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(4)])
rows = np.zeros((30, 16), "float32")
results = []
for row in rows:
    results.append(model.predict(row[None], verbose=0))
```

Fixed:

```python
import numpy as np
import keras

model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(4)])
rows = np.zeros((30, 16), "float32")
results = model.predict(rows, verbose=0)
```

## When it is silent
When it is not known that the object is a Keras model (scikit-learn has a `predict` too); when the model is another one
in each iteration (an ensemble, folds); in loops of at most ten iterations; in loops that train (`fit`), where predict
runs once an epoch; with a `batch_size` of two or more, which says that the input is large.

## Fix and its safety
Collect the rows and predict them in one call, or call `model(x, training=False)`, best in a `tf.function`. The direct
call returns a tensor instead of an array, and needs the whole input in memory at once.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.checker.context import Call, Context
from stepscope.checker.hits import Hit
from stepscope.checker.loops import Loop
from stepscope.checker.rule import Rule

FEW = 10
"""So many calls are no matter."""
ROWS = frozenset({"numpy.expand_dims", "tensorflow.expand_dims", "numpy.atleast_2d"})
TRAINING = frozenset({"fit", "fit_generator"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """A predict with a loop around it."""
    data = call.argument(0, "x")
    size = call.argument(1, "batch_size")
    if data is None or call.receiver is None or ctx.traced(call.node):
        return
    row = _single_row(ctx, data)
    if size is not None and not row and ctx.integer(size) != 1:
        return
    for loop in ctx.loops(call.node):
        if (loop.iterations is not None and loop.iterations <= FEW) or _trains(loop):
            continue
        if not _same_model(ctx, call.receiver, loop) or (not loop.via and ctx.varies(data, loop) is False):
            continue
        model = ctx.text(call.receiver)
        rows = " for a single row" if row else ""
        around = f"through {ctx.text(loop.via[-1][1].func)}" if loop.via else "in this loop"
        yield ctx.hit(
            call.node,
            f"{model}.predict is called{rows} again and again {around}: each call costs milliseconds of its own",
            severity="error" if row else "warning",
            confidence=0.95 if row else 0.8,
            also=[ctx.loop_span(loop)],
            fix=ctx.fix(
                "direct-call",
                f"Call {model}(x, training=False) itself",
                call.node,
                safety="unsafe",
                behaviour="The result is a tensor instead of a NumPy array, and the input is not split into batches.",
            ),
        )
        return


def _same_model(ctx: Context, receiver: ast.expr, loop: Loop) -> bool:
    """The model is not one of many, and not made in the loop."""
    if not loop.via:
        made = ctx.definitions(receiver) if isinstance(receiver, ast.Name) else ()
        return ctx.varies(receiver, loop) is not True and not any(ctx.inside(b.node, loop) for b in made)
    at = ctx.at(loop.module)
    function = ctx.enclosing(receiver)
    given = [*loop.via[0][1].args, *(k.value for k in loop.via[0][1].keywords)]
    models = [g for g in given if at.tag(g).value == "Model"]
    called = loop.via[0][1].func
    if isinstance(called, ast.Attribute):
        models.append(called.value)
    return function is not None and all(at.varies(m, loop.node) is not True for m in models)


def _trains(loop: Loop) -> bool:
    """The loop's own body trains: predict is the smaller part of it."""
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in TRAINING
        for statement in loop.body
        for part in ast.walk(statement)
    )


def _single_row(ctx: Context, data: ast.expr) -> bool:
    """``x[None]``, ``[x]``, ``np.array([x])``, ``np.expand_dims(x, 0)``, ``x.reshape(1, -1)``, also by name."""
    if isinstance(data, ast.Name):
        values = [b.value for b in ctx.definitions(data) if b.kind == "assign" and b.value is not None]
        return bool(values) and all(not isinstance(v, ast.Name) and _single_row(ctx, v) for v in values)
    if isinstance(data, ast.List):
        return len(data.elts) == 1
    if isinstance(data, ast.Subscript):
        parts = data.slice.elts if isinstance(data.slice, ast.Tuple) else [data.slice]
        first = parts[0] if parts else None
        return (isinstance(first, ast.Constant) and first.value is None) or (
            isinstance(first, ast.Attribute) and first.attr == "newaxis"
        )
    if not isinstance(data, ast.Call):
        return False
    word = data.func.attr if isinstance(data.func, ast.Attribute) else ""
    if word == "reshape":
        sizes = data.args[-1:] if ctx.name(data.func) in ("numpy.reshape", "tensorflow.reshape") else data.args[:1]
        first = sizes[0] if sizes else None
        first = first.elts[0] if isinstance(first, (ast.Tuple, ast.List)) and first.elts else first
        return first is not None and ctx.integer(first) == 1
    if ctx.name(data.func) in ROWS:
        axis = next((k.value for k in data.keywords if k.arg == "axis"), data.args[1] if data.args[1:] else None)
        return axis is None or ctx.integer(axis) == 0
    return (
        word in ("array", "asarray", "constant", "convert_to_tensor")
        and bool(data.args)
        and _single_row(ctx, data.args[0])
    )


RULE = Rule(
    code="KER001",
    name="repeated-predict",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="prediction",
    exposed_stage="prediction",
    pipeline_stage="forward-backward",
    speedup=29.0,
    remedy="predict all rows in one call, or call model(x, training=False) in a tf.function",
    calls=frozenset({"keras.Model.predict"}),
    on_call=check,
    related=("HST003",),
)
