"""A training step, or a model call per batch, runs op by op, because no tf.function contains it.

## What it does
Reports, in TensorFlow 2, code that a loop repeats outside any `tf.function`: a `tf.GradientTape` block, a model called
for each element of a Dataset, and a Python loop over `tf.range` that works on tensors.

## Why it is slow
Without a graph every op goes through Python: its arguments are converted, its kernel is looked up, its gradient is
recorded. Measured on the step of a small dense model: 11 times the CPU time of the same step in a `tf.function`, and up
to 21 times the wall time; a model call of three layers per batch: 3 times. The gain is smaller with large ops on a fast
device: authors of public projects report 5 and 7 times.

## Example
Slow:

```python
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()
data = tf.data.Dataset.from_tensor_slices((tf.zeros([960, 8]), tf.zeros([960, 1]))).batch(16)

def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

for x, y in data:
    train_step(x, y)
```

Fixed:

```python
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()
data = tf.data.Dataset.from_tensor_slices((tf.zeros([960, 8]), tf.zeros([960, 1]))).batch(16)

@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

for x, y in data:
    train_step(x, y)
```

## When it is silent
In a tf.function, in code that Keras or tf.data compiles, and in functions that only such code calls; when the function
has an unknown decorator or is passed to something else, which may compile it; when the block itself calls a tf.function
or a SavedModel; when the called model's own `call` is a tf.function; when the block, or a function that it calls, does
something that a graph cannot (`.numpy()`, NumPy on tensors, `zip` of tensors, an environment's `step`) and something
else depends on it: a value that is only printed or kept can be read after the step; when no loop
repeats it, or one of at most ten iterations; in tests; in methods of classes of another framework, and in functions
without an optimizer that nothing here calls, because their callers may compile them. It is info in a loop of at most a
hundred iterations without an optimizer, and in a notebook whose later cells make a tf.function: it shows the slow way
first.

## Fix and its safety
Put the step into its own function and decorate it with `@tf.function`. Print, append and other Python side effects then
happen only while tracing; variables must be made before; Python numbers that change should be passed as tensors.
A value that the block prints or keeps (`log.append(loss.numpy())`) is read after the step, from what it returns.
`--unsafe-fixes` decorates a step that is a function if all its actions are known and work in a graph: not if it prints,
appends, sets attributes, makes variables, branches with `if` or `try`, makes calls that cannot be followed, or receives
NumPy arrays, which a graph converts to tensors of their own type.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.graphable import fails, keeps_results, postponable
from stepscope.check.analyses.idioms import hot, in_test, iterated, makers, may_be_compiled, over_dataset, own_calls
from stepscope.check.analyses.repeats import offered
from stepscope.check.context import Context
from stepscope.check.hits import CheckSeverity, FixPlan, Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word

TAPE = "tensorflow.GradientTape"
SAVED = frozenset({"tensorflow.saved_model.load", "tensorflow.saved_model.load_v2", "tensorflow_hub.load"})
UPDATES = frozenset({"apply_gradients", "minimize", "apply"})
SHORT = 100
"""Iterations without an optimizer that suggest a demonstration or a search: tracing takes as long as they do."""
TENSORS = (Tag.TENSOR, Tag.VARIABLE)


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report a tape in a loop, a model called in a loop over a Dataset, or a loop over tf.range."""
    if isinstance(node, ast.With):
        if _is_tape(ctx, node):
            yield from _tape(ctx, node)
    elif isinstance(node, ast.For):
        if over_dataset(ctx, node):
            yield from _model(ctx, node)
        elif _over_range(ctx, node):
            yield from _range(ctx, node)


def _is_tape(ctx: Context, node: ast.With) -> bool:
    managers = [item.context_expr for item in node.items]
    return any(isinstance(m, ast.Call) and ctx.name(m.func) == TAPE for m in managers)


