"""A Keras callback does heavy work after every batch: it predicts, evaluates, saves or draws.

## What it does
Reports, in methods of Keras callbacks that run for each batch (`on_train_batch_end`, `on_batch_end`, ...), calls of
`predict`, `evaluate`, `save`, `save_weights` and matplotlib's drawing functions, also in functions they call; the same
in a `LambdaCallback`; `TensorBoard(update_freq="batch")`; and `ModelCheckpoint(save_freq=n)` with a small n.

## Why it is slow
The next batch starts only when the callback has returned, so the device waits. `predict` and `evaluate` also make a
data adapter and an iterator each time. Measured with an evaluation of 320 rows after each of 30 batches of 64: 11 times
the time of one evaluation per epoch. A callback that does almost nothing has no measurable cost.

## Example
Slow:

```python
import keras

class Watch(keras.callbacks.Callback):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def on_train_batch_end(self, batch, logs=None):
        print(self.model.evaluate(self.x, self.y, verbose=0))
```

Fixed:

```python
import keras

class Watch(keras.callbacks.Callback):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def on_epoch_end(self, epoch, logs=None):
        print(self.model.evaluate(self.x, self.y, verbose=0))
```

## When it is silent
Behind `if batch % n == 0`, unless n is known and at most 20; behind `if batch == 0`; for arithmetic, logging and lists
in such a method; for callbacks that run once per epoch; in tests.

## Fix and its safety
Move the work to `on_epoch_end`, or do it every few hundred batches. It then runs less often, which is the point. Not
done automatically.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.repeats import every, guard
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.names import Function
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

OFTEN = 20
"""Interval in batches up to which heavy work is still too frequent."""
HOOKS = frozenset({"on_batch_end", "on_batch_begin", "on_train_batch_end", "on_train_batch_begin"})
HEAVY = frozenset(
    "keras.Model.predict keras.Model.evaluate keras.Model.save keras.Model.save_weights keras.models.save_model "
    "matplotlib.pyplot.savefig matplotlib.pyplot.show matplotlib.pyplot.draw matplotlib.pyplot.pause "
    "matplotlib.pyplot.imsave matplotlib.pyplot.subplots matplotlib.pyplot.figure".split()
)
OF_MODEL = frozenset({"predict", "evaluate", "save", "save_weights"})
"""Heavy methods of ``self.model``, the callback's Keras model."""
LEVELS = 2
"""Depth to which calls of project functions are followed from a hook."""


def check(ctx: Context) -> Iterator[Hit]:
    """Report the callbacks of a file: classes, LambdaCallbacks, and Keras callbacks with a frequency argument."""
    if in_test(ctx):
        return
    for scope in ctx.module.flow.scopes.values():
        if isinstance(scope.node, ast.ClassDef) and HOOKS & set(scope.functions):
            for name in sorted(HOOKS & set(scope.functions)):
                function = ctx.engine.names.function(ctx.module, scope.functions[name])
                if function.cls is not None and _is_callback(ctx, function):
                    yield from _hook(ctx, function, name)
    for call in ctx.calls("LambdaCallback"):
        if call.name == "keras.callbacks.LambdaCallback":
            for keyword in call.node.keywords:
                given = ctx.function(keyword.value) if keyword.arg in HOOKS else None
                if given is not None and given.module is ctx.module:
                    yield from _hook(ctx, given, str(keyword.arg))
    for call in ctx.calls("TensorBoard", "ModelCheckpoint"):
        yield from _told(ctx, call)


def _is_callback(ctx: Context, function: Function) -> bool:
    names = ctx.engine.names.lineage(function.cls) if function.cls is not None else ()
    return any(name.startswith("keras.callbacks.") for name in names)


def _hook(ctx: Context, function: Function, name: str) -> Iterator[Hit]:
    for path, call in _heavy(ctx, function, LEVELS, ()):
        first = path[0] if path else call
        between = [_steps(ctx, place) for place in (*path, call)]
        if any(n is None or n > OFTEN for n in between):
            continue
        steps = max((n for n in between if n is not None), default=1)
        often = "after every batch" if steps <= 1 else f"after every {steps} batches"
        yield ctx.hit(
            first.node,
            f"{ctx.text(call.node.func)} runs {often}, in {name}, while training waits",
            confidence=0.9 if steps <= 1 else 0.75,
            also=[ctx.places.span(function.node)] if not isinstance(function.node, ast.Lambda) else [],
        )
        return


def _heavy(
    ctx: Context, function: Function, levels: int, path: tuple[Call, ...]
) -> Iterator[tuple[tuple[Call, ...], Call]]:
    """Yield heavy calls below a function of the same file, each with the calls that lead to it."""
    for node in walk(function.body):
        if not isinstance(node, ast.Call):
            continue
        call = ctx.call(node)
        if call.name in HEAVY or _of_own_model(call):
            yield path, call
        for callee in ctx.functions.callees(node) if levels else ():
            if callee.module is ctx.module and callee.node is not function.node:
                yield from _heavy(ctx, callee, levels - 1, (*path, call))


def _of_own_model(call: Call) -> bool:
    owner = call.receiver
    return (
        isinstance(call.node.func, ast.Attribute)
        and call.node.func.attr in OF_MODEL
        and isinstance(owner, ast.Attribute)
        and owner.attr == "model"
        and isinstance(owner.value, ast.Name)
        and owner.value.id == "self"
    )


def _steps(ctx: Context, call: Call) -> int | None:
    """Batches between two runs of a call in its function; 1 without a guard, None if it runs rarely or the interval is
    unknown.
    """
    if _once(ctx, call.node):
        return None
    found = guard(ctx.module, call.node)
    return 1 if found is None else every(ctx, found)


def _once(ctx: Context, node: ast.AST) -> bool:
    """Whether the call is behind a condition without ``%``, so that its frequency is unknown."""
    child, parent = node, ctx.parent(node)
    while parent is not None and not isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        if isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test:
            modulo = any(isinstance(p, ast.BinOp) and isinstance(p.op, ast.Mod) for p in ast.walk(parent.test))
            if not modulo:
                return True
        if isinstance(parent, ast.ExceptHandler):
            return True
        child, parent = parent, ctx.parent(parent)
    block = getattr(parent, "body", [])
    before = block[: block.index(child)] if isinstance(block, list) and child in block else []
    return any(
        isinstance(s, ast.If)
        and isinstance(s.body[-1], ast.Return)
        and not any(isinstance(p, ast.BinOp) and isinstance(p.op, ast.Mod) for p in ast.walk(s.test))
        for s in before
    )


def _told(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report ``TensorBoard(update_freq="batch")`` and ``ModelCheckpoint(save_freq=10)``."""
    if call.name == "keras.callbacks.TensorBoard":
        freq = call.argument(-1, "update_freq")
        if isinstance(freq, ast.Constant) and freq.value in ("batch", 1):
            yield ctx.hit(
                call.node,
                "TensorBoard writes summaries after every batch (update_freq)",
                severity="info",
                confidence=0.8,
            )
    elif call.name == "keras.callbacks.ModelCheckpoint":
        steps = ctx.loops.integer(call.argument(-1, "save_freq"))
        if steps is not None and 0 < steps <= OFTEN:
            yield ctx.hit(
                call.node, f"ModelCheckpoint saves the model every {steps} batches (save_freq)", confidence=0.9
            )


RULE = Rule(
    code="KER008",
    name="heavy-batch-callback",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="output-processing",
    speedup=7.7,
    remedy="do it once per epoch, or every few hundred batches",
    on_file=check,
    related=("HST004", "HST005", "HST006"),
)
