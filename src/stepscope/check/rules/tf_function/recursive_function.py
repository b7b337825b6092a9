"""A tf.function calls itself and is traced for each depth.

## What it does
Reports a `tf.function` whose body calls the same function, directly or through functions of the project.

## Why it is slow
A graph cannot recurse: each level must be another graph, which works only if a Python argument counts the depth; with a
tensor, tracing does not end until Python's recursion limit stops it. Measured with a product over 40 levels: twice the
CPU time of the loop until its first result.

## Example
Slow:

```python
import tensorflow as tf

@tf.function
def power(x, n):
    if n == 0:
        return tf.ones_like(x)
    return x * power(x, n - 1)

power(tf.constant(1.01), 40)
```

Fixed:

```python
import tensorflow as tf

@tf.function
def power(x, n):
    result = tf.ones_like(x)
    for _ in tf.range(n):
        result = result * x
    return result

power(tf.constant(1.01), tf.constant(40))
```

## When it is silent
For methods of the same name on another object (`super().call`, `child.evaluate`), and when the call is not known to
reach the same function.

## Fix and its safety
Write a loop over `tf.range`, or move the decorator from the recursive function to the outermost call: the recursion
then happens once, while tracing. Not done automatically.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.context import Context
from stepscope.check.hits import Hit
from stepscope.check.rule import Rule


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report a decorated function that reaches itself."""
    if not isinstance(node, ast.FunctionDef):
        return
    function = ctx.engine.names.function(ctx.module, node)
    if not node.decorator_list or ctx.functions.graph_decorator(function) is None or in_test(ctx):
        return
    own_self = function.parameters[0].arg if function.cls is not None and function.parameters else ""
    for at, call in ctx.functions.calls_below(function.body):
        if not any(callee.node is node for callee in at.functions.callees(call.node)):
            continue
        receiver = call.receiver
        if function.cls is not None and not (isinstance(receiver, ast.Name) and receiver.id == own_self):
            continue  # another object's method
        place = call.node if at.module is ctx.module else node
        yield ctx.hit(place, f"{node.name} calls itself inside a tf.function: each level is a separate graph")
        return


RULE = Rule(
    code="TFF008",
    name="recursive-function",
    severity="warning",
    symptom="Time: slow initialization time",
    cause="Model: confusion with computation model",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=2.2,
    remedy="write a loop over tf.range",
    nodes=(ast.FunctionDef,),
    on_node=check,
    since_version=(2, 0),
    related=("GRF001",),
)
