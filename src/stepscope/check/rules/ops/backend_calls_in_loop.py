"""Keras' backend evaluates or builds something in a loop: each iteration adds graph nodes or makes a function.

## What it does
Reports, in a loop, `K.eval(expression)` and `K.get_value` of an expression in TensorFlow 1, and in all versions
`K.function(...)` or `keras.Model(...)` of existing tensors if the loop calls the result.

## Why it is slow
In TensorFlow 1 the expression is built again in each iteration and the graph grows: each run is slower than the last.
`K.function`, or a model of a layer's output, is traced at its first call, and a loop makes a new one each time.
Measured with a model of one layer's output made for each of 20 batches: 3 times the time of one made once.

## Example
Slow:

```python
import numpy as np
from tensorflow import keras

model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
features = []
for batch in np.zeros((40, 16, 8), "float32"):
    inner = keras.Model(model.inputs, model.layers[0].output)
    features.append(inner.predict_on_batch(batch))
```

Fixed:

```python
import numpy as np
from tensorflow import keras

model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
features = []
inner = keras.Model(model.inputs, model.layers[0].output)
for batch in np.zeros((40, 16, 8), "float32"):
    features.append(inner.predict_on_batch(batch))
```

## When it is silent
For variables and names (`K.get_value(optimizer.lr)`); when the iteration makes another model or uses another layer; in
loops of at most ten iterations; outside loops; in tests.

## Fix and its safety
Make the function or model once before the loop and call it with the data; use NumPy for computations that need no
graph. The fix moves the statement that makes it; it is unsafe because the statement then also runs if the loop does
not.

## Versions
`K.eval` before TensorFlow 2; functions and models in all versions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses import hoisting
from stepscope.check.analyses.idioms import hot, in_test
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

EVALUATING = frozenset({"keras.backend.eval", "keras.backend.get_value"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a backend call, or a model of tensors, that a loop repeats."""
    if in_test(ctx) or ctx.traced(call.node):
        return
    loops = [loop for loop in hot(ctx.loops.around(call.node)) if not loop.is_comprehension or loop.via]
    if not loops:
        return
    if call.name in EVALUATING:
        given = call.argument(0, "x")
        if ctx.target.tensorflow < (2, 0) and isinstance(given, (ast.Call, ast.BinOp)) and _direct(loops):
            yield ctx.hit(
                call.node,
                f"{ctx.text(call.node)} adds nodes to the graph in each iteration of this loop",
                also=[ctx.places.loop_span(loops[0])],
            )
        return
    arguments = [*call.node.args, *(k.value for k in call.node.keywords)]
    loop = loops[0]
    if not arguments or loop.via or not _called(ctx, call, loop):
        return
    if any(ctx.loops.varies(a, loop) is not False for a in arguments):
        return
    what = "a function" if call.name == "keras.backend.function" else "a model"
    yield ctx.hit(
        call.node,
        f"{ctx.text(call.node)} makes {what} in each iteration of this loop, which is traced each time",
        also=[ctx.places.loop_span(loop)],
        fix=hoisting.statement(ctx, call.node, loop),
    )


def _direct(loops: list[Loop]) -> bool:
    return any(not loop.via or loop.iterations is None for loop in loops)


def _called(ctx: Context, call: Call, loop: Loop) -> bool:
    """Whether the result is called in the same iteration, directly or through its name."""
    parent = ctx.parent(call.node)
    if isinstance(parent, ast.Call) and parent.func is call.node:
        return True
    if isinstance(parent, ast.Attribute):
        return True
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Name):
        return False
    name = parent.targets[0].id
    for part in walk(loop.body):
        if isinstance(part, ast.Call):
            func = part.func.value if isinstance(part.func, ast.Attribute) else part.func
            if isinstance(func, ast.Name) and func.id == name:
                return True
    return False


RULE = Rule(
    code="OPS003",
    name="backend-calls-in-loop",
    severity="warning",
    symptom="Time: increasing time over time",
    cause="Model: confusion with computation model",
    introduced_stage="evaluation",
    exposed_stage="evaluation",
    pipeline_stage="forward-backward",
    speedup=3.0,
    remedy="make the function or model once, before the loop",
    calls=frozenset({*EVALUATING, "keras.backend.function", "keras.Model"}),
    on_call=check,
    related=("GRF004", "HST007"),
)
