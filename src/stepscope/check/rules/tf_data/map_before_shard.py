"""Each worker does the work of all workers and discards the other shards.

## What it does
Reports `shard` after a `map` that reads, decodes, parses or transforms.

## Why it is slow
`shard(n, i)` keeps every n-th element that reaches it. The stages before it run on all elements in each of the n
workers. Measured with four shards of decoded images: 3.6 times the time of a worker that shards first.

## Example
Slow:

```python
import tensorflow as tf

def load(path):
    return tf.io.decode_jpeg(tf.io.read_file(path))

def worker(index, workers):
    images = tf.data.Dataset.list_files("images/*.jpg", shuffle=False).map(load, num_parallel_calls=tf.data.AUTOTUNE)
    return images.shard(workers, index).batch(32)
```

Fixed:

```python
import tensorflow as tf

def load(path):
    return tf.io.decode_jpeg(tf.io.read_file(path))

def worker(index, workers):
    paths = tf.data.Dataset.list_files("images/*.jpg", shuffle=False).shard(workers, index)
    return paths.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(32)
```

## When it is silent
When the map's function is cheap or unknown; when a `cache`, `filter`, `batch` or `shuffle` stands between them, because
moving `shard` would then select other elements; for `shard(1, 0)`.

## Fix and its safety
Put `shard` before the map, best directly after the list of files. Each worker gets the same elements as before; random
ops of the map draw other numbers. There is no fix if the map counts or reads state that changes.

## Versions
All.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.check.context import Call, Context
from stepscope.check.costs import heavy
from stepscope.check.hits import Hit
from stepscope.check.inference.datasets import Chain, Stage
from stepscope.check.inference.names import Function
from stepscope.check.rule import Rule

NEUTRAL = frozenset({"prefetch", "with_options", "map"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a shard with a costly map on every path to it."""
    if call.receiver is None or ctx.loops.integer(call.argument(0, "num_shards")) == 1:
        return
    found = [_costly(ctx, chain) for chain in ctx.chains(call.receiver)]
    stage = found[0] if found else None
    if stage is None or stage.call is None or any(f is None for f in found):
        return
    function = ctx.functions.of_stage(stage)
    name = "its lambda" if function is None or function.name == "<lambda>" else function.name
    yield ctx.hit(
        call.node,
        f"each worker runs {name} on all elements before shard keeps its own",
        confidence=0.9,
        also=[ctx.at(stage.module).places.place(stage.call)],
        fix=ctx.fix(
            "move-call-in-chain",
            "Move shard() before the map",
            call.node,
            call.receiver,
            safety="unsafe",
            behaviour="Each worker gets the same elements; random ops of the map draw other numbers.",
        )
        if call.receiver is stage.call and function is not None and _drawn_at_most(ctx, function)
        else None,
    )


def _drawn_at_most(ctx: Context, function: Function) -> bool:
    """Whether random numbers are the only thing that makes an element depend on those before it."""
    return all(effect.kind == "random" for effect in ctx.functions.effects(function))


def _costly(ctx: Context, chain: Chain) -> Stage | None:
    """The first costly map that is followed by maps only."""
    found = None
    for stage in reversed(chain.stages[1:]):
        if stage.name not in NEUTRAL:
            break
        function = ctx.functions.of_stage(stage) if stage.name == "map" else None
        if function is not None and any(heavy(name) for name in ctx.functions.called(function)):
            found = stage
    return found


RULE = Rule(
    code="TFD017",
    name="map-before-shard",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    speedup=3.6,
    remedy="call shard before map, best on the list of files",
    calls=frozenset({"tensorflow.data.Dataset.shard"}),
    on_call=check,
    related=("INP001",),
)
