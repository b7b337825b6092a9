"""Keras loads batches in forked processes.

## What it does
Reports `use_multiprocessing=True` given to `fit`, `fit_generator`, `predict`, `evaluate`, or to a `Sequence`.

## Why it is slow
Worker processes are forked from one that has TensorFlow's threads and locks in it: they may hang for good. Every
batch is pickled and copied through a pipe. Threads (`workers` alone) or tf.data have neither. How much it costs
depends on the batch: not measured at a fixed ratio, so this is an info.

## Example
Slow:

```python
import keras

class Batches(keras.utils.Sequence):
    def __len__(self):
        return 100

model = keras.Sequential([keras.layers.Dense(1)])
model.fit(Batches(), workers=4, use_multiprocessing=True)
```

Fixed:

```python
import keras

class Batches(keras.utils.Sequence):
    def __len__(self):
        return 100

model = keras.Sequential([keras.layers.Dense(1)])
model.fit(Batches(), workers=4)
```

## When it is silent
When the argument is False, or a value that is not written down.

## Fix and its safety
Remove the argument, so that threads load; or move loading into tf.data. Python that computes holds the interpreter's
lock in threads: measure when `__getitem__` computes much.

## Versions
`fit(use_multiprocessing=...)` until Keras 2; with Keras 3 the `PyDataset` takes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.checker.context import Call, Context
from stepscope.checker.hits import Hit
from stepscope.checker.rule import Rule

CALLS = frozenset(
    f"keras.Model.{name}" for name in ("fit", "fit_generator", "predict", "predict_generator", "evaluate",
                                       "evaluate_generator")
)  # fmt: skip


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """The argument, written down as True."""
    given = call.argument(-1, "use_multiprocessing")
    if isinstance(given, ast.Constant) and given.value is True:
        yield ctx.hit(
            given,
            f"{call.word} loads batches in forked processes, which may hang with TensorFlow's threads",
            confidence=0.8,
            fix=ctx.fix(
                "remove-keyword",
                "Remove use_multiprocessing",
                call.node,
                safety="unsafe",
                behaviour="Threads of one process load the batches.",
                keyword="use_multiprocessing",
            ),
        )


RULE = Rule(
    code="TFD020",
    name="forked-workers",
    severity="info",
    symptom="Time: program hang",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="raw-input",
    speedup=1.0,
    remedy="load in threads (workers alone) or with tf.data",
    calls=CALLS,
    on_call=check,
    related=("HNG001",),
)
