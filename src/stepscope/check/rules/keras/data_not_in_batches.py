"""All data are one tensor, one batch or single elements, but fit expects an array or batches.

## What it does
Reports `fit` with a `tf.Variable` or a `tf.constant` of a whole array as input; with `batch_size=len(x)`; with a
Dataset from `from_tensors`, which holds everything in one element; and with a Dataset that is never batched.

## Why it is slow
A tensor occupies device memory as a whole, in addition to what training needs and to the array it was made from. One
batch of everything makes an epoch a single step, with activations for all rows at once. Unbatched elements make each
row a step. Measured with 60,000 rows of 64 numbers into `Dense(1024)`: 1.1 GB of memory as one batch against 0.6 GB
with batches of 64; and 640 rows one by one took 6.1 times the time of batches of 32.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf

x, y = np.zeros((20000, 64), "float32"), np.zeros((20000, 1), "float32")
model = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(1024), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(tf.data.Dataset.from_tensors((x, y)), epochs=3)
```

Fixed:

```python
import numpy as np
import tensorflow as tf

x, y = np.zeros((20000, 64), "float32"), np.zeros((20000, 1), "float32")
model = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(1024), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(32), epochs=3)
```

## When it is silent
For small data written out in the source; when something between the source and `fit` may make batches (`apply`, an
unknown function, `from_generator`); when the elements come from files or a generator; in tests.

One tensor or Variable, and `batch_size=len(x)`, are info: their cost depends on the device's memory. So is
`from_tensors` of values not known to be arrays: a graph that is learnt as a whole has no rows to split.

## Fix and its safety
Pass arrays to `fit`, which batches them itself, or call `.batch(32)` before `fit`. The number of steps changes, and the
training with it; rows that already carry a batch axis of one must lose it. Not done automatically.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.datasets import Chain
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule

BATCHING = frozenset(
    "batch padded_batch apply ragged_batch bucket_by_sequence_length group_by_window window interleave flat_map "
    "dense_to_ragged_batch sparse_batch rebatch".split()
)
"""Stages that make batches, or may."""

TENSORS = frozenset({"tensorflow.constant", "tensorflow.convert_to_tensor", "keras.ops.convert_to_tensor"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a fit that is given everything at once, or row by row."""
    data = call.argument(0, "x")
    if data is None or in_test(ctx):
        return
    size = call.argument(2 if call.word == "fit" else 1, "batch_size")
    if call.word != "fit" and (size is None or not _length_of(size, data)):
        return
    if size is not None and _length_of(size, data):
        message = f"batch_size={ctx.text(size)}: all of {ctx.text(data)} is one batch"
        yield ctx.hit(size, message, severity="info", confidence=0.8)
    elif isinstance(made := _made(ctx, data), ast.Call) and ctx.name(made.func) in TENSORS:
        message = f"{ctx.text(data)} is one tensor: all data are on the device at once; pass the array"
        yield ctx.hit(data, message, severity="info", confidence=0.7)
    elif ctx.tag(data) is Tag.VARIABLE:
        yield ctx.hit(
            data,
            f"{ctx.text(data)} is a Variable: all data are on the device; pass the array",
            severity="info",
            confidence=0.8,
        )
    elif ctx.tag(data) is Tag.DATASET:
        chains = [c for c in ctx.chains(data) if c.complete]
        if chains and all(_one_batch(c) for c in chains):
            rows = all(_arrays(ctx, c) for c in chains)
            yield ctx.hit(
                data,
                f"{ctx.text(data)} comes from from_tensors: all data are one batch",
                severity=None if rows else "info",
                confidence=0.85 if rows else 0.6,
            )
        elif chains and all(_unbatched(ctx, c) for c in chains):
            yield ctx.hit(
                data,
                f"{ctx.text(data)} is not batched: each row is a separate step",
                confidence=0.8,
            )


def _made(ctx: Context, data: ast.expr) -> ast.expr:
    """The expression a name stands for, if there is only one."""
    if isinstance(data, ast.Name):
        values = [b.value for b in ctx.definitions(data) if b.kind == "assign"]
        if len(values) == 1 and values[0] is not None:
            return values[0]
    return data


def _length_of(size: ast.expr, data: ast.expr) -> bool:
    """Whether the size is ``len(x)`` or ``x.shape[0]`` of the data themselves."""
    counted: ast.expr | None = None
    if isinstance(size, ast.Call) and isinstance(size.func, ast.Name) and size.func.id == "len" and len(size.args) == 1:
        counted = size.args[0]
    elif isinstance(size, ast.Subscript) and isinstance(size.value, ast.Attribute) and size.value.attr == "shape":
        first = isinstance(size.slice, ast.Constant) and size.slice.value == 0
        counted = size.value.value if first else None
    return counted is not None and ast.dump(counted) == ast.dump(data)


def _one_batch(chain: Chain) -> bool:
    return chain.source.name == "from_tensors" and not {"unbatch", "map", "batch", *BATCHING} & set(chain.names)


def _unbatched(ctx: Context, chain: Chain) -> bool:
    """Whether a chain yields single slices of arrays: no stage makes batches."""
    if chain.source.name != "from_tensor_slices" or BATCHING & set(chain.names):
        return False
    return "map" not in chain.names and _arrays(ctx, chain)


def _arrays(ctx: Context, chain: Chain) -> bool:
    """Whether the source is made of arrays, whose first axis counts rows."""
    source = chain.source.argument(0, "tensors")
    if source is None:
        return False
    parts = source.elts if isinstance(source, (ast.Tuple, ast.List)) else [source]
    at = ctx.at(chain.source.module)
    return all(at.tag(p) is Tag.NUMPY for p in parts)


RULE = Rule(
    code="KER012",
    name="data-not-in-batches",
    severity="warning",
    symptom="Memory: out of memory",
    cause="API: not using batch API",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="host-to-device",
    speedup=1.8,
    remedy="pass arrays to fit, or batch the Dataset",
    calls=frozenset({"keras.Model.fit", "keras.Model.predict", "keras.Model.evaluate"}),
    on_call=check,
    related=("GPU001", "MEM004"),
)
