"""Keras' predict is called repeatedly, in a loop or for each row that arrives.

## What it does
Reports `model.predict(x)` in a loop, or in a function called from one, if the model stays the same and the input
changes each time; in a request handler; and, as info, for a single row in a method that the project offers but does not
call itself, because its callers will call it per row.

## Why it is slow
Each call of `predict` makes a data adapter, a tf.data iterator and callbacks, and collects results: milliseconds around
a model that needs microseconds per row. Measured on 150 single rows of a small model: 105 times the time of one
`predict` for all of them; 60 rows took 27 times the CPU time of `model(x)` for each.

## Example
Slow:

```python
import numpy as np
import keras

model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(4)])
rows = np.zeros((30, 16), "float32")
results = []
for row in rows:
    results.append(model.predict(row[None], verbose=0))
```

Fixed:

```python
import numpy as np
import keras

model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(4)])
rows = np.zeros((30, 16), "float32")
results = model.predict(rows, verbose=0)
```

## When it is silent
When the object is not known to be a Keras model (scikit-learn has a `predict` too); when the model changes in each
iteration (an ensemble, folds); in loops of at most ten iterations; in loops that wait for `input()`; behind `if step %
n == 0`; in loops that call `fit`, where predict runs once per epoch, unless it is for a single row; with a `batch_size`
of two or more, which indicates a large input; for a Dataset (KER002). It is info if the loop goes over data that may be
large batches, and in test files.

## Fix and its safety
Collect the rows and predict them in one call, or call `model(x, training=False)`, best in a `tf.function`. If rows
arrive one by one, use `model.predict_on_batch(x)`, which is what `--unsafe-fixes` writes: it returns the same arrays in
the same structure, prints no progress bar, and needs the whole input in memory at once. A direct call returns tensors,
and code that uses arrays (`out["a"].sum()`, `out[i] = 0`) then fails. There is no fix if the input is not known to be
arrays or tensors (lists of numbers, a DataFrame, a generator), nor with `steps` or `callbacks`.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.repeats import applied, called_in, handler, offered, rarely, waits
from stepscope.check.analyses.rows import adds_axis, single_row
from stepscope.check.context import Call, Context
from stepscope.check.hits import CheckSeverity, FixPlan, Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word

FEW = 10
"""Calls that are too few to matter."""
TRAINING = frozenset({"keras.Model.fit", "keras.Model.fit_generator"})
FITS = frozenset({"fit", "fit_generator", "train_on_batch"})
DROPPED = frozenset("batch_size verbose max_queue_size workers use_multiprocessing".split())
"""Arguments of ``predict`` that do not affect its result."""
BY_POSITION = ("batch_size", "verbose")
MAX_DEPTH = 4
"""Depth to which names and containers are followed to find what an input is."""
OF_ARRAYS = frozenset({"reshape", "astype"})
"""Methods that only arrays have."""
LARGE = 2
"""Batch size from which the input is more than a row."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a predict that runs repeatedly."""
    data = call.argument(0, "x")
    if data is None or call.receiver is None or ctx.traced(call.node) or ctx.tag(data) is Tag.DATASET:
        return
    row = single_row(ctx, data)
    size = call.argument(1, "batch_size")
    large = size is not None and (ctx.loops.integer(size) or LARGE) >= LARGE
    if large and not row:
        return
    model = ctx.text(call.receiver)
    rows = " for a single row" if row else ""
    loop = next((lp for lp in ctx.loops.around(call.node) if _repeats(ctx, call, data, lp, row=row)), None)
    if loop is not None:
        around = f"through {ctx.text(loop.via[-1][1].func)}" if loop.via else "in this loop"
        severity: CheckSeverity = "error" if row else "info" if _over_batches(ctx, data, loop) else "warning"
        yield ctx.hit(
            call.node,
            f"{model}.predict is called{rows} repeatedly {around}: each call costs milliseconds",
            severity="info" if in_test(ctx) else severity,
            confidence=0.95 if row else 0.8,
            also=[ctx.places.loop_span(loop)],
            fix=_fix(ctx, call, model),
        )
        return
    each = applied(ctx, call.node)
    if each is not None and not in_test(ctx):
        yield ctx.hit(
            call.node,
            f"{model}.predict is called{rows} for each element by {ctx.text(each.func)}: predict all in one call",
            severity="error" if row else "warning",
            confidence=0.85,
            also=[ctx.places.span(each)],
            fix=_fix(ctx, call, model),
        )
        return
    server = handler(ctx, call.node)
    if server is not None:
        yield ctx.hit(
            call.node,
            f"{model}.predict is called{rows} for each request of {server.name}: each call costs milliseconds",
            confidence=0.85 if row else 0.6,
            severity="warning" if row else "info",
            fix=_fix(ctx, call, model),
        )
    elif row and not in_test(ctx) and not ctx.loops.around(call.node) and offered(ctx, call.node):
        function = ctx.enclosing(call.node)
        name = function.name if function is not None else ""
        yield ctx.hit(
            call.node,
            f"{model}.predict is called for a single row: each call of {name} costs extra milliseconds",
            confidence=0.6,
            severity="info",
            fix=_fix(ctx, call, model),
        )


def _fix(ctx: Context, call: Call, model: str) -> FixPlan | None:
    """Use ``predict_on_batch``, which returns what ``predict`` does; a direct call would give tensors to code that uses
    arrays.
    """
    data, receiver = call.argument(0, "x"), call.receiver
    others = {k.arg for k in call.node.keywords} - {"x"}
    if data is None or receiver is None or not others <= DROPPED or len(call.node.args) > 1 + len(BY_POSITION):
        return None
    if call.opaque or not _arrays(ctx, data, 0):
        return None
    return ctx.fix(
        "replace-expression",
        f"Call {model}.predict_on_batch",
        call.node,
        receiver,
        data,
        safety="unsafe",
        behaviour="Results are the same arrays; no progress bar is printed, and the input is not split into batches.",
        value="$2.predict_on_batch($3)",
    )


