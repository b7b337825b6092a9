"""An array or tensor is grown by concatenation in a loop.

## What it does
Reports, as info, `x = np.append(x, row)`, `np.concatenate`, `np.vstack`, `np.hstack` and `tf.concat` in a loop, where
the result replaces what it was made of and goes on growing from iteration to iteration.

## Why it is slow
Each time everything so far is copied: the work grows with the square of the number of rows. It depends on that
number: measured with 4,000 rows of 100 numbers, more than 100 times the time of a list that is stacked once; with a
few hundred rows of a tensor next to nothing (1.2 times), so that it is info.

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
In loops of at most 100 iterations; where the array is made anew or cut in the loop (a window of fixed length); in
tests.

## Fix and its safety
Collect the parts in a list and concatenate them once; inside of a tf.function use a `tf.TensorArray`. Not done
automatically: the loop may use what has grown so far.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.checker.analyses.idioms import in_test
from stepscope.checker.analyses.repeats import rarely
from stepscope.checker.context import Call, Context
from stepscope.checker.hits import Hit
from stepscope.checker.inference.loops import Loop
from stepscope.checker.rule import Rule
from stepscope.checker.source.syntax import walk

FEW = 100
"""So many copies are no matter."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """A concatenation that replaces one of its own parts."""
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
        f"{target.id} is copied as a whole in each iteration to grow by a part",
        confidence=0.8,
        also=[ctx.places.loop_span(loop)],
    )


def _renewed(name: str, statement: ast.Assign, loop: Loop) -> bool:
    """Something else in the loop binds the name: it starts anew, or is cut."""
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
