"""A tf.function is only called from inside another one, and makes nested graphs without benefit.

## What it does
Reports, as info, functions decorated with `tf.function` whose known calls are all in traced code, if an argument is a
Python number of a loop or the function is made while the outer one is traced.

## Why it is slow
Inside a graph the decorator gains nothing: the code would be traced in place. With it each combination of Python
arguments becomes a separate graph within the outer one, which is traced, stored and inlined again. The cost is limited
to tracing: measured with 32 nested graphs, 1.4 times the time of the first call, nothing after it.

## Example
Slow:

```python
import tensorflow as tf

@tf.function
def moment(x, k):
    return tf.reduce_mean(tf.pow(x, k))

@tf.function
def moments(x):
    total = 0.0
    for k in range(2, 10):
        total += moment(x, k)
    return total

moments(tf.zeros([8]))
```

Fixed:

```python
import tensorflow as tf

def moment(x, k):
    return tf.reduce_mean(tf.pow(x, k))

@tf.function
def moments(x):
    total = 0.0
    for k in range(2, 10):
        total += moment(x, k)
    return total

moments(tf.zeros([8]))
```

## When it is silent
When it may have other callers: it is called from code that is not traced, is passed on, or nothing in the project calls
it; when its options differ (`jit_compile`, an `input_signature`); in tests.

## Fix and its safety
Remove the inner decorator. The ops stay the same, and `--fix` does it if the function returns tensors (a returned
number is a tensor only with the decorator) and has no effects while it is traced; its own `jit_compile` or
`reduce_retracing` would be lost.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.graphable import acts, returns_tensors
from stepscope.check.analyses.idioms import in_test
from stepscope.check.context import Context
from stepscope.check.hits import Hit
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.modules import Module


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report a decorated function whose callers are all traced."""
    if not isinstance(node, ast.FunctionDef) or not node.decorator_list or in_test(ctx):
        return
    function = ctx.engine.names.function(ctx.module, node)
    decorator = ctx.functions.graph_decorator(function)
    if decorator is None or isinstance(decorator, ast.Call):
        return
    callers = ctx.functions.callers(function)
    if not callers or not all(ctx.at(m).traced(c) and ctx.at(m).enclosing(c) is not None for m, c in callers):
        return
    if any(_inside(ctx, function, module, call) for module, call in callers):
        return
    outer = ctx.enclosing(node)
    nested = outer is not None and ctx.traced(node)
    number = next((text for m, c in callers if (text := _number(ctx.at(m), c))), "")
    if not nested and not number:
        return
    why = (
        f"one more graph for each value of {number}"
        if number
        else f"made again when {outer.name if outer else ''} is traced"
    )
    yield ctx.hit(
        node,
        f"{node.name} is only called by traced code, which needs no tf.function: {why}",
        confidence=0.8,
        fix=ctx.fix(
            "remove-decorator",
            "Remove the decorator",
            decorator,
            safety="safe",
            behaviour="The same ops, in the graph of the caller.",
        )
        if returns_tensors(ctx, function) and not acts(ctx, function.body)
        else None,
    )


def _inside(ctx: Context, function: Function, module: Module, call: ast.Call) -> bool:
    """Whether a call is inside the function itself."""
    outer = ctx.at(module).enclosing(call)
    return outer is not None and outer.node is function.node


def _number(ctx: Context, call: ast.Call) -> str:
    """A Python number of a loop that is unrolled around the call."""
    for argument in [*call.args, *(k.value for k in call.keywords)]:
        if ctx.tag(argument) is not Tag.PY_SCALAR:
            continue
        if any(ctx.loops.varies(argument, loop) is True for loop in ctx.loops.around(call, calls=False)):
            return ctx.text(argument)
    return ""


RULE = Rule(
    code="TFF012",
    name="redundant-function",
    severity="info",
    symptom="Time: slow initialization time",
    cause="Model: confusion with computation model",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=1.4,
    remedy="remove the inner decorator",
    nodes=(ast.FunctionDef,),
    on_node=check,
    since_version=(2, 0),
    related=("GRF001",),
)