def _arrays(ctx: Context, data: ast.expr, depth: int) -> bool:
    """Whether the input is arrays or tensors, also in a list or dict: all that ``predict_on_batch`` accepts."""
    if depth > MAX_DEPTH:
        return False
    if ctx.tag(data) in (Tag.NUMPY, Tag.TENSOR, Tag.VARIABLE):
        return True
    if isinstance(data, (ast.List, ast.Tuple)):
        return bool(data.elts) and all(_arrays(ctx, e, depth + 1) for e in data.elts)
    if isinstance(data, ast.Dict):
        return bool(data.values) and all(_arrays(ctx, e, depth + 1) for e in data.values)
    if isinstance(data, ast.Name):
        bindings = ctx.definitions(data)
        return bool(bindings) and all(
            b.kind == "assign" and b.value is not None and _arrays(ctx, b.value, depth + 1) for b in bindings
        )
    if isinstance(data, ast.Subscript):
        return adds_axis(data.slice)
    return isinstance(data, ast.Call) and last_word(data.func) in OF_ARRAYS


def _repeats(ctx: Context, call: Call, data: ast.expr, loop: Loop, *, row: bool) -> bool:
    """Whether one model predicts a different input in each iteration of a long loop that does not train it."""
    if (loop.iterations is not None and loop.iterations <= FEW) or rarely(ctx, call.node, loop):
        return False
    if waits(ctx, call.node, loop):
        return False
    if call.receiver is None or not _same_model(ctx, call.receiver, loop):
        return False
    if not loop.via:
        return ctx.loops.varies(data, loop) is not False and (row or not _trains(ctx, loop))
    return row or (_passed(ctx, data, loop) and not called_in(ctx, call.node, loop) & TRAINING)


def _over_batches(ctx: Context, data: ast.expr, loop: Loop) -> bool:
    """Whether the loop predicts elements of the data it goes over: they may be large batches, where a call costs
    little.
    """
    if loop.via or not isinstance(loop.node, ast.For) or any(_fits(part) for s in loop.body for part in ast.walk(s)):
        return False
    counts = isinstance(loop.node.iter, ast.Call) and last_word(loop.node.iter.func) in ("range", "arange", "trange")
    return not counts and ctx.loops.varies(data, loop) is True


def _passed(ctx: Context, data: ast.expr, loop: Loop) -> bool:
    """Whether the predicted value comes from an argument of the call in the loop and changes each time."""
    at = ctx.at(loop.module)
    called = loop.via[0][1]
    given = [*called.args, *(k.value for k in called.keywords)]
    names = [n for n in ast.walk(data) if isinstance(n, ast.Name)]
    parameters = any(b.kind == "param" and b.name != "self" for n in names for b in ctx.definitions(n))
    return parameters and any(at.loops.varies(g, loop.node) is True for g in given)


def _same_model(ctx: Context, receiver: ast.expr, loop: Loop) -> bool:
    """Whether the model is not one of several, and not made in the loop."""
    if not loop.via:
        made = ctx.definitions(receiver) if isinstance(receiver, ast.Name) else ()
        return ctx.loops.varies(receiver, loop) is not True and not any(ctx.loops.inside(b.node, loop) for b in made)
    at = ctx.at(loop.module)
    function = ctx.enclosing(receiver)
    if isinstance(receiver, ast.Name) and any(
        b.kind in ("assign", "unpack") and function is not None and b.scope.node is function.node
        for b in ctx.definitions(receiver)
    ):
        return False  # made again by each call
    given = [*loop.via[0][1].args, *(k.value for k in loop.via[0][1].keywords)]
    models = [g for g in given if at.tag(g) is Tag.MODEL]
    called = loop.via[0][1].func
    if isinstance(called, ast.Attribute):
        models.append(called.value)
    if any(isinstance(m, ast.Call) for m in models):
        return False  # made in place, by each iteration
    return function is not None and all(at.loops.varies(m, loop.node) is not True for m in models)


def _trains(ctx: Context, loop: Loop) -> bool:
    """Whether the loop's own body trains for an epoch or more: predict is then the smaller part of it."""
    at = ctx.at(loop.module)
    return any(_epoch(at, part, loop) for statement in loop.body for part in ast.walk(statement))


def _epoch(at: Context, part: ast.AST, loop: Loop) -> bool:
    """Whether a fit uses the same data each time or several epochs, not a single epoch on the loop's own element."""
    if not isinstance(part, ast.Call) or not _fits(part):
        return False
    if last_word(part.func) == "train_on_batch":
        return False
    call = at.call(part)
    data, epochs = call.argument(0, "x"), call.argument(3, "epochs")
    changes = data is not None and at.loops.varies(data, loop) is True
    return not (changes and (epochs is None or at.loops.integer(epochs) == 1))


def _fits(part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and last_word(part.func) in FITS


RULE = Rule(
    code="KER001",
    name="repeated-predict",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="prediction",
    exposed_stage="prediction",
    pipeline_stage="forward-backward",
    speedup=26.0,
    remedy="predict all rows in one call, or call model(x, training=False) in a tf.function",
    calls=frozenset({"keras.Model.predict"}),
    on_call=check,
    related=("HST003",),
)
