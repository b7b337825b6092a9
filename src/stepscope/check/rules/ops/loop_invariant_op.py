"""An op inside a loop computes the same tensor in every iteration.

## What it does
Reports TensorFlow calls in a Python loop whose arguments do not change in it: in eager code that a hot loop repeats,
and in loops that build a graph of TensorFlow 1. The largest expression that stays the same is reported.

## Why it is slow
In eager code the op runs again in each iteration. A loop that builds a graph creates one node per iteration; they are
merged before the graph runs, but must be made, optimised and stored. Most such ops take microseconds, so this is info.
Measured with a positional encoding of 64 x 128 values made in each of 300 eager iterations: 5 times the CPU time of the
loop with the encoding made before it.

## Example
Slow:

```python
import tensorflow as tf

images = [tf.random.normal([32, 32]) for _ in range(100)]
size = 32
total = tf.zeros([size, size])
for image in images:
    kernel = tf.exp(-tf.square(tf.linspace(-3.0, 3.0, size)))
    total += image * kernel
```

Fixed:

```python
import tensorflow as tf

images = [tf.random.normal([32, 32]) for _ in range(100)]
size = 32
total = tf.zeros([size, size])
kernel = tf.exp(-tf.square(tf.linspace(-3.0, 3.0, size)))
for image in images:
    total += image * kernel
```

## When it is silent
In eager code for plain constants and initializers (`tf.zeros`, `tf.constant`: microseconds); for everything that makes
variables (each call is another variable), random ops and ops with side effects; in a tf.function, where equal nodes are
merged; under a condition in the loop; in loops of at most ten iterations, tests and comprehensions; when the value that
the op reads may differ in the next iteration. That holds for variables and the state of models, layers and optimizers;
for arrays, lists and unknown values, unless the loop does nothing that could change any object; and for names and
attributes that a function assigns. Numbers, strings and tensors cannot change. In a graph of TensorFlow 1, variables
and tensors are symbols.

## Fix and its safety
Move the call before the loop. The result is the same tensor, but it is then also computed if the loop never runs. There
is no fix if its name is also bound elsewhere and read, or if the call needs a name that the loop binds.

## Versions
All; in TensorFlow 2 only eager code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses import hoisting
from stepscope.check.analyses.idioms import hot, in_test
from stepscope.check.analyses.pure import IMPURE, made_of, movable, pure, unchanging
from stepscope.check.context import Call, Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule

CONSTANTS = frozenset(
    "tensorflow.zeros tensorflow.ones tensorflow.constant tensorflow.fill tensorflow.convert_to_tensor "
    "tensorflow.zeros_like tensorflow.ones_like tensorflow.cast tensorflow.shape tensorflow.range".split()
)
"""Ops that take microseconds in eager code: reported only where they become nodes of a graph."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a pure op in a loop whose arguments stay the same."""
    if call.name.startswith(IMPURE) or (ctx.target.tensorflow >= (2, 0) and call.name in CONSTANTS):
        return
    loops = hot(ctx.loops.around(call.node, calls=False))
    if not loops or loops[0].is_comprehension or in_test(ctx) or not pure(ctx, call):
        return
    if ctx.target.tensorflow >= (2, 0) and ctx.tag(call.node) is not Tag.TENSOR:
        return
    if ctx.traced(call.node) or not unchanging(ctx, call, loops[0]):
        return
    if _conditional(ctx, call.node, loops[0].node) or _part_of_invariant(ctx, call.node, loops[0]):
        return
    yield ctx.hit(
        call.node,
        f"{ctx.text(call.node, 48)} computes the same value in every iteration of this loop",
        confidence=0.7,
        also=[ctx.places.loop_span(loops[0])],
        fix=_hoist(ctx, call, loops[0]),
    )


def _hoist(ctx: Context, call: Call, loop: Loop) -> FixPlan | None:
    """Move the whole statement, preceded by the loop's statements that it depends on."""
    statement = ctx.parent(call.node)
    if not isinstance(statement, ast.Assign) or not movable(ctx, statement, loop):
        return None
    moved = sorted({*made_of(ctx, statement.value, loop), statement}, key=lambda one: one.lineno)
    names = [one.targets[0].id for one in moved if isinstance(one.targets[0], ast.Name)]
    if not all(hoisting.movable(ctx, one, loop, frozenset(names)) for one in moved):
        return None
    what = "It is" if len(names) == 1 else "They are"
    return ctx.fix(
        "hoist-statement",
        f"Make {', '.join(names)} before the loop",
        *moved,
        loop.node,
        safety="unsafe",
        behaviour=f"{what} computed once, also if the loop does not run at all.",
    )


def _conditional(ctx: Context, node: ast.AST, loop: ast.AST) -> bool:
    """Whether a node does not run in every iteration."""
    parent = ctx.parent(node)
    while parent is not None and parent is not loop:
        if isinstance(parent, (ast.If, ast.IfExp, ast.Try, ast.With, ast.Lambda, ast.ExceptHandler)):
            return True
        parent = ctx.parent(parent)
    return False


def _part_of_invariant(ctx: Context, node: ast.expr, loop: Loop) -> bool:
    """Whether a larger expression around a node stays the same too and is reported instead."""
    parent = ctx.parent(node)
    while isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Call, ast.keyword, ast.List, ast.Tuple, ast.Subscript)):
        if isinstance(parent, ast.Call):
            outer = ctx.call(parent)
            if outer.name.startswith(("tensorflow.Variable", "tensorflow.get_variable")):
                return True  # the initial value of a variable; each one must be separate
            return outer.name.startswith("tensorflow.") and pure(ctx, outer) and unchanging(ctx, outer, loop)
        parent = ctx.parent(parent)
    return False


RULE = Rule(
    code="OPS004",
    name="loop-invariant-op",
    severity="info",
    symptom="Time: slow execution time",
    cause="Model: confusion with computation model",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=5.0,
    remedy="move the call before the loop",
    calls=frozenset({"tensorflow.*", "keras.initializers.*"}),
    on_call=check,
)
