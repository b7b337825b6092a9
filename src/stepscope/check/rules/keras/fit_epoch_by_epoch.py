"""A loop calls fit for one epoch at a time on the same data.

## What it does
Reports, as info, `model.fit(x, y)` with one epoch in a loop, if the data are the same each time.

## Why it is slow
Each `fit` makes a data adapter, an iterator and callbacks, reshuffles, and waits for all work to finish before the next
one starts. Measured with epochs of eight small batches: 1.4 times the time of one `fit` for all epochs. The cost
vanishes with longer epochs, so this is info.

## Example
Slow:

```python
import numpy as np
import keras

x, y = np.zeros((256, 16), "float32"), np.zeros(256, "float32")
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("adam", "mse")
for epoch in range(40):
    model.fit(x, y, epochs=1, verbose=0)
```

Fixed:

```python
import numpy as np
import keras

x, y = np.zeros((256, 16), "float32"), np.zeros(256, "float32")
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, y, epochs=40, verbose=0)
```

## When it is silent
When the data change (batches, folds, chunks of a file) or may change; with `initial_epoch`; for generators and
Datasets; in loops of at most ten iterations; in tests.

## Fix and its safety
Pass `epochs=` to one `fit`, and move the rest of the loop's body to a callback's `on_epoch_end`. Not done
automatically.

## Versions
All.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.quiet import given_to_change
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule

FEW = 10
"""Epochs that are too few to matter."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a fit of one epoch in a loop."""
    data, epochs = call.argument(0, "x"), call.argument(3, "epochs")
    if data is None or call.receiver is None or call.opaque or in_test(ctx):
        return
    if (epochs is not None and ctx.loops.integer(epochs) != 1) or call.argument(-1, "initial_epoch") is not None:
        return
    if ctx.tag(data) is not Tag.NUMPY or ctx.traced(call.node):
        return
    for loop in ctx.loops.around(call.node, calls=False):
        if loop.iterations is not None and loop.iterations <= FEW:
            continue
        if ctx.loops.varies(data, loop) is not False or ctx.loops.varies(call.receiver, loop) is not False:
            return
        if given_to_change(ctx, data, loop):
            return
        yield ctx.hit(
            call.node,
            f"{ctx.text(call.receiver)}.fit runs one epoch at a time on the same data in a loop",
            confidence=0.8,
            also=[ctx.places.loop_span(loop)],
        )
        return


RULE = Rule(
    code="KER006",
    name="fit-epoch-by-epoch",
    severity="info",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="none",
    speedup=1.4,
    remedy="pass epochs= to one fit and do the rest in a callback",
    calls=frozenset({"keras.Model.fit"}),
    on_call=check,
)
