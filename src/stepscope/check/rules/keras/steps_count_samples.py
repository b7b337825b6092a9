"""steps_per_epoch counts samples instead of batches.

## What it does
Reports `fit(..., steps_per_epoch=len(x))` and `steps_per_epoch=x.shape[0]`, also `validation_steps` and `steps`, if x
holds samples and the input comes in batches of more than one.

## Why it is slow
A step is a batch: with batches of 32 each epoch then goes over the data 32 times. Nothing fails; an epoch just takes 32
times as long as intended. Measured with batches of 32 and the same number of epochs: 17 times the time. In the report
of a run the cost is the time of the call's steps, but for one pass over the data in each epoch.

## Example
Slow:

```python
import numpy as np
import keras
import tensorflow as tf

x, y = np.zeros((640, 28, 28, 1), "float32"), np.zeros(640)
images = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(640).batch(32).repeat()
model = keras.Sequential([keras.layers.Input((28, 28, 1)), keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(images, steps_per_epoch=len(x), epochs=3)
```

Fixed:

```python
import numpy as np
import keras
import tensorflow as tf

x, y = np.zeros((640, 28, 28, 1), "float32"), np.zeros(640)
images = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(640).batch(32).repeat()
model = keras.Sequential([keras.layers.Input((28, 28, 1)), keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(images, steps_per_epoch=len(x) // 32, epochs=3)
```

The input may also be a Python generator that never ends, `while True:` around `yield x[i : i + 32], y[i : i + 32]`,
passed to `fit` or to `Dataset.from_generator`.

## When it is silent
For `len(generator)` and anything else that may count batches; when x is not known to hold samples (an array, or the
source of the input); when the input ends after its last batch (a Dataset without `repeat()`, a generator that returns,
a `PyDataset`, a `flow` of Keras 3) whatever the steps say; when the batch size is 1 or not in the source.

## Fix and its safety
Divide by the batch size, or omit the argument and `repeat()`. Epochs get shorter, so results per epoch change.
`--unsafe-fixes` divides.

## Versions
All. Before TensorFlow 2.0 also `fit(array, steps_per_epoch=n)`, which used the whole array in each step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.generated_batches import endless, generators, rows
from stepscope.check.context import Call, Context
from stepscope.check.hits import Excess, Hit
from stepscope.check.inference.datasets import Chain
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

ARGUMENTS = ("steps_per_epoch", "validation_steps", "steps")
FLOWS = frozenset({"flow", "flow_from_directory", "flow_from_dataframe"})
MAX_DEPTH = 3
ENDLESS_FLOWS = 2
"""Last major version of Keras whose ``flow`` continues after the last batch; later versions end the epoch there."""
DEFAULT_BATCH = 32
"""Default batch size of Keras' own generators."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a fit whose number of steps is a number of samples."""
    data = call.argument(0, "generator") or call.argument(0, "x")
    if data is None:
        return
    steps = call.argument(-1, "steps_per_epoch")
    if steps is not None and ctx.target.tensorflow < (2, 0) and call.word == "fit" and ctx.tag(data) is Tag.NUMPY:
        yield ctx.hit(
            steps,
            f"with steps_per_epoch, fit uses all of {ctx.text(data)} in each step; pass batch_size instead",
            confidence=0.8,
        )
        return
    for keyword in call.node.keywords:
        counted = _counted(ctx, keyword.value) if keyword.arg in ARGUMENTS else None
        if counted is None:
            continue
        source = call.argument(-1, "validation_data") if keyword.arg == "validation_steps" else data
        size = _batch(ctx, source, counted) if source is not None else None
        if size is None or size <= 1:
            continue
        yield ctx.hit(
            keyword.value,
            f"{keyword.arg} is {ctx.text(keyword.value)}, a number of samples, but a step is a batch of {size}",
            confidence=0.9,
            excess=Excess(call=ctx.places.span(call.node), factor=size) if keyword.arg != "validation_steps" else None,
            fix=ctx.fix(
                "replace-expression",
                f"Divide by the batch size, {size}",
                keyword.value,
                safety="unsafe",
                behaviour="An epoch goes over the data once instead of once for each row of a batch.",
                value=f"$1 // {size}",
            ),
        )


