"""A traced function reads a whole data set from a NumPy array outside of it, which becomes a constant of its graph.

## What it does
Reports, in tf.functions, functions that `Dataset.map` is given and Keras steps, NumPy arrays of data that are passed to
an op and come from outside of the function: those of `keras.datasets`, those whose shape in the source gives a million
numbers or more, and, as info, those of `np.load`.

## Why it is slow
Each trace copies the array into the graph, and what optimises and stores the graph copies it several times more. A
graph over 2 GB is an error. Measured with 200,000 rows of 64 numbers (51 MB) and `tf.gather`: 18 times the CPU time for
the first call with the array, 5 s instead of 0.3 s, again in each further trace, and 640 MB of memory; in the function
of a `map`, 8 s instead of 0.1 s. A tensor is passed to the graph by reference.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf

(x, y), _ = tf.keras.datasets.cifar10.load_data()

@tf.function
def rows(index):
    return tf.gather(x, index)
```

Fixed:

```python
import numpy as np
import tensorflow as tf

(x, y), _ = tf.keras.datasets.cifar10.load_data()
x = tf.constant(x)

@tf.function
def rows(index):
    return tf.gather(x, index)
```

## When it is silent
For arrays that are parameters, or are made inside of the function; for those whose size is unknown; in tests; before
TensorFlow 2.

## Fix and its safety
Make it a tensor once, outside: `x = tf.constant(x)`. It takes the memory of the device; where that is too small, read
rows from a Dataset. Not done automatically: code outside may need the array.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.shapes import sizes
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule

LARGE = 1_000_000
"""Numbers from which an array is data, not a setting: its copies take tens of milliseconds and megabytes."""
MAX_DEPTH = 6
"""Names and calls between an array and what it is made from."""
SHAPED = frozenset(
    "zeros ones empty random rand randn random_sample uniform normal standard_normal randint integers full".split()
)
"""Functions of NumPy whose argument is a shape."""
FILES = frozenset({"numpy.load", "numpy.loadtxt", "numpy.genfromtxt"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report an op on a large array from outside of the traced function around it."""
    given = [*call.node.args, *(k.value for k in call.node.keywords)]
    arrays = [name for name in given if isinstance(name, ast.Name) and name in ctx.module.flow.outer]
    for name in arrays:
        if ctx.tag(name) is not Tag.NUMPY or in_test(ctx) or not ctx.traced(call.node):
            continue
        what = _source(ctx, name, 0)
        if what:
            yield ctx.hit(
                name,
                f"{name.id}{what} becomes a constant of the graph: each trace copies it; make it a tensor outside",
                confidence=0.85,
                severity="info" if what == FROM_FILE else None,
            )
            return


FROM_FILE = ", an array from a file,"


def _source(ctx: Context, expr: ast.expr, depth: int) -> str:
    """What makes an array large, in words for the message; "" if nothing is known to."""
    if depth > MAX_DEPTH:
        return ""
    if isinstance(expr, ast.Name):
        made = [b.value for b in ctx.definitions(expr) if b.kind in ("assign", "unpack")]
        found = [_source(ctx, value, depth + 1) if value is not None else "" for value in made]
        return found[0] if found and all(found) else ""
    if isinstance(expr, ast.BinOp):
        return _source(ctx, expr.left, depth + 1) or _source(ctx, expr.right, depth + 1)
    if not isinstance(expr, ast.Call):
        return ""
    call = ctx.call(expr)
    if call.name.startswith("keras.datasets.") and call.word == "load_data":
        return f", all of {call.name.split('.')[2]},"
    if call.name in FILES:
        return FROM_FILE
    if call.word in SHAPED and ctx.tag(expr) is Tag.NUMPY:
        numbers = _numbers(ctx, call)
        return f", {numbers:,} numbers," if numbers >= LARGE else ""
    if isinstance(expr.func, ast.Attribute) and expr.func.attr in ("astype", "reshape", "copy"):
        return _source(ctx, expr.func.value, depth + 1)
    if call.name in ("numpy.array", "numpy.asarray", "numpy.float32") and expr.args:
        return _source(ctx, expr.args[0], depth + 1)
    return ""


def _numbers(ctx: Context, call: Call) -> int:
    """The largest product of sizes that an argument names, or all of them, as ``rand`` takes them; 0 if unknown."""
    given = [*call.node.args, *(k.value for k in call.node.keywords if k.arg in ("size", "shape"))]
    shapes = [sizes(ctx, one) for one in given]
    known = [math.prod(s for s in shape if s is not None) for shape in shapes if shape and None not in shape]
    if known:
        return max(known)
    single = [ctx.loops.integer(one) for one in given]
    separate = call.word in ("rand", "randn")
    return math.prod(n for n in single if n is not None) if separate and single and None not in single else 0


RULE = Rule(
    code="TFF015",
    name="array-in-graph",
    severity="warning",
    symptom="Time: slow initialization time",
    cause="Model: confusion with computation model",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=5.5,
    remedy="make the array a tensor once, outside of the function",
    calls=frozenset({"tensorflow.*", "keras.ops.*"}),
    on_call=check,
    since_version=(2, 0),
    related=("MEM004",),
)
