"""Each step makes a new iterator of the dataset.

## What it does
Reports `next(iter(dataset))`, and `for x in dataset.take(1)`, in a loop in which the dataset stays the same.

## Why it is slow
Each `iter` builds the whole pipeline again: threads are started, files opened, shuffle buffers filled, and everything
prefetched is discarded after one element. Measured with a pipeline in memory: 4 to 7 times the time of a step that
keeps using one iterator, and 24 times with a shuffle buffer of 1024 rows, which is filled for each step. Without a
shuffle each step also sees the same first batch.

## Example
Slow:

```python
import tensorflow as tf

batches = tf.data.Dataset.from_tensor_slices(tf.zeros([4096, 8])).shuffle(1024).repeat().batch(32)
total = 0.0
for step in range(1000):
    x = next(iter(batches))
    total += tf.reduce_sum(x)
```

Fixed:

```python
import tensorflow as tf

batches = tf.data.Dataset.from_tensor_slices(tf.zeros([4096, 8])).shuffle(1024).repeat().batch(32)
iterator = iter(batches)
total = 0.0
for step in range(1000):
    x = next(iterator)
    total += tf.reduce_sum(x)
```

## When it is silent
In loops of at most ten iterations; in loops that draw pictures; in loops of epochs (which iterate over data or call
`fit` inside); when the dataset changes in each iteration; when it is not known to be a dataset.

## Fix and its safety
Make the iterator once before the loop and call `next` on it, with `repeat()` at the end of the pipeline if the loop
takes more elements than there are; or loop over the dataset itself. The loop then no longer gets the first element each
time. `--unsafe-fixes` does it if the dataset repeats without end.

## Versions
All; with sessions of TensorFlow 1, `get_next` is built only once in any case.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from stepscope.check.context import Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule

FEW = 10
"""Iterators that are too few to matter."""
FITS = frozenset({"keras.Model.fit", "keras.Model.fit_generator", "keras.Model.evaluate"})
DRAWS = ("matplotlib.", "PIL.", "plotly.", "seaborn.", "IPython.")


def check(ctx: Context) -> Iterator[Hit]:
    """Report every ``next(iter(...))`` and ``for ... in ds.take(1)``."""
    for call in ctx.calls("next"):
        if isinstance(call.node.func, ast.Name) and call.node.args:
            dataset = _iterated(call.node.args[0])
            if dataset is not None:
                yield from _report(ctx, call.node, dataset)
    for call in ctx.calls("take"):
        parent = ctx.parent(call.node)
        looped = isinstance(parent, ast.For) and parent.iter is call.node
        if looped and call.receiver is not None and ctx.loops.integer(call.argument(0, "count")) == 1:
            yield from _report(ctx, call.node, call.receiver)


def _iterated(expr: ast.expr) -> ast.expr | None:
    """The dataset in ``iter(ds)``, ``iter(ds.take(1))`` or ``ds.as_numpy_iterator()``."""
    if not isinstance(expr, ast.Call):
        return None
    if isinstance(expr.func, ast.Name) and expr.func.id == "iter" and len(expr.args) == 1:
        inner = expr.args[0]
        return inner.func.value if _takes(inner) and isinstance(inner.func, ast.Attribute) else inner
    if isinstance(expr.func, ast.Attribute) and expr.func.attr in ("as_numpy_iterator", "make_one_shot_iterator"):
        return expr.func.value
    return None


def _takes(expr: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr == "take"


def _report(ctx: Context, node: ast.Call, dataset: ast.expr) -> Iterator[Hit]:
    if ctx.tag(dataset) is not Tag.DATASET or ctx.traced(node):
        return
    for loop in ctx.loops.around(node):
        if loop.iterations is not None and loop.iterations <= FEW:
            continue
        if not _same(ctx, dataset, loop) or _epochs_or_pictures(ctx, node, loop):
            return
        yield ctx.hit(
            node,
            f"{ctx.text(node)} makes a new iterator of {ctx.text(dataset)} in each iteration",
            confidence=0.9 if not loop.via else 0.8,
            also=[ctx.places.loop_span(loop)],
            fix=_fix(ctx, node, loop),
        )
        return


def _endless(ctx: Context, made: ast.expr) -> bool:
    """Whether the dataset repeats without end; a finite one would end the program in the middle of the loop."""
    chains = ctx.chains(made.args[0]) if isinstance(made, ast.Call) else ()
    return bool(chains) and all(
        any(s.name == "repeat" and s.argument(0, "count") is None for s in chain.stages)
        and not {"take", "take_while"} & set(chain.names)
        for chain in chains
    )


def _fix(ctx: Context, node: ast.Call, loop: Loop) -> FixPlan | None:
    """Make ``iter(ds)`` before the loop, for ``next(iter(ds))`` directly in a loop of this file."""
    made = node.args[0] if node.args else None
    plain = isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and len(made.args) == 1
    if loop.via or loop.is_comprehension or made is None or not plain or not _endless(ctx, made):
        return None
    return ctx.fix(
        "hoist-expression",
        "Make the iterator once, before the loop",
        made,
        loop.node,
        safety="unsafe",
        behaviour="Each iteration gets the next element instead of the first; the dataset repeats.",
        name="iterator",
        inner="$0",
    )


def _same(ctx: Context, dataset: ast.expr, loop: Loop) -> bool:
    """Whether the dataset is the same in each iteration, also if the loop is in a caller."""
    if not loop.via:
        return ctx.loops.varies(dataset, loop) is False
    function = ctx.enclosing(dataset)
    if function is None or not isinstance(dataset, ast.Name):
        return False
    bindings = ctx.definitions(dataset)
    if all(b.scope is not function.scope for b in bindings):
        return bool(bindings)  # of an outer scope
    if any(b.kind != "param" for b in bindings) or len(loop.via) > 1:
        return False
    module, call = loop.via[0]
    expr = next(
        e
        for (_, c), (_, e) in zip(
            ctx.functions.callers(function), ctx.functions.given(function, dataset.id), strict=True
        )
        if c is call
    )
    return expr is not None and ctx.at(module).loops.varies(expr, loop.node) is False


def _epochs_or_pictures(ctx: Context, node: ast.Call, loop: Loop) -> bool:
    """Whether the loop contains another loop that may be one of steps, trains whole epochs, or draws."""
    at = ctx.at(loop.module)
    around = _around(ctx, node)
    for part in (inner for statement in loop.body for inner in ast.walk(statement)):
        if isinstance(part, (ast.For, ast.While)) and part not in around:
            length = at.loops.length(part.iter) if isinstance(part, ast.For) else None
            if length is None or length > FEW:
                return True
    names = {call.name for _, call in at.functions.calls_below(loop.body)}
    return bool(names & FITS) or any(name.startswith(DRAWS) for name in names)


def _around(ctx: Context, node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    parent = ctx.parent(node)
    while parent is not None:
        found.append(parent)
        parent = ctx.parent(parent)
    return found


RULE = Rule(
    code="TFD016",
    name="iterator-per-step",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="raw-input",
    speedup=6.1,
    remedy="make the iterator once before the loop and call next on it",
    on_file=check,
    related=("INP004",),
)
