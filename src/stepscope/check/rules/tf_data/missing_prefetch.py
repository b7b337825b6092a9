"""The next batch is prepared only when the step asks for it.

## What it does
Reports a dataset that `fit` or a loop with a training step iterates over and that does not end in `prefetch`, on
versions that do not add one.

## Why it is slow
Without a buffer at the end, the input and the step take turns. From TensorFlow 2.12 on, a final prefetch is added if
there is none. Measured with that option off, 10 ms of input and 10 ms of work per step: 1.9 times the time.

## Example
Slow:

```python
import keras
import tensorflow as tf

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
records = tf.data.TFRecordDataset("train.tfrecord")
batches = records.map(lambda r: tf.io.parse_tensor(r, tf.float32), num_parallel_calls=4).batch(32)
model.fit(batches)
```

Fixed:

```python
import keras
import tensorflow as tf

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
records = tf.data.TFRecordDataset("train.tfrecord")
batches = records.map(lambda r: tf.io.parse_tensor(r, tf.float32), num_parallel_calls=4).batch(32).prefetch(1)
model.fit(batches)
```

## When it is silent
On TensorFlow 2.12 and later; when any path that makes the dataset ends in `prefetch` or is not known back to its
source; after a `cache`, and for a dataset without a `map`, `interleave` or reader, which costs almost nothing.

## Fix and its safety
Add `prefetch(tf.data.AUTOTUNE)` at the end. The results are the same; one or two more batches are in memory.

## Versions
Before 2.12.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.context import Context
from stepscope.check.hits import Hit
from stepscope.check.inference.datasets import Chain
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule

TRANSPARENT = frozenset({"repeat", "take", "with_options", "skip"})
WORK = frozenset({"map", "interleave", "flat_map", "TFRecordDataset", "from_generator", "TextLineDataset"})
STEPS = frozenset(
    "keras.Model.train_on_batch keras.Optimizer.apply_gradients keras.Optimizer.minimize "
    "tensorflow.GradientTape".split()
)


def check(ctx: Context) -> Iterator[Hit]:
    """Report datasets given to ``fit`` or iterated over by loops with a training step."""
    for call in ctx.calls("fit"):
        data = call.argument(0, "x")
        if call.name == "keras.Model.fit" and data is not None:
            yield from _report(ctx, data)
    for node in ctx.module.flow.nodes.get(ast.For, ()):
        if isinstance(node, ast.For):
            data = _enumerated(node.iter)
            if ctx.tag(data) is Tag.DATASET and _trains(ctx, node):
                yield from _report(ctx, data)


def _enumerated(expr: ast.expr) -> ast.expr:
    named = isinstance(expr, ast.Call) and isinstance(expr.func, ast.Name) and expr.func.id in ("enumerate", "tqdm")
    return expr.args[0] if named and isinstance(expr, ast.Call) and expr.args else expr


def _trains(ctx: Context, loop: ast.For) -> bool:
    return any(call.name in STEPS for _, call in ctx.functions.calls_below(loop.body))


def _report(ctx: Context, data: ast.expr) -> Iterator[Hit]:
    chains = ctx.chains(data)
    if not chains or not all(_bare(chain) for chain in chains):
        return
    last = chains[0].stages[-1]
    yield ctx.hit(
        data,
        f"{ctx.text(data)} does not end in prefetch: input and step take turns",
        confidence=0.8,
        also=[ctx.at(last.module).places.place(last.call)] if last.call is not None else (),
    )


def _bare(chain: Chain) -> bool:
    stages = [name for name in chain.names if name not in TRANSPARENT]
    if "cache" in stages and not WORK & set(stages[stages.index("cache") :]):
        return False
    return chain.complete and "apply" not in stages and stages[-1] != "prefetch" and bool(WORK & set(stages))


RULE = Rule(
    code="TFD003",
    name="missing-prefetch",
    severity="info",
    symptom="Time: slow execution time",
    cause="Data: inefficient data transmission",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="host-to-device",
    speedup=1.9,
    remedy="end the pipeline in prefetch(tf.data.AUTOTUNE)",
    on_file=check,
    before_version=(2, 12),
    related=("INP001",),
)
