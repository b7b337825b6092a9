"""A loop calls a tf.function with a newly made object, and each object is traced.

## What it does
Reports a lambda, a function defined in the loop, a `functools.partial` or a new instance of a plain project class as an
argument of a `tf.function` that a loop calls.

## Why it is slow
Objects that are not tensors are compared by identity: each new one makes a new graph, even if it behaves like the last
one. Measured: ten traces in ten calls for new lambdas, new objects and dictionaries of Python values; for 40 calls of a
small step 2.5 times the CPU time, including the first trace.

## Example
Slow:

```python
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)

@tf.function
def apply(x, activation):
    return tf.reduce_sum(activation(x))

for x in data:
    apply(x, lambda value: tf.nn.relu(value))
```

Fixed:

```python
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)

@tf.function
def apply(x, activation):
    return tf.reduce_sum(activation(x))

for x in data:
    apply(x, tf.nn.relu)
```

## When it is silent
For objects made before the loop; for tensors, arrays, named tuples, dataclasses and `tf.experimental` extension types,
which are compared by content; in loops of at most ten iterations; from traced code; in tests.

## Fix and its safety
Make the object once before the loop, or pass the differing values as tensors. The fix does the first for a lambda,
partial or object written as the argument that needs nothing bound by the loop: unsafe, because the function is then
traced only once, and whatever else the object reads keeps its value from that trace. There is no fix if each trace
prints or appends.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses import hoisting
from stepscope.check.analyses.graphable import acts
from stepscope.check.analyses.idioms import function_options, hot, in_test, of_graph
from stepscope.check.analyses.kept_values import keeps, keeps_made
from stepscope.check.analyses.pure import same
from stepscope.check.context import Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Class
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word

BEHAVIOUR = "It is traced once: anything it reads other than its arguments keeps its value from that trace."


def check(ctx: Context) -> Iterator[Hit]:
    """Report every call of a tf.function in a loop with a new object."""
    if in_test(ctx):
        return
    for call in ctx.module.flow.looped:
        loops = hot(ctx.loops.around(call, calls=False)) if call.args or call.keywords else ()
        if not loops or not of_graph(ctx, call) or "input_signature" in (function_options(ctx, call.func) or {}):
            continue
        for argument in [*call.args, *(k.value for k in call.keywords)]:
            what = _new(ctx, argument, loops[0])
            if what:
                yield ctx.hit(
                    argument,
                    f"{ctx.text(call.func)} is traced again for each {what}: objects are compared by identity",
                    confidence=0.9,
                    also=[ctx.places.loop_span(loops[0])],
                    fix=None if _acts(ctx, call) else _once(ctx, argument, what, loops[0]),
                )


def _acts(ctx: Context, call: ast.Call) -> bool:
    """Whether each trace of the called function has a visible effect, or its code is unknown."""
    function = ctx.function(call.func)
    return function is None or acts(ctx.at(function.module), function.body)


def _once(ctx: Context, argument: ast.expr, what: str, loop: Loop) -> FixPlan | None:
    """Move a lambda, partial or object written in place before the loop, if everything it is made of stays the same."""
    if isinstance(argument, ast.Call):
        given = [*argument.args, *(k.value for k in argument.keywords)]
        if not all(keeps_made(ctx, one) if ctx.function(one) is not None else same(ctx, one, loop) for one in given):
            return None
    elif not isinstance(argument, ast.Lambda) or not keeps(ctx, argument):
        return None
    return hoisting.expression(ctx, argument, loop, what.rpartition(" ")[2].lower() + "_once", behaviour=BEHAVIOUR)


def _new(ctx: Context, expr: ast.expr, loop: Loop) -> str:
    """The object that an iteration makes; "" for anything else."""
    if isinstance(expr, ast.Lambda):
        return "new lambda"
    if isinstance(expr, ast.Call):
        if ctx.name(expr.func) == "functools.partial":
            return "new partial"
        classes = [t for t in ctx.things(expr.func) if isinstance(t, Class)]
        return f"new {last_word(expr.func)}" if len(classes) == 1 and _by_identity(classes[0]) else ""
    if isinstance(expr, ast.Name):
        made = ctx.definitions(expr)
        if len(made) != 1 or not ctx.loops.inside(made[0].node, loop):
            return ""
        if made[0].kind == "def":
            return f"new {expr.id}, which the loop defines"
        if made[0].kind == "assign" and isinstance(made[0].value, (ast.Lambda, ast.Call)):
            return _new(ctx, made[0].value, loop)
    return ""


def _by_identity(cls: Class) -> bool:
    """Whether a class is plain: no base but object, no decorator, no __eq__ or tracing protocol."""
    node = cls.scope.node
    if not isinstance(node, ast.ClassDef) or node.decorator_list or node.keywords:
        return False
    own = {"__eq__", "__hash__", "__tf_tracing_type__", "__array__", "__tf_flatten__"} & set(cls.scope.functions)
    return not own and all(last_word(base) == "object" for base in node.bases)


RULE = Rule(
    code="TFF011",
    name="new-object-argument",
    severity="error",
    symptom="Time: slow execution time",
    cause="Model: confusion with computation model",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=2.5,
    remedy="make the object once, before the loop",
    on_file=check,
    since_version=(2, 0),
    related=("GRF001",),
)
