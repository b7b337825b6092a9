"""Keras loads batches in forked processes.

## What it does
Reports `use_multiprocessing=True` given to `fit`, `fit_generator`, `predict`, `evaluate`, or to a `Sequence`.

## Why it is slow
Worker processes are forked from one that contains TensorFlow's threads and locks, so they may hang forever. Every batch
is pickled and copied through a pipe. Threads (`workers` alone) and tf.data have neither problem. The cost depends on
the batch and was not measured as a fixed ratio, so this is info.

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
When the argument is False, or a value not written in the source.

## Fix and its safety
Remove the argument, so that threads load the batches, or move loading into tf.data. Python code that computes holds the
interpreter lock in threads: measure if `__getitem__` computes much.

## Versions
`fit(use_multiprocessing=...)` until Keras 2; in Keras 3 it is an argument of `PyDataset`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.rule import Rule

CALLS = frozenset(
    f"keras.Model.{name}" for name in ("fit", "fit_generator", "predict", "predict_generator", "evaluate",
                                       "evaluate_generator")
)  # fmt: skip


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report the argument if it is a literal True."""
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
                behaviour="Threads of a single process load the batches.",
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
