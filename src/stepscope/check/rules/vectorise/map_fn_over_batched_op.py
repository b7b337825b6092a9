"""tf.map_fn applies row by row ops that work on all rows at once.

## What it does
Reports `tf.map_fn` if its function consists only of ops that accept a batch as well as a row: arithmetic, reductions,
`matmul`, `gather`, `top_k`, `argmin`, `where` with three arguments, `fft`, ..., and `tf.cond` if both its branches do.

## Why it is slow
`map_fn` is a loop: a handful of small ops for each row, one after the other, although the op itself would use the whole
machine on all rows. Gradients keep the intermediate results of each iteration. Measured with softmax and a maximum over
2,000 rows of 64 numbers: 20 times the time of the ops on the whole tensor. A `tf.cond` that doubles or halves each of
2,000 numbers takes 50 times the time of `tf.where` on all of them. (Outside of `map_fn`, `tf.cond` is no slower than
`tf.where`, and computes one branch only.)

## Example
Slow:

```python
import tensorflow as tf

scores = tf.random.normal([2000, 64])
best = tf.map_fn(lambda row: tf.reduce_max(tf.nn.softmax(row)), scores)
```

Fixed:

```python
import tensorflow as tf

scores = tf.random.normal([2000, 64])
best = tf.reduce_max(tf.nn.softmax(scores, axis=-1), axis=-1)
```

## When it is silent
When the function calls anything unknown or without a batch form (decoding, random numbers, `boolean_mask`, `while`
loops, layers); for a `top_k` with a different k for each row; with ragged results; with `swap_memory=True` or
`parallel_iterations=1`, which suggest that memory is the concern; inside a `map` of tf.data; in tests.

## Fix and its safety
Call the ops on the whole tensor, with `axis=` or `batch_dims=` if they need one; for `tf.cond`, `tf.where`, which
computes both branches for all rows: if one of them would fail, mask its input first. If that is not obvious,
`tf.vectorized_map` accepts the same arguments and does it for you. It needs memory for all rows at once.
`--unsafe-fixes` calls it if `map_fn` has no other arguments.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.batchable import batchable
from stepscope.check.analyses.idioms import in_test
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.names import Function
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word, walk

SLICES = ("tensorflow.slice", "tensorflow.strided_slice", "tensorflow.range")
PLAIN = 2
"""Number of arguments that map_fn and vectorized_map share: the function and the elements."""
LONG = 60
"""Length from which a list of ops is too long for a message."""
OF_DATA = ("map", "flat_map", "interleave", "filter")


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a map_fn whose function has a batch form."""
    given = call.argument(0, "fn")
    function = ctx.function(given) if given is not None else None
    if function is None or in_test(ctx) or call.opaque or _memory_matters(call) or _ragged(ctx, call):
        return
    body = _body(function)
    at = ctx.at(function.module)
    if not body or not any(isinstance(n, (ast.Call, ast.BinOp)) for n in walk(body)) or _moves(at, function, body):
        return
    if not batchable(at, body) or _of_dataset(ctx, call):
        return
    ops = [at.text(n.func) for n in walk(body) if isinstance(n, ast.Call)]
    what = ", ".join(dict.fromkeys(ops)) or "arithmetic"
    chooses = any(at.name(n.func) == "tensorflow.cond" for n in walk(body) if isinstance(n, ast.Call))
    yield ctx.hit(
        call.node,
        f"map_fn runs {what if len(what) < LONG else function.name} row by row instead of "
        f"{'tf.where ' if chooses else ''}on all rows at once",
        confidence=0.85,
        fix=ctx.fix(
            "rename-call",
            "Call tf.vectorized_map",
            call.node,
            safety="unsafe",
            behaviour="All rows are processed, and held in memory, at once.",
            name="tensorflow.vectorized_map",
        )
        if len(call.node.args) + len(call.node.keywords) == PLAIN and ctx.target.tensorflow >= (2, 1)
        else None,
    )


def _body(function: Function) -> list[ast.AST]:
    """The statements that compute: assignments and a return, and the branches of a ``tf.cond``."""
    body = list(function.body)
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    plain = all(isinstance(s, (ast.Assign, ast.AnnAssign, ast.Return, ast.expr, ast.FunctionDef)) for s in body)
    return body if plain else []


def _moves(ctx: Context, function: Function, body: list[ast.AST]) -> bool:
    """Whether it takes a part of a row that depends on the row: of varying length, or a gather by hand."""
    names = {a.arg for a in function.parameters}
    for node in walk(body):
        if isinstance(node, ast.Slice):
            bounds = [b for b in (node.lower, node.upper) if b is not None]
            if any(isinstance(n, ast.Name) for b in bounds for n in ast.walk(b)):
                return True
        if isinstance(node, (ast.IfExp, ast.ListComp, ast.GeneratorExp, ast.Await, ast.Yield)):
            return True
        if isinstance(node, ast.Lambda) and not _branch(ctx, node):
            return True
        if isinstance(node, ast.Call) and (ctx.name(node.func) in SLICES or _own_k(node, names)):
            return True
    return not any(isinstance(n, ast.Name) and n.id in names for n in walk(body))


def _branch(ctx: Context, function: ast.Lambda) -> bool:
    """Whether a function is one of the two of a ``tf.cond``."""
    around = ctx.parent(function)
    call = ctx.parent(around) if isinstance(around, ast.keyword) else around
    return isinstance(call, ast.Call) and ctx.name(call.func) == "tensorflow.cond"


def _own_k(call: ast.Call, names: set[str]) -> bool:
    """Whether k differs per row, as in ``top_k(row[0], row[1])``; a batch has one k for all."""
    if last_word(call.func) != "top_k":
        return False
    k = [*call.args[1:2], *(w.value for w in call.keywords if w.arg == "k")]
    return any(isinstance(n, ast.Name) and n.id in names for given in k for n in ast.walk(given))


def _memory_matters(call: Call) -> bool:
    swap, parallel = call.argument(5, "swap_memory"), call.argument(3, "parallel_iterations")
    one = isinstance(parallel, ast.Constant) and parallel.value == 1
    return one or (isinstance(swap, ast.Constant) and swap.value is True)


def _ragged(ctx: Context, call: Call) -> bool:
    said = call.argument(-1, "fn_output_signature") or call.argument(2, "dtype")
    return (said is not None and "Ragged" in ast.dump(said)) or "ragged" in ctx.text(call.node, 500).lower()


def _of_dataset(ctx: Context, call: Call) -> bool:
    """Whether a node is in a function of tf.data, where rows come one by one and parallel stages hide the loop."""
    function = ctx.enclosing(call.node)
    if function is None:
        return False
    for word in OF_DATA:
        for other in ctx.calls(word):
            given = other.argument(0, "map_func")
            if given is not None and (found := ctx.function(given)) is not None and found.node is function.node:
                return True
    return False


RULE = Rule(
    code="VEC001",
    name="map-fn-over-batched-op",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: not using efficient API",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=20.0,
    remedy="call the ops on the whole tensor, or use tf.vectorized_map",
    calls=frozenset({"tensorflow.map_fn", "keras.backend.map_fn"}),
    on_call=check,
)
