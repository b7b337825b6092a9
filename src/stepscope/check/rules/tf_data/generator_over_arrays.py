"""A Python generator yields the rows of arrays that are already in memory.

## What it does
Reports `Dataset.from_generator` if its generator only loops over NumPy arrays and yields their rows one by one.

## Why it is slow
Each element runs Python code, holds the interpreter lock, and is converted and checked against the signature: some
hundred microseconds, in one thread. Slicing an array costs a few. Measured with rows of 64 numbers and batches of 256:
21 times the CPU time of `from_tensor_slices`.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf

x, y = np.load("x.npy"), np.load("y.npy")

def rows():
    for i in range(len(x)):
        yield x[i], y[i]

batches = tf.data.Dataset.from_generator(rows, output_types=(tf.float32, tf.int64)).batch(256)
```

Fixed:

```python
import numpy as np
import tensorflow as tf

x, y = np.load("x.npy"), np.load("y.npy")
batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(256)
```

## When it is silent
When the generator does anything else (unknown calls, conditions, slices of several rows); when what it yields is not
known to be an array; when rows differ in length (shapes with None, `padded_batch`, buckets); when a later `map` reads
files, which costs much more.

## Fix and its safety
Use `from_tensor_slices((x, y))`, with `shuffle` and `repeat` in place of permutations and endless loops. It copies the
arrays once, as a constant; arrays of more than two gigabytes do not fit inside a `tf.function` or a graph of version 1.
Not done automatically.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.context import Call, Context
from stepscope.check.costs import PYTHON, READS
from stepscope.check.hits import Hit
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

PLAIN = frozenset("range len enumerate zip int float iter".split())
"""Builtins that a generator over rows may call."""
NUMPY = ("numpy.random.", "random.", "numpy.arange", "numpy.float", "numpy.int", "numpy.expand_dims", "numpy.array",
         "numpy.asarray", "numpy.reshape")  # fmt: skip
METHODS = frozenset("astype reshape permutation shuffle".split())
ALLOWED = (
    ast.For, ast.While, ast.Expr, ast.Assign, ast.AugAssign, ast.Pass, ast.Return,
)  # fmt: skip
VARYING = frozenset({"padded_batch", "bucket_by_sequence_length", "ragged_batch", "group_by_window"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a from_generator that only yields rows."""
    given = call.argument(0, "generator")
    if given is None or call.opaque or _shapes_vary(call):
        return
    if isinstance(given, ast.Lambda) and isinstance(given.body, (ast.Call, ast.GeneratorExp)):
        arrays = _rows_of_lambda(ctx, given.body)
    else:
        function = ctx.function(given)
        arrays = _rows(ctx.at(function.module), function) if function is not None else ""
    if not arrays or _later(ctx, call):
        return
    yield ctx.hit(
        call.node,
        f"from_generator yields the rows of {arrays} one by one in Python; from_tensor_slices needs no Python",
        confidence=0.85,
    )


def _shapes_vary(call: Call) -> bool:
    """Whether a given shape contains None."""
    return any(
        isinstance(part, ast.Constant) and part.value is None
        for keyword in call.node.keywords
        if keyword.arg in ("output_shapes", "output_signature")
        for part in ast.walk(keyword.value)
    )


def _later(ctx: Context, call: Call) -> bool:
    """Whether a later stage pads or reads files."""
    for word in ("map", *VARYING):
        for other in ctx.calls(word):
            for chain in ctx.chains(other.node):
                index = chain.index(call.node)
                if index < 0:
                    continue
                for stage in chain.stages[index + 1 :]:
                    function = ctx.functions.of_stage(stage)
                    if stage.name in VARYING or (
                        function is not None and ctx.functions.called(function) & (READS | PYTHON)
                    ):
                        return True
    return False


def _rows_of_lambda(ctx: Context, body: ast.Call | ast.GeneratorExp) -> str:
    """The arrays of ``lambda: zip(x, y)``, ``lambda: iter(x)``, ``lambda: rows(x)`` or a lambda's generator
    expression.
    """
    if isinstance(body, ast.GeneratorExp):
        plain = isinstance(body.elt, (ast.Name, ast.Tuple)) and not body.generators[0].ifs
        return _array(ctx, body.generators[0].iter) if plain and len(body.generators) == 1 else ""
    if isinstance(body.func, ast.Name) and body.func.id in ("zip", "iter") and body.args:
        names = [_array(ctx, a) for a in body.args]
        return " and ".join(names) if all(names) else ""
    for function in ctx.functions.callees(body):
        return _rows(ctx.at(function.module), function)
    return ""


