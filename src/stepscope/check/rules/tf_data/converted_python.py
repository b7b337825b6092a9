"""Python of a map is written inside of the map's function, where AutoGraph converts it.

## What it does
Reports `tf.py_function` and `tf.numpy_function` in the function of a tf.data stage whose own function has a loop and is
written inside of the function that calls them.

## Why it is slow
tf.data converts the function of a stage by AutoGraph, and with its source all functions that are written in it. The
inner one is then called by `tf.numpy_function` as converted: each of its calls and each turn of its loops goes through
AutoGraph's Python. Nothing warns of it, and `@tf.autograph.experimental.do_not_convert` on the inner function does not
help: its source is converted with the outer one's.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf

def load(row):
    def lengths(row):
        out = np.zeros(40, np.float32)
        for k, word in enumerate(row.decode().split()):
            out[k] = len(word)
        return out
    return tf.numpy_function(lengths, [row], tf.float32)

batches = tf.data.TextLineDataset("rows.txt").map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(32)
```

Fixed:

```python
import numpy as np
import tensorflow as tf

def lengths(row):
    out = np.zeros(40, np.float32)
    for k, word in enumerate(row.decode().split()):
        out[k] = len(word)
    return out

def load(row):
    return tf.numpy_function(lengths, [row], tf.float32)

batches = tf.data.TextLineDataset("rows.txt").map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(32)
```

## When it is silent
When the inner function has no loop (a single call costs little either way), when it is written at the module's level,
in a class or in a function around the stage, or when the outer function is marked `do_not_convert`.

## Fix and its safety
Move the inner function out of the outer one; what it uses of the outer one becomes an argument. Results are the same.
Not done automatically.

## Versions
All. Measured with TensorFlow 2.21.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.names import Function
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

STAGES = frozenset(f"tensorflow.data.Dataset.{name}" for name in ("map", "interleave", "flat_map", "filter"))
LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
MARK = "do_not_convert"


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a stage whose function has Python of this kind written in it."""
    given = call.argument(0, "predicate" if call.word == "filter" else "map_func")
    function = ctx.function(given) if given is not None else None
    if function is None or _is_marked(ctx.at(function.module), function):
        return
    for effect in ctx.functions.effects(function):
        if effect.kind != "python" or not isinstance(effect.node, ast.Call):
            continue
        at = ctx.at(effect.module)
        inner, outer = _written_in(at, effect.node)
        if inner is None or outer is None or _is_marked(at, outer):
            continue
        local = effect.module is ctx.module
        short = effect.name.replace("tensorflow.", "tf.")
        what = "a lambda" if inner.name == "<lambda>" else inner.name
        yield ctx.hit(
            effect.node if local else call.node,
            f"{short} runs {what}, which is written inside of {outer.name}: AutoGraph converts it, with its loops",
            confidence=0.9,
            also=[ctx.places.span(call.node) if local else at.places.span(effect.node)],
        )


def _written_in(ctx: Context, call: ast.Call) -> tuple[Function | None, Function | None]:
    """The function that a call runs as Python, and the one that makes the call, if the first is written in it and has a
    loop; else None.
    """
    given = Call(call, "").argument(0, "func")
    inner = ctx.function(given) if given is not None else None
    outer = ctx.enclosing(call)
    if inner is None or outer is None or inner.module is not outer.module:
        return None, None
    around = ctx.enclosing(inner.node)
    looped = any(isinstance(node, LOOPS) for node in walk(inner.body))
    return (inner, outer) if looped and around is not None and around.node is outer.node else (None, None)


def _is_marked(ctx: Context, function: Function) -> bool:
    return any(name.endswith(MARK) for decorator in function.decorators for name in ctx.names(decorator))


RULE = Rule(
    code="TFD023",
    name="converted-python",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    speedup=3.1,
    remedy="write the inner function at the module's level",
    calls=STAGES,
    on_call=check,
    related=("INP002",),
)
