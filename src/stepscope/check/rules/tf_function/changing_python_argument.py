"""A loop calls a tf.function with a Python number or string that changes, and each value is traced.

## What it does
Reports calls of a `tf.function` in a loop, from code that is not itself traced, if an argument is a Python number or
string, or a tuple or list of them, and changes in each iteration.

## Why it is slow
A Python value is part of a tf.function's signature: each new value makes a new graph, which costs from ten milliseconds
to many seconds, and memory that is not released. Tensors and NumPy values are not part of it: one graph serves all.
Measured with 60 steps of a small model: 62 times the CPU time.

## Example
Slow:

```python
import tensorflow as tf

@tf.function
def train_step(x, step):
    return tf.reduce_sum(x) * tf.cast(step, tf.float32)

batches = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)
for step, x in enumerate(batches):
    train_step(x, step)
```

Fixed:

```python
import tensorflow as tf

@tf.function
def train_step(x, step):
    return tf.reduce_sum(x) * tf.cast(step, tf.float32)

batches = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)
for step, x in enumerate(batches):
    train_step(x, tf.constant(step))
```

## When it is silent
For bools (two graphs at most), `i % 4`, NumPy values, tensors, values that do not change in the loop, loops of at most
five iterations, functions with an `input_signature` (which turns Python numbers into tensors), calls from inside
another tf.function (traced once), and arguments of unknown type.

## Fix and its safety
Pass `tf.constant(step)`, or keep the value in a `tf.Variable`. A Python number takes the type of its operand, a tensor
does not: together with float32 it must be `tf.constant(step, dtype=tf.float32)`. `--unsafe-fixes` writes that if the
function is visible and either the operand's type is written in the source or the number is only used in `tf.cast`. It
does not if the function needs a Python value: as a shape, in `range`, or to choose a Python branch; then trace once per
value deliberately, or make the branch a `tf.cond`. Nor does it if tracing has an effect for each value, such as
`print`.

## Versions
All with `tf.function`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.dtypes import dtype
from stepscope.check.analyses.graphable import computed, parameter_of, traced_once
from stepscope.check.context import Call, Context
from stepscope.check.hits import CheckSeverity, FixPlan, Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag, Value
from stepscope.check.rule import Rule

FEW = 5
"""Traces that a program may intend."""
MANY = 50
"""Traces from which it is an error, even in a loop of epochs."""
ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
PAIRING = frozenset(
    f"tensorflow.{op}"
    for op in (
        "add",
        "subtract",
        "multiply",
        "pow",
        "maximum",
        "minimum",
        "greater",
        "less",
        "math.add",
        "math.multiply",
    )
)
"""Ops that give a number the type of the other operand."""
PAIR = 2
WORDS = {Tag.PY_SCALAR: "Python number", Tag.PY_STRING: "Python string"}


def check(ctx: Context) -> Iterator[Hit]:
    """Report all calls of a tf.function in a loop."""
    for node in ctx.module.flow.looped:
        if (node.args or node.keywords) and ctx.engine.tracing.of_graph(ctx.module, node):
            yield from _call(ctx, Call(node, ctx.name(node.func)))


def _call(ctx: Context, call: Call) -> Iterator[Hit]:
    loops = ctx.loops.around(call.node, calls=False)
    function = ctx.function(call.node.func)
    if not loops or ctx.traced(call.node) or _signature(ctx, call, function):
        return
    for argument in (*call.node.args, *(k.value for k in call.node.keywords if k.arg)):
        value = ctx.value(argument)
        tag = _python(value)
        loop = next((lp for lp in loops if ctx.loops.varies(argument, lp) is True), None)
        if tag is None or loop is None or _bounded(argument) or (loop.iterations or MANY) <= FEW:
            continue
        callee = ctx.text(call.node.func)
        word = WORDS[tag] if not (value.many or value.parts) else f"tuple or list with a {WORDS[tag]}"
        yield ctx.hit(
            argument,
            f"{callee} is traced again for each value of {ctx.text(argument)}, a {word} that changes in the loop",
            severity=_severity(loop, loops),
            confidence=0.9,
            also=[ctx.places.loop_span(loop)],
            fix=_constant(ctx, call, argument) if tag is Tag.PY_SCALAR and not value.many else None,
        )


def _constant(ctx: Context, call: Call, argument: ast.expr) -> FixPlan | None:
    """Replace the number by a tensor of the type it takes in the function; no fix if that is unknown."""
    function = ctx.function(call.node.func)
    if function is None or call.opaque or not traced_once(ctx, function):
        return None
    need = _needed(ctx.at(function.module), function, parameter_of(call.node, function, argument))
    if need is None:
        return None
    behaviour = "The function is traced once, and computes with a tensor of the type that the number took."
    title = f"Pass tf.constant({ctx.text(argument)})"
    if not need:
        return ctx.fix(
            "wrap-call", title, argument, safety="unsafe", behaviour=behaviour, wrapper="tensorflow.constant"
        )
    return ctx.fix(
        "replace-expression",
        f"{title[:-1]}, dtype=tf.{need})",
        argument,
        safety="unsafe",
        behaviour=behaviour,
        value=f"tensorflow.constant($1, dtype=tensorflow.{need})",
    )


def _needed(ctx: Context, function: Function, name: str) -> str | None:
    """Type that a parameter's number takes wherever the function uses it; "" for any, None if unknown or several.

    A use other than arithmetic with a tensor or a cast may need a Python value.
    """
    if not name or len(function.scope.bindings.get(name, ())) != 1:
        return None
    uses = [n for part in function.body for n in ast.walk(part) if isinstance(n, ast.Name) and n.id == name]
    found = {_met(ctx, use) for use in uses}
    return found.pop() if len(found) == 1 else None


def _met(ctx: Context, use: ast.Name) -> str | None:
    """The type that a number takes in one place."""
    parent = ctx.parent(use)
    if isinstance(parent, ast.BinOp):
        other = parent.right if parent.left is use else parent.left
    elif isinstance(parent, ast.Compare) and len(parent.comparators) == 1 and isinstance(parent.ops[0], ORDER):
        other = parent.comparators[0] if parent.left is use else parent.left
    elif isinstance(parent, ast.Call):
        op = ctx.name(parent.func)
        if op == "tensorflow.cast":
            return "" if parent.args[:1] == [use] else None
        if op not in PAIRING or len(parent.args) != PAIR or parent.keywords:
            return None
        other = parent.args[1] if parent.args[0] is use else parent.args[0]
    else:
        return None
    tensor = ctx.value(other).tag in (Tag.TENSOR, Tag.VARIABLE) or computed(ctx, other)
    return (dtype(ctx, other) or None) if tensor else None


def _python(value: Value) -> Tag | None:
    """The tag of a Python value that is part of a signature; None for anything else."""
    if value.parts:
        return next((t for t in (_python(p) for p in value.parts) if t is not None), None)
    return value.tag if value.tag in WORDS else None


def _bounded(argument: ast.expr) -> bool:
    """Whether an argument takes few values: a remainder, a comparison."""
    return isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Mod)


def _signature(ctx: Context, call: Call, function: Function | None) -> bool:
    """Whether the tf.function was made with an input signature, or may have been."""
    made: list[ast.expr] = []
    if function is not None and (decorator := ctx.at(function.module).functions.graph_decorator(function)) is not None:
        made.append(decorator)
    elif isinstance(call.node.func, ast.Name):
        made += [b.value for b in ctx.definitions(call.node.func) if b.value is not None]
    return any(k.arg in ("input_signature", None) for m in made if isinstance(m, ast.Call) for k in m.keywords)


def _severity(loop: Loop, loops: tuple[Loop, ...]) -> CheckSeverity:
    """Error for a trace per step; warning for a trace per epoch with a loop of steps inside, a matter of seconds."""
    outer = loops.index(loop) > 0
    if loop.iterations is not None and loop.iterations < MANY:
        return "info" if outer else "warning"
    return "warning" if outer else "error"


RULE = Rule(
    code="TFF001",
    name="changing-python-argument",
    severity="error",
    symptom="Time: slow execution time",
    cause="Model: confusion with computation model",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=6.3,
    remedy="pass a tensor: tf.constant(value)",
    on_file=check,
    related=("GRF001",),
)
