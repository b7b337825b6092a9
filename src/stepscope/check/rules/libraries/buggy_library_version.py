"""A loop repeats a call that is known to leak memory in the TensorFlow version that the project uses.

## What it does
Reports, as info, calls in a loop that leak according to a public issue about the version being checked for. The table
of issues and versions is `tables/advisories.json`, each with its source.

## Why it is slow
Leaked memory makes each call a little slower, until the machine swaps or the process is killed. This comes from the
issues; it was not measured here because the versions are old, so the rule only informs.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf

model = tf.keras.models.load_model("model.h5")
while True:
    model.predict(np.zeros((1, 8)))
```

Fixed:

```python
import numpy as np
import tensorflow as tf

model = tf.keras.models.load_model("model.h5")
model.predict(np.zeros((1000, 8)))
```

## When it is silent
For versions that no issue names, calls outside loops, loops of at most ten iterations, tests.

## Fix and its safety
Upgrade TensorFlow, or follow the issue's recommendation, which the message names.

## Versions
Those in the table: 1.12 to 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.check.advisories import ALL, Advisory
from stepscope.check.analyses.idioms import hot, in_test
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.rule import Rule


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a repeated call that the table names for this version."""
    found = _advisory(ctx, call)
    if found is None or in_test(ctx) or ctx.traced(call.node):
        return
    loops = hot(ctx.loops.around(call.node))
    if loops:
        version = ".".join(str(part) for part in ctx.target.tensorflow)
        yield ctx.hit(
            call.node,
            f"{ctx.text(call.node.func)} {found.what} in TensorFlow {version} ({found.source}): {found.remedy}",
            confidence=0.6,
            also=[ctx.places.loop_span(loops[0])],
        )


def _advisory(ctx: Context, call: Call) -> Advisory | None:
    return next((a for a in ALL if call.name in a.calls and a.first <= ctx.target.tensorflow < a.fixed), None)


RULE = Rule(
    code="LIB001",
    name="buggy-library-version",
    severity="info",
    symptom="Memory: memory leak",
    cause="Library: buggy library version",
    introduced_stage="environment setting",
    exposed_stage="prediction",
    pipeline_stage="forward-backward",
    speedup=1.0,
    remedy="upgrade TensorFlow",
    calls=frozenset(name for advisory in ALL for name in advisory.calls),
    on_call=check,
    before_version=(2, 14),
    related=("MEM001",),
)
