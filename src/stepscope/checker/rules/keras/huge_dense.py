"""A Dense layer has hundreds of millions of weights, mostly because it stands after Flatten.

## What it does
Works out shapes from the sizes that are written down in a Keras model, and reports a `Dense` with 200 million weights
or more; right after a `Flatten` from 50 million on as info.

## Why it is slow
Each weight takes four bytes, as many for its gradient and twice as many for Adam: 200 million are 3.2 GB before the
first batch, and each step reads and writes them all. It is a common reason of running out of memory, and such a layer
mostly overfits. Measured with 128x128 images, Flatten against global average pooling before `Dense(256)`: 67 million
weights against 4 thousand, 2.5 GB of memory against 0.6 GB, and 19 times the time of a step.

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
When a size on the way is not written down (`x.shape[1:]`, arguments), and for layers whose shapes it does not know.

## Fix and its safety
Pool or stride before `Flatten`, or use `GlobalAveragePooling2D`. It is another model and must be trained again: not
done automatically.

## Versions
All.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.checker.analyses.shapes import dense_input
from stepscope.checker.context import Call, Context
from stepscope.checker.hits import Hit
from stepscope.checker.rule import Rule

MANY = 50_000_000
"""Weights from which on it is worth a word: 0.8 GB with gradient and Adam. VGG16's first Dense has 103 million."""
HUGE = 200_000_000
"""Weights from which on it is a warning: 3.2 GB with gradient and Adam."""
BYTES = 16
"""Of a float32 weight, its gradient and Adam's two moments."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """A Dense whose input's size can be worked out."""
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
    related=("GPU001",),
)
