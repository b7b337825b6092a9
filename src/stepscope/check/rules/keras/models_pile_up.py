"""Models are built or loaded in a loop, and nothing frees what the earlier ones left behind.

## What it does
Reports, as info, models made in a loop or in a function called from one (hyper-parameter search, folds, one model per
file), if the loop uses no `clear_session`, no separate graph and no separate process. A loop is reported once, however
many models it may make.

## Why it is slow
Keras keeps global state: names and, in graph mode, one graph to which every model is added. With TensorFlow 1 and early
versions of 2, memory and time grow with each model. Measured on TensorFlow 2.21 with Keras 3 and twelve small models:
no growth, so this is info. The resident memory of a run shows whether it costs anything.

## Example
Slow:

```python
import keras

def build(units):
    return keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(units), keras.layers.Dense(1)])

for trial in range(100):
    model = build(8 + trial)
    model.compile("adam", "mse")
```

Fixed:

```python
import keras

def build(units):
    return keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(units), keras.layers.Dense(1)])

for trial in range(100):
    keras.backend.clear_session()
    model = build(8 + trial)
    model.compile("adam", "mse")
```

## When it is silent
In loops of at most three iterations; when the models, or objects that hold them, are kept (an ensemble in a list or
dict); when they are layers of one larger model, which `clear_session` would break; when something in the loop clears
the session, makes a graph or starts a process; in tests.

## Fix and its safety
Call `keras.backend.clear_session()` before each model is built, and drop references to the old one. This invalidates
every model still in use, including those of other parts of the program.

## Versions
All; it matters most before TensorFlow 2.16.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.repeats import cached, called_in, loop_parts, optional, rarely
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

MAX_LEVELS = 3
"""Calls, and names, between a loop and the model that it makes."""
FEW = 3
"""Models that are too few to matter."""
MAKES = frozenset({"keras.Model", "keras.Sequential", "keras.models.load_model", "keras.models.clone_model"})
CLEARS = frozenset({"clear_session", "reset_default_graph", "Graph", "Process", "reset_uids"})
USES = frozenset({"fit", "fit_generator", "train_on_batch", "compile", "predict", "evaluate", "GradientTape"})
"""Methods that use a model by itself."""
KEEPS = frozenset({"append", "add", "insert", "setdefault", "extend"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a call that makes a model in a loop."""
    if in_test(ctx) or ctx.tag(call.node) is not Tag.MODEL or optional(ctx.module, call.node):
        return
    function = ctx.enclosing(call.node)
    if function is not None and (cached(function) or not _first(ctx, call, function.node)):
        return
    for loop in ctx.loops.around(call.node):
        if loop.is_comprehension or (loop.iterations is not None and loop.iterations <= FEW):
            continue
        if rarely(ctx, call.node, loop) or _keeps(ctx, call, loop):
            continue
        called = {name.rpartition(".")[2] for name in called_in(ctx, call.node, loop)}
        if called & CLEARS or (not called & USES and _is_layer(ctx, call, loop)) or not _leads(ctx, call, loop):
            continue
        around = f" through {ctx.text(loop.via[0][1].func)}" if loop.via else ""
        yield ctx.hit(
            call.node,
            f"{ctx.text(call.node.func)} makes a model in each iteration{around}, and nothing frees the old ones",
            confidence=0.7,
            also=[ctx.places.loop_span(loop)],
        )
        return


def _first(ctx: Context, call: Call, function: ast.AST) -> bool:
    """Whether this is the first model its function makes; the others pile up with it."""
    makers = (c for c in ctx.calls("Model", "Sequential", "load_model", "clone_model") if c.name in MAKES)
    here = [c.node for c in makers if (f := ctx.enclosing(c.node)) is not None and f.node is function]
    return min(here, key=lambda node: (node.lineno, node.col_offset), default=call.node) is call.node


def _leads(ctx: Context, call: Call, loop: Loop) -> bool:
    """Whether a call is the first of those by which a loop makes models: it stands for all of them."""
    made = ctx.at(loop.module).functions.calls_below(loop.body, MAX_LEVELS)
    first = next((c.node for at, c in made if c.name in MAKES and not optional(at.module, c.node)), call.node)
    return first is call.node


def _made(at: Context, expr: ast.AST | None, call: ast.Call, levels: int = MAX_LEVELS) -> bool:
    """Whether an expression gives what a call made, also through names and functions that were given it."""
    if expr is call:
        return True
    if isinstance(expr, ast.Name) and levels:
        return any(_made(at, b.value, call, levels - 1) for b in at.definitions(expr))
    if isinstance(expr, ast.Call):
        return any(_made(at, part, call, levels) for part in (expr.func, *expr.args))
    if isinstance(expr, (ast.Tuple, ast.List)):
        return any(_made(at, part, call, levels) for part in expr.elts)
    return False


def _maker(call: Call, loop: Loop) -> ast.Call:
    """The call of the loop's own body by which a model is made in it."""
    return loop.via[0][1] if loop.via else call.node


def _is_layer(ctx: Context, call: Call, loop: Loop) -> bool:
    """Whether the loop calls what it makes, ``y = block(8)(y)``, or adds it to a model: parts of one model."""
    at, maker = ctx.at(loop.module), _maker(call, loop)
    calls = (node for node in walk(loop.body) if isinstance(node, ast.Call))
    return any(node is not maker and _made(at, node.func, maker) for node in calls)


def _keeps(ctx: Context, call: Call, loop: Loop) -> bool:
    """Whether the loop puts the model, or what holds it, into a container: the models are all needed at once."""
    at, maker = ctx.at(loop.module), _maker(call, loop)
    for _, part in ((c, p) for c, p in loop_parts(ctx, call.node, loop) if c.module is loop.module):
        for node in walk([part]):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPS:
                kept = node.args
            elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Subscript) for t in node.targets):
                kept = [node.value]
            else:
                continue
            if any(_holds_model(at, expr) or _made(at, expr, maker) for expr in kept):
                return True
    return False


def _holds_model(at: Context, expr: ast.expr) -> bool:
    return any(isinstance(n, ast.expr) and at.value(n).tag is Tag.MODEL for n in _outer(expr))


def _outer(expr: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression and the elements of tuples and dicts, but not arguments of calls."""
    yield expr
    if isinstance(expr, (ast.Tuple, ast.List)):
        for element in expr.elts:
            yield from _outer(element)
    elif isinstance(expr, ast.Dict):
        for value in expr.values:
            yield from _outer(value)


RULE = Rule(
    code="KER004",
    name="models-pile-up",
    severity="info",
    symptom="Memory: out of memory",
    cause="API: inefficient API usage",
    introduced_stage="hyper parameter tuning",
    exposed_stage="training",
    pipeline_stage="none",
    speedup=1.0,
    remedy="call keras.backend.clear_session() before each model is built",
    calls=MAKES,
    on_call=check,
    related=("MEM001", "MEM004", "TRD001"),
)
