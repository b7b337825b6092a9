"""shuffle mixes whole batches instead of their elements.

## What it does
Reports `shuffle` after `batch`.

## Why it is slow
It is not slower: the buffer holds whole batches, so that `shuffle(1000)` after `batch(32)` keeps 32,000 elements in
memory, and the same elements stay together in every epoch, which costs quality. This is arithmetic, not a measurement:
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
When elements were also shuffled before the batch; when an `unbatch` or `flat_map` stands between them; after `window`,
whose elements belong together.

## Fix and its safety
Put `shuffle` before `batch`. Training sees a different, better mixed order.

## Versions
All.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.datasets import Stage
from stepscope.check.rule import Rule

BATCHES = frozenset({"batch", "padded_batch"})
AGAIN = frozenset({"unbatch", "flat_map", "interleave", "window", "shuffle", "apply", "rebatch", "list_files"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a shuffle with a batch and no earlier shuffle on every path to it."""
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
        f"shuffle mixes whole batches: elements that {found.name} groups stay together in every epoch",
        confidence=0.8,
        also=[ctx.at(found.module).places.place(found.call)],
        fix=ctx.fix(
            "move-call-in-chain",
            "Move shuffle() before the batch",
            call.node,
            call.receiver,
            safety="unsafe",
            behaviour="Single elements are mixed: training sees a different order.",
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
