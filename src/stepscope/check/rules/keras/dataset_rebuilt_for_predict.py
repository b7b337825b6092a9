"""A loop makes a new Dataset for each call of predict or evaluate.

## What it does
Reports `model.predict(dataset)` and `model.evaluate(dataset)` in a loop that makes the Dataset in each iteration, also
in a function called from a loop.

## Why it is slow
Each Dataset is a separate graph: its map functions are traced, its iterator is made and its threads are started again,
for a few batches. Old versions of Keras kept each one, so that memory grew and calls got slower. Measured with a map
function of one op and 40 datasets of 64 rows: 4.2 times the time of one Dataset over all rows.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input((16,)), tf.keras.layers.Dense(4)])
results = []
for part in np.zeros((40, 64, 16), "float32"):
    dataset = tf.data.Dataset.from_tensor_slices(part).map(lambda row: row / 255.0).batch(32)
    results.append(model.predict(dataset, verbose=0))
```

Fixed:

```python
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input((16,)), tf.keras.layers.Dense(4)])
parts = np.zeros((40, 64, 16), "float32").reshape(-1, 16)
dataset = tf.data.Dataset.from_tensor_slices(parts).batch(32).map(lambda rows: rows / 255.0)
results = model.predict(dataset, verbose=0)
```

## When it is silent
When the Dataset is made before the loop; in loops of at most ten iterations; in loops that train (`fit`); when the
model is made in the loop as well (folds); behind `if step % n == 0`; in tests.

## Fix and its safety
Make one Dataset of everything and predict it once, or pass arrays to `model(x, training=False)` in a `tf.function`. Not
done automatically.

## Versions
All; before TensorFlow 2.2 memory grows as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.repeats import called_in, rarely
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule

FEW = 10
"""Datasets that are too few to matter."""
TRAINS = frozenset({"keras.Model.fit", "keras.Model.fit_generator", "keras.Model.train_on_batch"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a predict or evaluate whose Dataset is made in the same loop."""
    data = call.argument(0, "x")
    if data is None or call.receiver is None or ctx.tag(data) is not Tag.DATASET or in_test(ctx):
        return
    for loop in ctx.loops.around(call.node):
        if (loop.iterations is not None and loop.iterations <= FEW) or rarely(ctx, call.node, loop):
            continue
        if not _made_in(ctx, data, loop) or _made_in(ctx, call.receiver, loop):
            continue
        if called_in(ctx, call.node, loop) & TRAINS:
            continue
        around = f" through {ctx.text(loop.via[-1][1].func)}" if loop.via else ""
        yield ctx.hit(
            call.node,
            f"this loop makes a new Dataset for each {ctx.text(call.receiver)}.{call.word}{around}",
            confidence=0.8 if loop.via else 0.9,
            also=[ctx.places.loop_span(loop)],
        )
        return


def _made_in(ctx: Context, expr: ast.expr, loop: Loop) -> bool:
    """Whether an object is made in the loop's body, or in the function called there."""
    if isinstance(expr, ast.Call):
        return True
    if not isinstance(expr, ast.Name):
        return False
    bindings = [b for b in ctx.definitions(expr) if b.kind in ("assign", "unpack")]
    if loop.via:
        function = ctx.enclosing(expr)
        return any(function is not None and b.scope.node is function.node for b in bindings)
    return any(ctx.loops.inside(b.node, loop) for b in bindings)


RULE = Rule(
    code="KER002",
    name="dataset-rebuilt-for-predict",
    severity="error",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="prediction",
    exposed_stage="prediction",
    pipeline_stage="preprocessing",
    speedup=4.2,
    remedy="make one Dataset of everything and predict it once",
    calls=frozenset({"keras.Model.predict", "keras.Model.evaluate"}),
    on_call=check,
    related=("HST003",),
)
