"""Training ops are pinned to the CPU, or every op's placement is logged.

## What it does
Reports, as info, a training step or `fit` inside `with tf.device("/CPU:0")` that no condition chooses, and
`log_device_placement` that is left on.

## Why it is slow
A GPU in the machine stays idle, because pinned ops run on the CPU. Placement logging writes a line for each op that
runs eagerly. Measuring either needs a GPU or a terminal, neither of which was available for this page, so both are
info.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
with tf.device("/CPU:0"):
    model.fit(np.zeros((8, 4)), np.zeros((8, 1)))
```

Fixed:

```python
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.zeros((8, 4)), np.zeros((8, 1)))
```

## When it is silent
For input pipelines and preprocessing on the CPU, for devices chosen by a variable or a condition, and in tests.

## Fix and its safety
Remove the device, or choose it from `tf.config.list_physical_devices("GPU")`. Results differ by rounding.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test, is_true, own_calls
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.rule import Rule

TRAINS = frozenset(
    {
        "keras.Model.fit",
        "keras.Model.fit_generator",
        "keras.Model.train_on_batch",
        "keras.Optimizer.apply_gradients",
        "keras.Optimizer.minimize",
    }
)
LOGS = frozenset({"tensorflow.debugging.set_log_device_placement"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a device around training code, and placement logging."""
    parent = ctx.parent(call.node)
    if in_test(ctx) or _conditional(ctx, call.node):
        return
    if call.name in LOGS:
        if isinstance(parent, ast.Expr) and is_true(call.argument(0, "enabled")):
            yield ctx.hit(parent, "the placement of every op is logged", confidence=0.8)
        return
    block = ctx.parent(parent) if isinstance(parent, ast.withitem) else None
    if not isinstance(block, ast.With) or not call.node.args:
        return
    device = call.node.args[0]
    text = device.value if isinstance(device, ast.Constant) and isinstance(device.value, str) else ""
    if "cpu" not in text.lower():
        return
    trained = next((c for c in own_calls(ctx, block.body) if ctx.name(c.func) in TRAINS), None)
    if trained is not None:
        yield ctx.hit(
            block,
            f"{ctx.text(trained.func)} is pinned to {text}: a GPU would stay idle",
            confidence=0.7,
            also=[ctx.places.span(trained)],
        )


def _conditional(ctx: Context, node: ast.AST) -> bool:
    parent = ctx.parent(node)
    while parent is not None:
        if isinstance(parent, ast.If):
            return True
        parent = ctx.parent(parent)
    return False


RULE = Rule(
    code="DEV003",
    name="training-on-cpu-device",
    severity="info",
    symptom="Processor: not using GPU",
    cause="Hardware: hardware and code mismatch",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=1.0,
    remedy="remove the device",
    calls=LOGS | {"tensorflow.device"},
    on_call=check,
    related=("GPU003",),
)
