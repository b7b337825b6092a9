"""Each step makes a new optimizer or metric.

## What it does
Reports a Keras optimizer or metric constructed in the innermost loop that uses it: the loop calls `apply_gradients`,
`minimize` or `update_state` on it, and makes another one in its next iteration.

## Why it is slow
The object makes its variables again (optimizer slots, metric totals), which takes longer than a step of a small model,
and a tf.function that receives it is traced again. Measured with an Adam optimizer made in each step of a small model:
1.8 times the CPU time of eager updates; its moments are lost as well. A metric made in each step costs 1.4 times what
`reset_state()` does, and is reported as info.

## Example
Slow:

```python
import tensorflow as tf

weights = tf.Variable(tf.zeros([8, 1]))
data = tf.data.Dataset.from_tensor_slices(tf.ones([960, 8])).batch(16)
for x in data:
    optimizer = tf.keras.optimizers.Adam()
    optimizer.apply_gradients([(tf.reduce_sum(x, 0)[:, None], weights)])
```

Fixed:

```python
import tensorflow as tf

weights = tf.Variable(tf.zeros([8, 1]))
data = tf.data.Dataset.from_tensor_slices(tf.ones([960, 8])).batch(16)
optimizer = tf.keras.optimizers.Adam()
for x in data:
    optimizer.apply_gradients([(tf.reduce_sum(x, 0)[:, None], weights)])
```

## When it is silent
When the object serves a loop inside the iteration (an epoch's metric, a fold's optimizer); when the iteration makes a
model; when an argument changes in each iteration (a decaying learning rate); in loops of at most ten iterations, in
tests, in traced code.

## Fix and its safety
Make it once before the loop, and call `reset_state()` on a metric if each iteration starts over. The optimizer then
keeps its moments and its step: results change, usually for the better.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses import hoisting
from stepscope.check.analyses.idioms import hot, in_test
from stepscope.check.analyses.pure import same
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

USES = frozenset({"apply_gradients", "minimize", "apply", "update_state"})
MODELS = (Tag.MODEL,)


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a new optimizer or metric assigned to a name in the loop that uses it."""
    node = ctx.parent(call.node)
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return
    if not call.word[:1].isupper() or ".schedules." in call.name or in_test(ctx) or ctx.traced(node):
        return
    loops = hot(ctx.loops.around(node, calls=False))
    if not loops or any(isinstance(p, ast.If) for p in _between(ctx, node, loops[0].node)):
        return
    loop = loops[0]
    name = node.targets[0].id
    uses = [part for part in walk(loop.body) if isinstance(part, ast.Call) and _uses(part, name)]
    if not uses or any(ctx.loops.around(use, calls=False)[0].node is not loop.node for use in uses):
        return
    if any(isinstance(p, ast.Call) and ctx.tag(p) in MODELS for p in walk(loop.body)):
        return
    given = [*call.node.args, *(k.value for k in call.node.keywords)]
    if any(ctx.loops.varies(one, loop) for one in given):
        return
    what = "optimizer" if call.name.startswith("keras.optimizers.") else "metric"
    yield ctx.hit(
        node,
        f"each iteration of this loop makes a new {what} {name}, with all its variables",
        severity="info" if what == "metric" else None,
        also=[ctx.places.loop_span(loop)],
        fix=ctx.fix(
            "hoist-statement",
            f"Make {name} before the loop",
            node,
            loop.node,
            safety="unsafe",
            behaviour=f"The {what} keeps its state between iterations.",
        )
        if hoisting.movable(ctx, node, loop) and all(_same(ctx, one, loop) for one in given)
        else None,
    )


def _same(ctx: Context, given: ast.expr, loop: Loop) -> bool:
    """Whether an argument is the same in each iteration: a value, or a schedule made of such values."""
    if isinstance(given, ast.Call) and ctx.name(given.func).startswith("keras."):
        return all(_same(ctx, one, loop) for one in (*given.args, *(k.value for k in given.keywords)))
    return same(ctx, given, loop)


def _uses(call: ast.Call, name: str) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in USES:
        return isinstance(func.value, ast.Name) and func.value.id == name
    return False


def _between(ctx: Context, node: ast.AST, stop: ast.AST) -> Iterator[ast.AST]:
    parent = ctx.parent(node)
    while parent is not None and parent is not stop:
        yield parent
        parent = ctx.parent(parent)


RULE = Rule(
    code="TFF009",
    name="state-made-per-step",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=1.8,
    remedy="make the optimizer or metric once, before the loop",
    calls=frozenset({"keras.optimizers.*", "keras.metrics.*"}),
    on_call=check,
    since_version=(2, 0),
    related=("HST007",),
)
