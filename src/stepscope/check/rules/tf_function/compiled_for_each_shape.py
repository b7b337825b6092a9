"""Each call passes tensors of a new shape to a tf.function that XLA compiles.

## What it does
Reports calls of a `tf.function` made with `jit_compile=True` with a tensor whose shape changes from call to call.

## Why it is slow
XLA compiles for fixed shapes: each new shape is compiled again, which takes ten to a hundred times as long as a trace,
and neither `reduce_retracing` nor an `input_signature` with None helps. Measured with 24 lengths on the CPU: 12 times
the CPU time of the same calls padded to one length.

## Example
Slow:

```python
import tensorflow as tf

texts = tf.data.Dataset.range(1, 400).map(lambda n: tf.ones([n]))
batches = texts.padded_batch(8)

@tf.function(jit_compile=True)
def total(x):
    return tf.reduce_sum(x)

for x in batches:
    total(x)
```

Fixed:

```python
import tensorflow as tf

texts = tf.data.Dataset.range(1, 400).map(lambda n: tf.ones([n]))
batches = texts.padded_batch(8, padded_shapes=[512])

@tf.function(jit_compile=True)
def total(x):
    return tf.reduce_sum(x)

for x in batches:
    total(x)
```

## When it is silent
For fixed `padded_shapes`, the smaller last batch of an epoch, calls from traced code, loops of at most ten iterations,
tests, and whenever nothing indicates that the shape changes.

## Fix and its safety
Pad to one or a few fixed lengths, or leave `jit_compile` off. Padding changes the result unless it is masked.

## Versions
TensorFlow 2 with XLA (`experimental_compile` before 2.5).
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.check.analyses.changing_shapes import changing_calls
from stepscope.check.analyses.idioms import function_options, in_test, is_true
from stepscope.check.context import Context
from stepscope.check.hits import Hit
from stepscope.check.rule import Rule

COMPILED = ("jit_compile", "experimental_compile")


def check(ctx: Context) -> Iterator[Hit]:
    """Report every call of a compiled function with a changing shape."""
    if in_test(ctx):
        return
    for call, argument, reason in ctx.once(changing_calls):
        options = function_options(ctx, call.func)
        if options is None or not any(is_true(options.get(o)) for o in COMPILED):
            continue
        yield ctx.hit(
            argument,
            f"XLA compiles {ctx.text(call.func)} again for each {reason}",
            confidence=0.8,
        )


RULE = Rule(
    code="TFF013",
    name="compiled-for-each-shape",
    severity="warning",
    symptom="Time: slow execution time",
    cause="Model: confusion with computation model",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=12.0,
    remedy="pad to a few fixed shapes, or leave jit_compile off",
    on_file=check,
    since_version=(2, 0),
    related=("GRF001",),
)
