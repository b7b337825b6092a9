"""A model is recompiled in the loop that trains it.

## What it does
Reports `model.compile(...)` in a loop if the model is made before the loop and every argument is the same each time.

## Why it is slow
`compile` discards the traced train function and the optimizer's state: the next `fit` traces and compiles again, and
Adam starts from zero moments. Measured with a small model compiled before each of 15 fits of two short epochs: 2.2
times the time of compiling once.

## Example
Slow:

```python
import numpy as np
import keras

x, y = np.zeros((256, 16), "float32"), np.zeros(256, "float32")
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(8), keras.layers.Dense(1)])
for part in range(20):
    model.compile("adam", "mse")
    model.fit(x, y, epochs=2, verbose=0)
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
When the model is made in the loop; when an argument changes (a search over learning rates); when `trainable` is set in
the loop, after which Keras requires a compile; when each iteration starts again on purpose (`load_weights`,
`set_weights`, a comment that says so), because a compile also resets the optimizer; in loops of at most three
iterations; when a condition runs it only every n-th time; in tests.

## Fix and its safety
Compile before the loop. The optimizer then keeps its state between iterations, which is usually intended but changes
the numbers. `--unsafe-fixes` moves the call if it is a statement of the loop's own body.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.invariant import invariant
from stepscope.check.analyses.reasons import RESTARTS, says
from stepscope.check.analyses.repeats import called_in, loop_parts, rarely
from stepscope.check.context import Call, Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

FEW = 3
"""Compiles that are too few to matter."""
RESTARTING = frozenset({"load_weights", "set_weights", "clear_session", "reset_states"})
"""Methods that begin an experiment again."""
MAKING = ("keras.optimizers.", "keras.losses.", "keras.metrics.", "tensorflow.train.")
"""Prefixes of objects that may be constructed in an argument of `compile`; they are the same each time if their own
arguments are."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a compile in a loop."""
    if call.receiver is None or call.opaque or in_test(ctx):
        return
    for loop in ctx.loops.around(call.node, calls=False):
        if (loop.iterations is not None and loop.iterations <= FEW) or rarely(ctx, call.node, loop):
            continue
        given = [e for a in (*call.node.args, *call.node.keywords) for e in _inputs(ctx, a)]
        if ctx.loops.varies(call.receiver, loop) is not False or _made(ctx, call.receiver, loop):
            return
        if not invariant(ctx, given, loop) or _thaws(ctx, call, loop) or _restarts(ctx, call, loop):
            return
        yield ctx.hit(
            call.node,
            f"{ctx.text(call.receiver)} is recompiled in each iteration with the same arguments",
            also=[ctx.places.loop_span(loop)],
            fix=_fix(ctx, call, loop),
        )
        return


def _fix(ctx: Context, call: Call, loop: Loop) -> FixPlan | None:
    """Move the statement before the loop if it stands directly in the loop's body."""
    statement = ctx.parent(call.node)
    if not isinstance(statement, ast.Expr) or ctx.parent(statement) is not loop.node:
        return None
    return ctx.fix(
        "hoist-statement",
        "Compile before the loop",
        statement,
        loop.node,
        safety="unsafe",
        behaviour="The optimizer keeps its state between iterations.",
    )


def _inputs(ctx: Context, node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that decide an argument: for an optimizer or loss made in place, its own arguments."""
    if isinstance(node, ast.keyword):
        node = node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            yield from _inputs(ctx, element)
    elif isinstance(node, ast.Call) and ctx.name(node.func).startswith(MAKING):
        for inner in (*node.args, *node.keywords):
            yield from _inputs(ctx, inner)
    elif isinstance(node, ast.expr):
        yield node


def _made(ctx: Context, receiver: ast.expr, loop: Loop) -> bool:
    return isinstance(receiver, ast.Name) and any(ctx.loops.inside(b.node, loop) for b in ctx.definitions(receiver))


def _restarts(ctx: Context, call: Call, loop: Loop) -> bool:
    """Whether each iteration starts again on purpose: from given weights, or as a comment says."""
    words = {name.rpartition(".")[2] for name in called_in(ctx, call.node, loop)}
    return bool(words & RESTARTING) or says(ctx, call.node, RESTARTS)


def _thaws(ctx: Context, call: Call, loop: Loop) -> bool:
    """Whether the loop sets ``layer.trainable``, which takes effect only at the next compile."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "trainable" and isinstance(node.ctx, ast.Store)
        for _, part in loop_parts(ctx, call.node, loop)
        for node in walk([part])
    )


RULE = Rule(
    code="KER005",
    name="compile-in-loop",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="none",
    speedup=1.9,
    remedy="compile the model once, before the loop",
    calls=frozenset({"keras.Model.compile"}),
    on_call=check,
    related=("GRF002",),
)
