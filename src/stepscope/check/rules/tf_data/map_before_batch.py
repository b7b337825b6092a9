"""A cheap elementwise function is mapped over single elements that are batched immediately afterwards.

## What it does
Reports `map` of a function that gives the same result on a batch (casts, scaling, comparisons, `one_hot`), followed by
`batch`, on a source that is itself cheap: arrays in memory, `range`.

## Why it is slow
Each call of a mapped function costs some ten microseconds around the op, whatever the op does; on a batch this is paid
once. Measured with a cast and a scaling of rows of 16 numbers and batches of 256: 7.4 times the CPU time; parallel
calls spread that over the cores but do not reduce it.

## Example
Slow:

```python
import tensorflow as tf

def scale(x, y):
    return tf.cast(x, tf.float32) / 255.0, y

rows = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 16], tf.uint8), tf.zeros([4096])))
batches = rows.shuffle(4096).map(scale).batch(256)
```

Fixed:

```python
import tensorflow as tf

def scale(x, y):
    return tf.cast(x, tf.float32) / 255.0, y

rows = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 16], tf.uint8), tf.zeros([4096])))
batches = rows.shuffle(4096).batch(256).map(scale, num_parallel_calls=tf.data.AUTOTUNE)
```

## When it is silent
For every function not known to be elementwise: random ops (a batch would get one draw for all), decoding, parsing,
reshaping, reductions, indexing, conditions, operands of different rank, unknown functions; when a `cache` follows the
map (the map then runs in the first epoch only); when an earlier stage reads, decodes or parses, which costs so much
more that nothing is gained; for `padded_batch` and small sources.

## Fix and its safety
Swap the two calls. The results are the same; a function that asks for the rank or the first dimension of its argument
would see the batch, and is never reported.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.context import Call, Context
from stepscope.check.costs import heavy
from stepscope.check.hits import Hit
from stepscope.check.inference.datasets import Chain, Stage
from stepscope.check.rule import Rule

FEW = 256
"""Elements of a source that is too small to matter."""
CHEAP = frozenset({"from_tensor_slices", "range", "random"})
NEUTRAL = frozenset({"shuffle", "repeat", "prefetch", "take", "skip", "shard", "with_options"})
"""Stages that do not look at elements, so that a map may move past them."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a batch with an elementwise map directly before it in all its chains."""
    maps: dict[ast.Call, Stage] = {}
    chains = ctx.chains(call.node)
    for chain in chains:
        found = _moved(ctx, chain, chain.index(call.node))
        if found is None or found.call is None:
            return
        maps[found.call] = found
    if ctx.loops.integer(call.argument(0, "batch_size")) == 1:
        return
    for node, stage in maps.items():
        at = ctx.at(stage.module)
        function = ctx.functions.of_stage(stage)
        name = "its lambda" if function is None or function.name == "<lambda>" else function.name
        local = stage.module is ctx.module
        yield ctx.hit(
            node if local else call.node,
            f"map runs {name} on each element; on whole batches the results would be the same",
            confidence=0.85,
            also=[ctx.places.place(call.node) if local else at.places.span(node)],
            fix=ctx.fix(
                "move-call-in-chain",
                "Call batch before map",
                call.node,
                node,
                safety="safe",
                behaviour="The function receives batches; its results are the same.",
            )
            if local and _adjacent(call.node, node)
            else None,
        )


def _moved(ctx: Context, chain: Chain, index: int) -> Stage | None:
    """The first elementwise map that may move after the batch at an index; None if there is none."""
    if index < 0 or chain.source.name not in CHEAP or _small(ctx, chain.source):
        return None
    found: Stage | None = None
    moving = True
    for stage in reversed(chain.stages[1:index]):
        function = ctx.functions.of_stage(stage) if stage.name == "map" else None
        if function is not None and moving and ctx.functions.vectorisable(function):
            found = stage
        elif function is not None and not any(heavy(name) or not name for name in ctx.functions.called(function)):
            moving = False
        elif stage.name not in NEUTRAL:
            return None
    return found


def _adjacent(batch: ast.Call, first: ast.Call) -> bool:
    """Whether only maps stand between a map and the batch, in one chain of calls."""
    below: ast.expr = batch
    while isinstance(below, ast.Call) and isinstance(below.func, ast.Attribute):
        below = below.func.value
        if below is first:
            return True
        if not (isinstance(below, ast.Call) and isinstance(below.func, ast.Attribute) and below.func.attr == "map"):
            return False
    return False


def _small(ctx: Context, source: Stage) -> bool:
    if source.call is None or not source.call.args:
        return True
    at = ctx.at(source.module)
    first = source.call.args[-1]
    size = (
        at.loops.integer(first)
        if source.name == "range"
        else at.loops.length(first)
        if isinstance(first, ast.List)
        else None
    )
    return size is not None and size <= FEW


RULE = Rule(
    code="TFD002",
    name="map-before-batch",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: not using batch API",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    speedup=7.4,
    remedy="call batch before map, so that the function runs once per batch",
    calls=frozenset({"tensorflow.data.Dataset.batch"}),
    on_call=check,
    related=("INP001",),
)
