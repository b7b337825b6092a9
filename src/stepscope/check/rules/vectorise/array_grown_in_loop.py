"""A loop grows an array or tensor by concatenation.

## What it does
Reports, as info, `x = np.append(x, row)`, `np.concatenate`, `np.vstack`, `np.hstack` and `tf.concat` in a loop, if the
result replaces one of its own parts and keeps growing from iteration to iteration.

## Why it is slow
Each concatenation copies everything so far: the work grows with the square of the number of rows. With 4,000 rows of
100 numbers it was measured at more than 100 times the time of a list that is stacked once; with a few hundred rows of a
tensor at almost nothing (1.2 times), so this is info.

## Example
Slow:

```python
import numpy as np

rows = np.zeros((0, 100))
for step in range(4000):
    rows = np.concatenate([rows, np.ones((1, 100))])
```

Fixed:

```python
import numpy as np

parts = []
for step in range(4000):
    parts.append(np.ones((1, 100)))
rows = np.concatenate(parts)
```

## When it is silent
In loops of at most 100 iterations; when the loop resets or trims the array (a window of fixed length); in tests.

## Fix and its safety
Collect the parts in a list and concatenate them once; inside a tf.function use a `tf.TensorArray`. Not done
automatically: the loop may use what has grown so far.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.repeats import rarely
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

FEW = 100
"""Copies that are too few to matter."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a concatenation that replaces one of its own parts."""
    statement = ctx.parent(call.node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or in_test(ctx):
        return
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not call.node.args:
        return
    first = call.node.args[0]
    parts = first.elts if isinstance(first, (ast.List, ast.Tuple)) else call.node.args[:2]
    if not any(isinstance(p, ast.Name) and p.id == target.id for p in parts):
        return
    loop = next(iter(ctx.loops.around(call.node, calls=False)), None)
    if loop is None or (loop.iterations is not None and loop.iterations <= FEW) or rarely(ctx, call.node, loop):
        return
    if _renewed(target.id, statement, loop):
        return
    yield ctx.hit(
        call.node,
        f"{target.id} is copied completely in each iteration to append a part",
        confidence=0.8,
        also=[ctx.places.loop_span(loop)],
    )


def _renewed(name: str, statement: ast.Assign, loop: Loop) -> bool:
    """Whether something else in the loop binds the name: it is reset or trimmed."""
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for part in loop.body
        for node in walk([part])
        if node is not statement.targets[0]
    )


RULE = Rule(
    code="VEC003",
    name="array-grown-in-loop",
    severity="info",
    symptom="Time: increasing time over time",
    cause="API: not using efficient API",
    introduced_stage="data preparation",
    exposed_stage="data preparation",
    pipeline_stage="preprocessing",
    speedup=100.0,
    remedy="collect the parts in a list and concatenate them once",
    calls=frozenset(
        "numpy.append numpy.concatenate numpy.vstack numpy.hstack tensorflow.concat keras.ops.concatenate".split()
    ),
    on_call=check,
)