def _rows(ctx: Context, function: Function) -> str:
    """The arrays whose rows a generator yields; "" if it does anything else."""
    if not function.scope.yields or isinstance(function.node, ast.Lambda):
        return ""
    for node in walk(function.body):
        if isinstance(node, ast.stmt) and not isinstance(node, ALLOWED):
            return ""
        if isinstance(node, ast.Call) and not _plain(ctx, node):
            return ""
        if isinstance(node, (ast.YieldFrom, ast.IfExp, ast.ListComp, ast.DictComp, ast.Await)):
            return ""
    found: list[str] = []
    for yielded in function.scope.yields:
        parts = _parts(yielded)
        names = [_row(ctx, part) for part in parts]
        if not names or not all(names):
            return ""
        found += names
    return " and ".join(dict.fromkeys(found))


def _plain(ctx: Context, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id in PLAIN:
        return True
    name = ctx.name(call.func)
    return name.startswith(NUMPY) or (isinstance(call.func, ast.Attribute) and call.func.attr in METHODS)


def _parts(expr: ast.expr) -> list[ast.expr]:
    if isinstance(expr, (ast.Tuple, ast.List)):
        return [p for e in expr.elts for p in _parts(e)]
    if isinstance(expr, ast.Dict):
        return [p for e in expr.values for p in _parts(e)]
    return [expr]


def _row(ctx: Context, expr: ast.expr) -> str:
    """The array that an expression is one row of, followed through arithmetic, conversions and names; "" if there is
    none.
    """
    if isinstance(expr, ast.BinOp):
        return _row(ctx, expr.left) or _row(ctx, expr.right)
    if isinstance(expr, ast.Call):
        inner = expr.func.value if isinstance(expr.func, ast.Attribute) and expr.func.attr in METHODS else None
        return _row(ctx, inner or (expr.args[0] if expr.args else expr.func))
    if isinstance(expr, ast.Subscript):
        return _array(ctx, expr.value) if _index(ctx, expr.slice) else ""
    if not isinstance(expr, ast.Name):
        return ""
    found = ""
    for binding in ctx.definitions(expr):
        if binding.value is None or binding.kind not in ("assign", "element"):
            return ""
        found = _element(ctx, binding.value, binding.path) if binding.kind == "element" else _row(ctx, binding.value)
        if not found:
            return ""
    return found


def _index(ctx: Context, expr: ast.expr) -> bool:
    """Whether an index is a single one: a number or a loop's variable, not a slice or an array of indices."""
    if (
        isinstance(expr, ast.Name)
        and (bindings := ctx.definitions(expr))
        and all(b.kind == "element" for b in bindings)
    ):
        return True
    return ctx.tag(expr) is Tag.PY_SCALAR


def _element(ctx: Context, iterated: ast.expr, path: tuple[int, ...]) -> str:
    """The array iterated over, inside ``zip`` and ``enumerate``."""
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.args:
        word = iterated.func.id
        if word == "enumerate" and path[:1] == (1,):
            return _element(ctx, iterated.args[0], path[1:])
        if word == "zip" and path and 0 <= path[0] < len(iterated.args):
            return _element(ctx, iterated.args[path[0]], path[1:])
        return ""
    return _array(ctx, iterated) if not path else ""


def _array(ctx: Context, expr: ast.expr) -> str:
    value = ctx.value(expr)
    array = value.tag is Tag.NUMPY and not value.many
    return ctx.text(expr) if array and isinstance(expr, (ast.Name, ast.Attribute)) else ""


RULE = Rule(
    code="TFD006",
    name="generator-over-arrays",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: not using efficient API",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="raw-input",
    speedup=21.0,
    remedy="tf.data.Dataset.from_tensor_slices on the arrays themselves",
    calls=frozenset({"tensorflow.data.Dataset.from_generator"}),
    on_call=check,
    related=("INP003",),
)