def _counted(ctx: Context, expr: ast.expr, depth: int = 0) -> ast.expr | None:
    """The counted object: x in ``len(x)``, ``x.shape[0]`` or ``int(len(x))``, also through a name."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(expr, ast.Name):
        values = [b.value for b in ctx.definitions(expr)]
        return _counted(ctx, values[0], depth + 1) if len(values) == 1 and values[0] is not None else None
    if isinstance(expr, ast.Subscript) and isinstance(expr.value, ast.Attribute) and expr.value.attr == "shape":
        return expr.value.value if ctx.loops.integer(expr.slice) == 0 else None
    if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Name) and len(expr.args) == 1:
        if expr.func.id == "len":
            return expr.args[0]
        return _counted(ctx, expr.args[0], depth + 1) if expr.func.id == "int" else None
    return None


def _batch(ctx: Context, data: ast.expr, counted: ast.expr) -> int | None:
    """Batch size of an input made from the counted object; None if it is unknown or the input is made of something
    else.
    """
    if isinstance(data, ast.Name):
        values = [b.value for b in ctx.definitions(data)]
        if len(values) == 1 and isinstance(values[0], ast.Call):
            return _batch(ctx, values[0], counted)
    if isinstance(data, ast.Call) and isinstance(data.func, ast.Attribute) and data.func.attr in FLOWS:
        if ctx.target.keras > ENDLESS_FLOWS or data.func.attr != "flow" or not _mentions(data, counted):
            return None
        size = next((k.value for k in data.keywords if k.arg == "batch_size"), data.args[2] if data.args[2:] else None)
        return DEFAULT_BATCH if size is None else ctx.loops.integer(size)
    if ctx.tag(data) is not Tag.DATASET:
        return _generated(ctx, data, counted)
    return next((n for chain in ctx.chains(data) if (n := _of_chain(ctx, chain, counted)) is not None), None)


def _of_chain(ctx: Context, chain: Chain, counted: ast.expr) -> int | None:
    """Batch size of a Dataset that never ends and is made from the counted object."""
    source = chain.source.call
    batches = [s for s in chain.stages if s.name in ("batch", "padded_batch")]
    again = any(s.name == "repeat" and s.argument(0, "count") is None for s in chain.stages)
    if source is None or len(batches) > 1:
        return None
    if chain.source.name != "from_generator":
        made = again and bool(batches) and _mentions(source, counted)
        return ctx.loops.integer(batches[0].argument(0, "batch_size")) if made else None
    given = chain.source.argument(0, "generator")
    if given is None or not batches:
        return _generated(ctx, given, counted, again=again) if given is not None else None
    found = [(c, f) for c, f in generators(ctx, given) if again or endless(f)]
    known = any(_draws_from(ctx, c, f, counted) for c, f in found)
    return ctx.loops.integer(batches[0].argument(0, "batch_size")) if known else None


def _generated(ctx: Context, data: ast.expr, counted: ast.expr, *, again: bool = False) -> int | None:
    """Number of rows of each batch of a generator that never ends and draws from the counted object."""
    for call, function in generators(ctx, data):
        if (again or endless(function)) and _draws_from(ctx, call, function, counted):
            return rows(ctx, call, function)
    return None


def _draws_from(ctx: Context, call: ast.Call | None, function: Function, counted: ast.expr) -> bool:
    """Whether a generator is given the counted object, or reads the same global array."""
    if call is not None and _mentions(call, counted):
        return True
    if not isinstance(counted, ast.Name) or function.module is not ctx.module:
        return False
    same = set(ctx.definitions(counted))
    read = (n for n in walk(function.body) if isinstance(n, ast.Name) and n.id == counted.id)
    return any(not same.isdisjoint(ctx.definitions(n)) for n in read)


def _mentions(call: ast.Call, counted: ast.expr) -> bool:
    text = ast.dump(counted)
    return any(ast.dump(node) == text for a in (*call.args, *call.keywords) for node in ast.walk(a))


RULE = Rule(
    code="KER011",
    name="steps-count-samples",
    severity="warning",
    symptom="Time: slow execution time",
    cause="Model: improper hyper parameter",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="none",
    speedup=4.9,
    remedy="divide the number of samples by the batch size",
    calls=frozenset({"keras.Model.fit", "keras.Model.fit_generator", "keras.Model.evaluate", "keras.Model.predict"}),
    on_call=check,
)
