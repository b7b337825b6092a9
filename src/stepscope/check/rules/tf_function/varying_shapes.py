"""Each call passes tensors of a new shape to a tf.function, which is traced for each shape.

## What it does
Reports calls of a `tf.function` with a tensor whose shape changes from call to call: batches of `padded_batch` or
`bucket_by_sequence_length` that are as long as their longest element, tensors whose size is the loop counter, slices
`x[:n]`, tokenized texts, sizes that a method computes each time.

## Why it is slow
A shape is part of a tf.function's signature: each new one makes a new graph. TensorFlow does not generalise shapes by
default. Measured with 40 lengths: 40 traces, 2 with `reduce_retracing=True`, 1 with an `input_signature`; and 2.7 times
the time of three passes for a small model.

## Example
Slow:

```python
import tensorflow as tf

texts = tf.data.Dataset.range(1, 400).map(lambda n: tf.ones([n]))
batches = texts.padded_batch(8)

@tf.function
def total(x):
    return tf.reduce_sum(x)

for x in batches:
    total(x)
```

Fixed:

```python
import tensorflow as tf

texts = tf.data.Dataset.range(1, 400).map(lambda n: tf.ones([n]))
batches = texts.padded_batch(8)

@tf.function(reduce_retracing=True)
def total(x):
    return tf.reduce_sum(x)

for x in batches:
    total(x)
```

## When it is silent
With an `input_signature`, `reduce_retracing=True` or `experimental_relax_shapes=True`; for the smaller last batch of an
epoch (one more trace); for fixed `padded_shapes`; in calls from traced code; in loops of at most ten iterations, tests,
and whenever nothing indicates that the shape changes.

## Fix and its safety
Pass `reduce_retracing=True` (before TensorFlow 2.9 `experimental_relax_shapes=True`), use an `input_signature` with
None for the dimensions that change, or pad to a few fixed lengths. The graph then holds an unknown dimension: code that
needs the length as a Python number (`x.shape[1]` in `range`) must use `tf.shape(x)[1]`, and gets no automatic fix; nor
does a function that prints or appends while it is traced.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.changing_shapes import changing_calls
from stepscope.check.analyses.graphable import acts
from stepscope.check.analyses.idioms import function_options, in_test, is_true
from stepscope.check.context import Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.names import Function
from stepscope.check.rule import Rule

STATIC = frozenset({"shape", "get_shape", "as_list"})
RELAXED = ("reduce_retracing", "experimental_relax_shapes")
COMPILED = ("jit_compile", "experimental_compile")


def check(ctx: Context) -> Iterator[Hit]:
    """Report every call of a tf.function with a changing shape."""
    if in_test(ctx):
        return
    for call, argument, reason in ctx.once(changing_calls):
        options = function_options(ctx, call.func)
        if options is None or "input_signature" in options or any(is_true(options.get(o)) for o in RELAXED):
            continue
        if any(is_true(options.get(o)) for o in COMPILED):
            continue  # compiled per shape in any case: TFF013
        yield ctx.hit(
            argument,
            f"{ctx.text(call.func)} is traced again for each {reason}".replace("each the ", "each "),
            confidence=0.8,
            fix=_relax(ctx, call),
        )


def _static(ctx: Context, function: Function) -> bool:
    """Whether a function uses sizes as Python numbers, which are None once dimensions may change."""
    parts = [part for statement in function.body for part in ast.walk(statement)]
    return any(
        (isinstance(p, ast.Attribute) and p.attr in STATIC and ctx.name(p) != "tensorflow.shape")
        or (isinstance(p, ast.Name) and p.id in ("len", "enumerate"))
        for p in parts
    ) or any(c.name.startswith("tensorflow.get_static") for _, c in ctx.functions.calls_below(function.body))


def _relax(ctx: Context, call: ast.Call) -> FixPlan | None:
    """Add the option to the decorator of a function of this file."""
    things = [t for t in ctx.things(call.func) if isinstance(t, Function) and t.module is ctx.module]
    decorator = ctx.functions.graph_decorator(things[0]) if len(things) == 1 else None
    if decorator is None or _static(ctx, things[0]) or acts(ctx, things[0].body):
        return None
    keyword = RELAXED[0] if ctx.target.tensorflow >= (2, 9) else RELAXED[1]
    return ctx.fix(
        "add-keyword",
        f"Add {keyword}=True",
        decorator,
        safety="unsafe",
        behaviour="Dimensions that change are None in the graph: code that needs them as Python numbers fails.",
        keyword=keyword,
        value="True",
    )


RULE = Rule(
    code="TFF003",
    name="varying-shapes",
    severity="warning",
    symptom="Time: slow execution time",
    cause="Model: confusion with computation model",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=2.7,
    remedy="pass reduce_retracing=True, or an input_signature with None for the dimensions that change",
    on_file=check,
    since_version=(2, 0),
    related=("GRF001",),
)