def _tape(ctx: Context, node: ast.With) -> Iterator[Hit]:
    """Report the block of a GradientTape."""
    loops = _eager_loops(ctx, node)
    if not loops or not _callable_in_graph(ctx, node.body):
        return
    later = postponable(ctx, node.body)
    if later is None:
        return
    function = ctx.enclosing(node)
    around = function.body if function is not None and loops[0].via else loops[0].body
    updates = any(isinstance(c.func, ast.Attribute) and c.func.attr in UPDATES for c in own_calls(ctx, around))
    if not updates and (loops[0].via or offered(ctx, node)):
        return  # a utility, which its callers may compile
    few = loops[0].iterations is not None and loops[0].iterations <= SHORT
    step = f"the step in {function.name}" if function is not None and loops[0].via else "the step of this loop"
    yield ctx.hit(
        node,
        f"{step} runs op by op: its GradientTape is not in a tf.function{_later_text(ctx, later)}",
        severity=_severity(ctx, node, urgent=updates and not later, few=few and not updates),
        confidence=0.9 if updates and not later else 0.75,
        also=[ctx.places.loop_span(loops[0])],
        fix=_decorate(ctx, node) if updates and loops[0].via else None,
    )


def _severity(ctx: Context, node: ast.With, *, urgent: bool, few: bool) -> CheckSeverity:
    """Level of a tape; info in a notebook whose later cells show the remedy: it teaches the slow way first."""
    if few or (ctx.enclosing(node) is None and _taught_later(ctx, node)):
        return "info"
    return "error" if urgent else "warning"


def _taught_later(ctx: Context, node: ast.With) -> bool:
    """Whether a later cell of the notebook makes a tf.function."""
    cells = ctx.module.source.cells
    cell, _ = cells.at(node.lineno)
    later = (made for made in makers(ctx) if cells.at(getattr(made, "lineno", 0))[0] > cell > 0)
    return any(_makes_graph(ctx, made) for made in later)


def _makes_graph(ctx: Context, made: ast.AST) -> bool:
    if isinstance(made, ast.FunctionDef):
        return ctx.functions.graph_decorator(ctx.engine.names.function(ctx.module, made)) is not None
    return isinstance(made, ast.Call) and ctx.name(made.func) == "tensorflow.function"


def _later_text(ctx: Context, reads: tuple[ast.AST, ...]) -> str:
    """What must move out of the step first; "" if nothing must."""
    if not reads:
        return ""
    return f"; {ctx.text(reads[0], 40)} can move behind the step"


def _decorate(ctx: Context, node: ast.With) -> FixPlan | None:
    """Decorate the step's own function, if it has one and may be decorated."""
    function = ctx.enclosing(node)
    if function is None or isinstance(function.node, ast.Lambda) or function.decorators:
        return None
    if not keeps_results(ctx, function):
        return None
    return ctx.fix(
        "add-decorator",
        f"Decorate {function.name} with @tf.function",
        function.node,
        safety="unsafe",
        behaviour="The same ops run in a graph, which may add floats in another order.",
        decorator="tensorflow.function",
    )


def _model(ctx: Context, loop: ast.For) -> Iterator[Hit]:
    """Report calls of a model for each element of a Dataset."""
    if _few(ctx, loop.iter) or ctx.traced(loop) or in_test(ctx) or may_be_compiled(ctx, loop):
        return
    seen: set[str] = set()
    for call in own_calls(ctx, loop.body):
        value = ctx.value(call.func)
        name = ctx.text(call.func)
        if value.tag is not Tag.MODEL or value.many or name in seen or _under_tape(ctx, call, loop):
            continue
        if ctx.traced(call) or _compiled_call(ctx, call):
            continue
        seen.add(name)
        source = ctx.text(iterated(loop.iter))
        yield ctx.hit(
            call,
            f"{name} runs op by op for each element of {source}: it is not in a tf.function",
            severity="warning",
            confidence=0.8,
        )


def _compiled_call(ctx: Context, call: ast.Call) -> bool:
    """Whether the called class has a ``call`` that is a tf.function: another one around it gains little."""
    methods = [f for f in ctx.functions.callees(call) if f.name in ("call", "__call__")]
    return bool(methods) and all(ctx.functions.graph_decorator(f) is not None for f in methods)


