"""Processes that use TensorFlow are forked after the parent has started it.

## What it does
Reports `multiprocessing.Process`, `Pool` and `ProcessPoolExecutor` with the default start method, if their function
uses TensorFlow and the program has used TensorFlow before: a model, an op, a query of the GPUs.

## Why it is slow
A forked child inherits TensorFlow's memory but not its threads: its first op may wait forever for a lock or a thread
pool that does not exist there, and a GPU that the parent has opened either cannot be used or is opened again with
separate memory. Measured with TensorFlow 2.21 on the CPU: the children's first matrix product never ends; processes
forked before the parent computes anything need a second.

## Example
Slow:

```python
import multiprocessing
import tensorflow as tf

def square(n):
    return float(tf.square(tf.constant(n)))

if __name__ == "__main__":
    print(tf.config.list_physical_devices("GPU"), tf.reduce_sum(tf.ones([8])))
    with multiprocessing.Pool(4) as pool:
        pool.map(square, [1.0, 2.0, 3.0])
```

Fixed:

```python
import multiprocessing
import tensorflow as tf

def square(n):
    return float(tf.square(tf.constant(n)))

if __name__ == "__main__":
    print(tf.config.list_physical_devices("GPU"), tf.reduce_sum(tf.ones([8])))
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.map(square, [1.0, 2.0, 3.0])
```

## When it is silent
With `spawn` or `forkserver` anywhere in the file; when the children's function is not known to use TensorFlow (Pillow
and NumPy may be forked); when TensorFlow is not known to have been used before; for threads; in tests.

## Fix and its safety
Use `multiprocessing.get_context("spawn")`, or start the processes before TensorFlow is used. A spawned child imports
the program's module again: it needs `if __name__ == "__main__":`, and arguments that can be pickled.

## Versions
All. From Python 3.14 on, `forkserver` is the default on Linux.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word

OTHER_METHODS = frozenset({"get_context", "set_start_method", "get_start_method"})
RUNS = frozenset("map imap imap_unordered starmap apply apply_async map_async starmap_async submit".split())
USED = (Tag.TENSOR, Tag.MODEL, Tag.VARIABLE)
LOOKS = (
    "tensorflow.config.list_",
    "tensorflow.config.experimental.list_",
    "tensorflow.test.is_gpu",
    "tensorflow.Session",
)


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a pool or process whose function uses TensorFlow."""
    if in_test(ctx) or any(True for _ in ctx.calls(*OTHER_METHODS)):
        return
    if any(k.arg in ("mp_context", "context") for k in call.node.keywords):
        return
    function = _target(ctx, call)
    if function is None or not _uses(ctx.at(function.module), function):
        return
    before = _before(ctx, call.node)
    if before is None:
        return
    yield ctx.hit(
        call.node,
        f"{function.name} uses TensorFlow in processes that are forked after {ctx.text(before, 40)} has started it",
        confidence=0.85,
        also=[ctx.places.span(before)],
    )


def _target(ctx: Context, call: Call) -> Function | None:
    """The function that the children run."""
    given = call.argument(-1, "target") or call.argument(-1, "initializer")
    if given is not None:
        return ctx.function(given)
    if call.word == "Process":
        return None
    scope = ctx.enclosing(call.node)
    body: list[ast.AST] = list(scope.body) if scope is not None else list(ctx.module.tree.body)
    for part in (n for node in body for n in ast.walk(node)):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in RUNS and part.args:
            name = last_word(part.func.value).lower()
            if name and (name in ("p", "ex", "executor") or "pool" in name or "exec" in name):
                return ctx.function(part.args[0])
    return None


def _uses(ctx: Context, function: Function) -> bool:
    """Whether a function computes with TensorFlow, itself or in what it calls."""
    return any(
        at.tag(inner.node) in USED or inner.name.startswith(("keras.Model", "keras.models."))
        for at, inner in ctx.functions.calls_below(function.body)
    )


def _before(ctx: Context, node: ast.AST) -> ast.AST | None:
    """An earlier use of TensorFlow in this file, in the same function or at the top of the module."""
    own = ctx.enclosing(node)
    line = getattr(node, "lineno", 0)
    for calls in ctx.module.flow.calls.values():
        for call in calls:
            if call.lineno >= line:
                continue
            function = ctx.enclosing(call)
            if function is not None and (own is None or function.node is not own.node):
                continue
            name = ctx.name(call.func)
            if name.startswith(LOOKS) or (name.startswith(("tensorflow.", "keras.")) and ctx.tag(call) in USED):
                return call
    return None


RULE = Rule(
    code="DEV005",
    name="fork-after-framework",
    severity="error",
    symptom="Time: program hang",
    cause="Hardware: improper configuration",
    introduced_stage="initialization",
    exposed_stage="evaluation",
    pipeline_stage="none",
    speedup=3.0,
    remedy='use multiprocessing.get_context("spawn")',
    calls=frozenset(
        {
            "multiprocessing.Process",
            "multiprocessing.Pool",
            "multiprocessing.pool.Pool",
            "concurrent.futures.ProcessPoolExecutor",
            "concurrent.futures.process.ProcessPoolExecutor",
        }
    ),
    on_call=check,
    related=("HNG001",),
)
