"""A Dense layer has hundreds of millions of weights, usually because it follows Flatten.

## What it does
Computes shapes from the sizes written in a Keras model, and reports a `Dense` with 200 million weights or more;
directly after a `Flatten`, 50 million or more are info.

## Why it is slow
Each weight takes four bytes, four more for its gradient and eight more for Adam: 200 million weights are 3.2 GB before
the first batch, and each step reads and writes all of them. This is a common cause of running out of memory, and such a
layer usually overfits. Measured with 128x128 images, Flatten against global average pooling before `Dense(256)`: 67
million weights against 4 thousand, 2.5 GB of memory against 0.6 GB, and 19 times the time of a step.

## Example
Slow:

```python
import keras

model = keras.Sequential([
    keras.layers.Input((512, 512, 3)),
    keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(512, activation="relu"),
])
```

Fixed:

```python
import keras

model = keras.Sequential([
    keras.layers.Input((512, 512, 3)),
    keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
    keras.layers.MaxPooling2D(4),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(512, activation="relu"),
])
```

## When it is silent
When a needed size is not written in the source (`x.shape[1:]`, arguments), and for layers whose output shape the rule
does not know.

## Fix and its safety
Pool or stride before `Flatten`, or use `GlobalAveragePooling2D`. This is a different model and must be trained again,
so it is not done automatically.

## Versions
All.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.check.analyses.shapes import dense_input
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.rule import Rule

MANY = 50_000_000
"""Weights from which a layer is reported as info: 0.8 GB with gradient and Adam. VGG16's first Dense has 103
million."""
HUGE = 200_000_000
"""Weights from which a layer is a warning: 3.2 GB with gradient and Adam."""
BYTES = 16
"""Bytes of a float32 weight, its gradient and Adam's two moments."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a Dense whose input size can be computed."""
    units = ctx.loops.integer(call.argument(0, "units"))
    if units is None or units <= 0:
        return
    given = dense_input(ctx, call)
    if given is None:
        return
    weights = given.features * units
    if weights < (MANY if given.flat else HUGE):
        return
    shape = " x ".join(str(size) for size in given.before or ())
    flattened = f" ({shape})" if shape else ""
    kind = "flattened features" if given.flat else "features"
    yield ctx.hit(
        call.node,
        f"Dense({units}) on {given.features:,} {kind}{flattened} has {weights / 1e6:,.0f} million weights: "
        f"{weights * BYTES / 1e9:.1f} GB with gradients and Adam",
        severity="warning" if weights >= HUGE else "info",
        confidence=0.95,
    )


RULE = Rule(
    code="KER009",
    name="huge-dense-layer",
    severity="warning",
    symptom="Memory: out of memory",
    cause="Model: inefficient model structure",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=19.0,
    remedy="pool before Flatten, or use GlobalAveragePooling2D",
    calls=frozenset({"keras.layers.Dense"}),
    on_call=check,
    related=("GPU001", "MEM004"),
)
