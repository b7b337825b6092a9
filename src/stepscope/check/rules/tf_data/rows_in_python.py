"""A Python loop goes through a dataset row by row.

## What it does
Reports loops over a dataset that was never batched, or was unbatched, if they train or predict (`apply_gradients`,
`train_on_batch`, `fit`, `predict`). As info: loops and comprehensions that only collect or count its rows, and
`tf_record_iterator`.

## Why it is slow
Each row passes from tf.data to Python as a separate tensor, some fifty microseconds each, and each step works on one
row, for which every op costs as much as for a batch of 32. Measured with rows of 16 numbers: training steps of one row
took 12 times the time of steps of 32; collecting them row by row took 13 times that of batches of 256.

## Example
Slow:

```python
import keras
import tensorflow as tf

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
rows = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 16]), tf.zeros([4096, 1])))
for x, y in rows.as_numpy_iterator():
    model.train_on_batch(x[None], y[None])
```

Fixed:

```python
import keras
import tensorflow as tf

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
rows = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 16]), tf.zeros([4096, 1])))
for x, y in rows.batch(32):
    model.train_on_batch(x, y)
```

## When it is silent
When the dataset may have been batched, or its source is unknown; for a few elements (`take(5)`, short ranges); for
generators, whose elements may be batches.

## Fix and its safety
Call `batch` before the loop; to collect, use `np.concatenate` of batches; to count, `ds.reduce` or `ds.cardinality()`.
Training in batches is a different training: the learning rate may have to change.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.context import Context
from stepscope.check.hits import CheckSeverity, Hit
from stepscope.check.inference.datasets import Chain
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule

FEW = 100
"""Rows that are too few to matter."""
ROWS = frozenset({"from_tensor_slices", "range", "TFRecordDataset", "TextLineDataset", "list_files", "CsvDataset"})
SAME = frozenset(
    "map shuffle repeat prefetch cache shard skip filter enumerate with_options interleave concatenate take".split()
)
RECORDS = frozenset({"tensorflow.python_io.tf_record_iterator", "tensorflow.io.tf_record_iterator"})
STEPS = frozenset(
    "keras.Model.train_on_batch keras.Model.fit keras.Optimizer.apply_gradients keras.Optimizer.minimize "
    "keras.Model.predict keras.Model.predict_on_batch".split()
)


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report a loop or comprehension over an unbatched dataset."""
    iterated = node.iter if isinstance(node, ast.For) else None
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
        iterated = node.generators[0].iter
    if iterated is None:
        return
    if isinstance(iterated, ast.Call) and ctx.name(iterated.func) in RECORDS and not ctx.traced(node):
        yield ctx.hit(
            iterated,
            f"{ctx.text(iterated)} passes each record to Python; TFRecordDataset reads and counts without Python",
            confidence=0.6,
            severity="info",
        )
        return
    data = _dataset(ctx, iterated)
    if data is None or ctx.traced(node) or not _rows(ctx, data):
        return
    severity: CheckSeverity = "info"
    what = "goes through it row by row in Python"
    if isinstance(node, ast.For):
        names = {call.name for _, call in ctx.functions.calls_below(node.body)}
        if names & STEPS:
            severity, what = "warning", "runs a step for each row"
        elif not _collects(node):
            return
    yield ctx.hit(
        iterated,
        f"{ctx.text(data)} is not batched, and this loop {what}",
        confidence=0.8 if severity == "warning" else 0.6,
        severity=severity,
    )


def _dataset(ctx: Context, expr: ast.expr) -> ast.expr | None:
    """The dataset inside ``enumerate``, ``list`` or ``as_numpy_iterator``."""
    for _ in range(3):
        if ctx.tag(expr) is Tag.DATASET:
            return expr
        if not isinstance(expr, ast.Call):
            return None
        if isinstance(expr.func, ast.Name) and expr.func.id in ("enumerate", "list", "iter", "tqdm") and expr.args:
            expr = expr.args[0]
        elif isinstance(expr.func, ast.Attribute) and expr.func.attr == "as_numpy_iterator":
            expr = expr.func.value
        else:
            return None
    return None


def _rows(ctx: Context, data: ast.expr) -> bool:
    """Whether every path that makes the dataset gives single rows, and more than a few."""
    chains = ctx.chains(data)
    return bool(chains) and all(_single(ctx, chain) for chain in chains)


def _single(ctx: Context, chain: Chain) -> bool:
    stages = chain.stages
    last = next((i for i in range(len(stages) - 1, 0, -1) if stages[i].name == "unbatch"), 0)
    if (last == 0 and stages[0].name not in ROWS) or any(s.name not in SAME for s in stages[last + 1 :]):
        return False
    if any(s.name == "take" and (ctx.at(s.module).loops.integer(s.argument(0, "count")) or 0) <= FEW for s in stages):
        return False
    source = stages[0]
    first = source.call.args[-1] if source.call is not None and source.call.args else None
    at = ctx.at(source.module)
    size = at.loops.integer(first) if source.name == "range" and first is not None else None
    if source.name == "from_tensor_slices" and isinstance(first, (ast.List, ast.Tuple)):
        size = len(first.elts) if all(isinstance(e, ast.Constant) for e in first.elts) else None
    return (size is None or size > FEW) and source.name != "list_files"


def _collects(loop: ast.For) -> bool:
    """Whether the body only appends to lists or counts."""
    return all(
        (isinstance(s, ast.AugAssign) and isinstance(s.value, ast.Constant))
        or (
            isinstance(s, ast.Expr)
            and isinstance(s.value, ast.Call)
            and isinstance(s.value.func, ast.Attribute)
            and s.value.func.attr in ("append", "extend")
        )
        for s in loop.body
    )


RULE = Rule(
    code="TFD019",
    name="rows-in-python",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: not using batch API",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="raw-input",
    speedup=12.0,
    remedy="batch the dataset and work on batches; count with ds.reduce or ds.cardinality()",
    nodes=(ast.For, ast.ListComp, ast.GeneratorExp),
    on_node=check,
    related=("INP004",),
)