def _few(ctx: Context, source: ast.expr) -> bool:
    """Whether some chain that leads here takes a handful of elements."""
    source = iterated(source)
    chains = ctx.chains(source)
    return any({"take", "from_tensors"} & set(chain.names) for chain in chains)


def _under_tape(ctx: Context, node: ast.AST, stop: ast.AST) -> bool:
    """Whether a node is inside a GradientTape, which is reported itself."""
    parent = ctx.parent(node)
    while parent is not None and parent is not stop:
        if isinstance(parent, ast.With) and _is_tape(ctx, parent):
            return True
        parent = ctx.parent(parent)
    return False


def _over_range(ctx: Context, loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and ctx.name(loop.iter.func) == "tensorflow.range"


def _range(ctx: Context, loop: ast.For) -> Iterator[Hit]:
    """Report a loop over tf.range, written for AutoGraph: in eager code each iteration is Python and each index a
    tensor.
    """
    outer = ctx.loops.around(loop, calls=False)
    if any(isinstance(lp.node, ast.For) and _over_range(ctx, lp.node) for lp in outer):
        return  # the outer one is reported
    inner = [n for part in loop.body for n in ast.walk(part) if isinstance(n, ast.For) and _over_range(ctx, n)]
    work = [n for part in loop.body for n in ast.walk(part) if _indexes(ctx, n)]
    if not work or not (inner or _eager_loops(ctx, loop)) or not _compilable(ctx, loop.body):
        return
    if ctx.traced(loop) or in_test(ctx) or may_be_compiled(ctx, loop):
        return
    yield ctx.hit(
        loop,
        f"this loop over {ctx.text(loop.iter)} runs in Python, op by op: it is not in a tf.function",
        severity="error" if inner else "warning",
        confidence=0.85,
    )


def _indexes(ctx: Context, node: ast.AST) -> bool:
    """Whether a node reads or sets an element of a tensor."""
    return isinstance(node, ast.Subscript) and ctx.value(node.value).tag in TENSORS


def _eager_loops(ctx: Context, node: ast.AST) -> tuple[Loop, ...]:
    """The hot loops around eager code, except those separated from it by traced code."""
    if in_test(ctx) or ctx.traced(node) or may_be_compiled(ctx, node):
        return ()
    return tuple(
        loop
        for loop in hot(ctx.loops.around(node))
        if not loop.is_comprehension
        and not any(ctx.at(m).traced(c) or may_be_compiled(ctx.at(m), c) for m, c in loop.via)
    )


def _compilable(ctx: Context, body: list[ast.stmt]) -> bool:
    """Whether a body is not yet compiled and contains nothing that a graph cannot hold."""
    return _callable_in_graph(ctx, body) and not fails(ctx, body)


def _callable_in_graph(ctx: Context, body: list[ast.stmt]) -> bool:
    """Whether a body is not yet compiled, and calls no SavedModel and no environment."""
    calls = list(own_calls(ctx, body))
    tags = {ctx.tag(call.func) for call in calls}
    if Tag.FUNCTION in tags and not tags & {Tag.MODEL, Tag.LAYER}:
        return False
    for call in calls:
        word = last_word(call.func)
        if _loaded(ctx, call):
            return False
        if word == "step" and isinstance(call.func, ast.Attribute) and "env" in ctx.text(call.func.value).lower():
            return False
    return True


def _loaded(ctx: Context, call: ast.Call) -> bool:
    """Whether a call is of a SavedModel's function, which is already a graph."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    made = [b.value for b in ctx.definitions(owner) if b.kind == "assign"] if isinstance(owner, ast.Name) else []
    return any(isinstance(m, ast.Call) and ctx.name(m.func) in SAVED for m in made)


RULE = Rule(
    code="TFF005",
    name="eager-training-step",
    severity="error",
    symptom="Time: slow execution time",
    cause="API: not using efficient API",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=8.0,
    remedy="put the step into a function decorated with @tf.function",
    nodes=(ast.With, ast.For),
    on_node=check,
    since_version=(2, 0),
    related=("HST002",),
)
