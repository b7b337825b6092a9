"""Batches are shuffled, not what is in them.

## What it does
Reports `shuffle` behind `batch`.

## Why it is slow
It is not slower: the buffer holds whole batches, so that `shuffle(1000)` behind `batch(32)` keeps 32,000 elements in
memory, and the same elements stay together in every epoch, which costs quality. That is arithmetic, not a measurement:
with batches of 32 and the same `buffer_size`, 32 times the memory.

## Example
Slow:

```python
import tensorflow as tf

records = tf.data.TFRecordDataset("train.tfrecord")
batches = records.batch(32).shuffle(1000)
```

Fixed:

```python
import tensorflow as tf

records = tf.data.TFRecordDataset("train.tfrecord")
batches = records.shuffle(1000).batch(32)
```

## When it is silent
When elements were shuffled before the batch as well, when an `unbatch` or `flat_map` stands between, and behind
`window`, whose elements belong together.

## Fix and its safety
Put `shuffle` before `batch`. Training sees another, better mixed order.

## Versions
All.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.checker.context import Call, Context
from stepscope.checker.hits import Hit
from stepscope.checker.inference.datasets import Stage
from stepscope.checker.rule import Rule

BATCHES = frozenset({"batch", "padded_batch"})
AGAIN = frozenset({"unbatch", "flat_map", "interleave", "window", "shuffle", "apply", "rebatch", "list_files"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """A shuffle, on every way to which there is a batch and no shuffle."""
    if call.receiver is None:
        return
    found: Stage | None = None
    for chain in ctx.chains(call.receiver):
        names = chain.names
        found = next((s for s in reversed(chain.stages) if s.name in BATCHES), None)
        if found is None or set(names) & AGAIN or not chain.complete:
            return
    if found is None or found.call is None:
        return
    yield ctx.hit(
        call.node,
        f"shuffle mixes whole batches: what {found.name} put together stays together in every epoch",
        confidence=0.8,
        also=[ctx.at(found.module).places.place(found.call)],
        fix=ctx.fix(
            "move-call-in-chain",
            "Move shuffle() before the batch",
            call.node,
            call.receiver,
            safety="unsafe",
            behaviour="Single elements are mixed: training sees another order.",
        )
        if call.receiver is found.call
        else None,
    )


RULE = Rule(
    code="TFD010",
    name="shuffle-after-batch",
    severity="info",
    symptom="unknown",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="raw-input",
    speedup=1.0,
    remedy="call shuffle before batch",
    calls=frozenset({"tensorflow.data.Dataset.shuffle"}),
    on_call=check,
)
