"""An optimizer or a metric is made again in each step.

## What it does
Reports a Keras optimizer or metric that is constructed in the innermost loop that uses it: the loop calls
`apply_gradients`, `minimize` or `update_state` on it, and makes another one in its next iteration.

## Why it is slow
The object makes its variables anew (slots of the optimizer, totals of the metric), which takes longer than a step of a
small model, and a tf.function that it is given to is traced again. Measured with an Adam optimizer that is made in each
step of a small model: 1.8 times the CPU time of eager updates; its moments are lost as well. A metric that is made in
each step costs 1.4 times what `reset_state()` does, and is told as information.

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
Where the object lives for a loop of its own inside of the iteration (an epoch's metric, a fold's optimizer); where the
iteration makes a model; where an argument is another one in each iteration (a learning rate that falls); in loops of at
most ten iterations, in tests, in traced code.

## Fix and its safety
Make it once before the loop, and call `reset_state()` on a metric where each iteration begins anew. The optimizer then
keeps its moments and its step: results change, for the better as a rule.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.checker.analyses import hoisting
from stepscope.checker.analyses.idioms import hot, in_test
from stepscope.checker.analyses.pure import same
from stepscope.checker.context import Call, Context
from stepscope.checker.hits import Hit
from stepscope.checker.inference.loops import Loop
from stepscope.checker.inference.tags import Tag
from stepscope.checker.rule import Rule
from stepscope.checker.source.syntax import walk

USES = frozenset({"apply_gradients", "minimize", "apply", "update_state"})
MODELS = (Tag.MODEL,)


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """An assignment of a new optimizer or metric to a name, in the loop that uses it."""
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
        f"the {what} {name} is made again in each iteration of this loop, with all its variables",
        severity="info" if what == "metric" else None,
        also=[ctx.places.loop_span(loop)],
        fix=ctx.fix(
            "hoist-statement",
            f"Make {name} before the loop",
            node,
            loop.node,
            safety="unsafe",
            behaviour=f"The {what} keeps its state from one iteration to the next.",
        )
        if hoisting.movable(ctx, node, loop) and all(_same(ctx, one, loop) for one in given)
        else None,
    )


def _same(ctx: Context, given: ast.expr, loop: Loop) -> bool:
    """An argument is the same in each iteration: a value, or a schedule that is made of such."""
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
