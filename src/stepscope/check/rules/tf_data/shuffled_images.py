"""A shuffle buffer holds decoded images.

## What it does
Reports `shuffle` after a `map` that decodes images and resizes them to a size written in the source, if the buffer
would hold a quarter of a gigabyte or more.

## Why it is slow
The buffer holds whole elements and is filled before the first batch: memory for thousands of float images, and a start
that waits until they are decoded. File names or compressed bytes shuffle as well and take a thousandth of that.
Measured with a buffer of 600 images of 224 x 224: 413 MB more than before the first batch, against 84 MB, 5 times.

## Example
Slow:

```python
import tensorflow as tf

def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [224, 224])

images = tf.data.Dataset.list_files("images/*.jpg").map(load, num_parallel_calls=tf.data.AUTOTUNE)
batches = images.shuffle(5000).batch(32)
```

Fixed:

```python
import tensorflow as tf

def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [224, 224])

paths = tf.data.Dataset.list_files("images/*.jpg").shuffle(5000)
batches = paths.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(32)
```

## When it is silent
When the size of the images or of the buffer is not written in the source, or the buffer takes less than 256 MB; after a
`cache`, because the decoded images are then in memory anyway and only references are shuffled.

## Fix and its safety
Shuffle before the map. The order is as random as before, but a given seed produces a different one.

## Versions
All.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from stepscope.check.context import Call, Context
from stepscope.check.costs import DECODES, RESIZES
from stepscope.check.hits import Hit
from stepscope.check.inference.datasets import Chain
from stepscope.check.inference.names import Function
from stepscope.check.rule import Rule

MUCH = 256 << 20
"""Bytes of a buffer from which it is reported: a good part of a small machine's memory. Source: our judgement."""
BYTES = 12
"""Bytes of a pixel: three channels of float32, the output of resize."""
NEUTRAL = frozenset({"map", "prefetch", "repeat", "take", "skip", "shard", "with_options"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a shuffle of decoded images."""
    size = ctx.loops.integer(call.argument(0, "buffer_size"))
    if size is None or call.receiver is None:
        return
    pixels = [_pixels(ctx, chain) for chain in ctx.chains(call.receiver)]
    least = min(pixels, default=0)
    if least * BYTES * size < MUCH:
        return
    yield ctx.hit(
        call.node,
        f"the shuffle buffer holds {size} decoded images, about {least * BYTES * size / 2**30:.1f} GiB",
        confidence=0.85,
    )


def _pixels(ctx: Context, chain: Chain) -> int:
    """Pixels of an element of a chain that ends in images decoded in a map; 0 if unknown."""
    pixels, decoded = 0, False
    for stage in reversed(chain.stages[1:]):
        if stage.name not in NEUTRAL:
            break
        function = ctx.functions.of_stage(stage) if stage.name == "map" else None
        if stage.name == "map" and function is None:
            return 0
        if function is not None:
            pixels = pixels or _resized(ctx, function)
            decoded = decoded or bool(ctx.functions.called(function) & DECODES)
    return pixels if decoded else 0


def _resized(ctx: Context, function: Function) -> int:
    """Height times width of the last resize in a function."""
    found = 0
    for at, call in ctx.at(function.module).functions.calls_below(function.body):
        if call.name in RESIZES:
            given = call.argument(1, "size")
            sizes = [at.loops.integer(e) for e in given.elts] if isinstance(given, (ast.List, ast.Tuple)) else []
            found = math.prod(s for s in sizes if s is not None) if sizes and None not in sizes else 0
    return found


RULE = Rule(
    code="TFD012",
    name="shuffled-images",
    severity="warning",
    symptom="Memory: out of memory",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    speedup=4.9,
    remedy="shuffle file names or serialized records, before they are decoded",
    calls=frozenset({"tensorflow.data.Dataset.shuffle"}),
    on_call=check,
    related=("MEM004",),
)
