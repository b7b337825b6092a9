"""A long Python loop inside a tf.function is unrolled: each iteration copies its body into the graph.

## What it does
Reports `for i in range(n)` with tensor ops in traced code if n is written in the source and more than 64, or if n is
the length of a tensor's axis and the body carries state between iterations, as a recurrent cell does.

Also loops and comprehensions that compute one slice of a tensor after the other with ops that have a batch form, such
as `[tf.signal.fft2d(x[b, :, :, c]) for c in range(32)]`, if the graph holds 32 copies or more; nested loops multiply.

## Why it is slow
AutoGraph turns a loop over `tf.range` into a graph loop, but unrolls `range` while tracing. Tracing, optimisation and
memory grow with n, and each new length of the axis is another graph. Measured with `range(300)`: 1202 nodes instead of
31, 7 times the time until 20 steps are done.

Each copy that works on a slice is an op with little work, and its gradient is a whole tensor, zero outside the slice.
Measured with 4 x 32 transforms of 64 x 64 and their gradient: 3.8 times the CPU time of one transform of all slices,
and 18 times in the first step.

## Example
Slow:

```python
import tensorflow as tf

@tf.function
def decay(x):
    for i in range(300):
        x = x * 0.99 + 0.01
    return x

decay(tf.zeros([8]))
```

Fixed:

```python
import tensorflow as tf

@tf.function
def decay(x):
    for i in tf.range(300):
        x = x * 0.99 + 0.01
    return x

decay(tf.zeros([8]))
```

## When it is silent
For `tf.range`; for at most 64 iterations or an unknown number; when the body indexes a Python list with the loop
variable (layers, variables), appends to one (but for slices, as above), or computes no tensor; in code that is not
traced (VEC002).

## Fix and its safety
Write `tf.range(n)`. Values that the body changes must then keep their shape and type, `break` and lists need care, and
results are collected with a `tf.TensorArray`. For recurrences use `tf.scan`, `tf.while_loop` or a Keras RNN layer; best
is one op for all iterations, if there is one: for slices of inner axes with `tf.transpose` before and after.
`--unsafe-fixes` writes `tf.range` if the body is arithmetic of tensors that keep shape and type, and the counter is
only used in `tf.cast`: an int32 counter combined with float32 is an error.

## Versions
TensorFlow 2. An unrolled loop runs faster per step if n is small, which is why loops of few iterations are not
reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.batchable import batchable
from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.row_loops import RowLoop, carries, executions, row_loop
from stepscope.check.context import Context
from stepscope.check.hits import Hit
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.bindings import Binding
from stepscope.check.source.syntax import last_word, stored_names, walk

ELEMENTWISE = frozenset(
    "abs square sqrt exp sin cos tanh sigmoid negative maximum minimum add subtract multiply nn.relu nn.tanh "
    "nn.sigmoid math.abs math.square math.sqrt math.exp math.tanh math.sigmoid math.log clip_by_value identity".split()
)
"""Ops whose result has the shape and type of their input."""
CAST = 2
FEW = 10
"""Slices that are too few to matter, unless they are sliced again."""
SLICES = 32
"""Copies of a body on slices from which one op for all of them is clearly faster."""
MANY = 64
"""Copies of a body that do not harm a graph."""
TENSORS = (Tag.TENSOR, Tag.VARIABLE)
GROWS = frozenset({"append", "extend"})
LISTS = GROWS | {"getattr", "format"}


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """Report a loop over range in traced code."""
    sliced = _sliced(ctx, node)
    if sliced is not None:
        yield sliced
        return
    if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call) or not node.iter.args:
        return
    if not (isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"):
        return
    count = ctx.engine.loops.length(ctx.module, node.iter)
    axis = _axis(ctx, node.iter.args[:2][-1]) if count is None else ""
    if (count is None or count <= MANY) and not axis:
        return
    if not ctx.traced(node) or in_test(ctx) or not _computes(ctx, node) or _needs_python(ctx, node, lists=not axis):
        return
    if axis and not _carries(node):
        return
    times = f"{count}" if count is not None else f"as many as {axis}"
    yield ctx.hit(
        node,
        f"range is unrolled: the graph holds {times} copies of this loop's body",
        confidence=0.9 if count is not None else 0.7,
        fix=None
        if axis or not _becomes_while(ctx, node)
        else ctx.fix(
            "rename-call",
            "Loop over tf.range",
            node.iter,
            safety="unsafe",
            behaviour="The loop runs in the graph: names that the body binds must keep their shape and type.",
            name="tensorflow.range",
        ),
    )


def _sliced(ctx: Context, node: ast.AST) -> Hit | None:
    """A loop that computes slices of a tensor one by one, although one op can do all of them."""
    if not isinstance(node, (ast.For, ast.ListComp)) or not ctx.traced(node) or in_test(ctx):
        return None
    found = row_loop(ctx, node, parts=True)
    if found is None or not found.index or found.tag not in TENSORS or _of_keras(ctx, node, first=found.first):
        return None
    times = ctx.engine.loops.iterations(ctx.module, node)
    copies = executions(ctx, node)
    if times is None or times <= FEW or copies < SLICES or _within_one(ctx, node):
        return None
    if carries(found.body) or not batchable(ctx, found.body) or not _computes_slice(ctx, found):
        return None
    return ctx.hit(
        node.iter if isinstance(node, ast.For) else node,
        f"the graph holds {copies} copies of this loop's body, each for a slice of {ctx.text(found.tensor)}: "
        "one op can take all slices",
        confidence=0.8,
    )


def _computes_slice(ctx: Context, found: RowLoop) -> bool:
    """Whether an op takes a slice, and there is no condition."""
    parts = list(walk(found.body))
    if any(isinstance(p, (ast.If, ast.IfExp, ast.Break, ast.Return, ast.While)) for p in parts):
        return False
    return any(
        isinstance(p, ast.Call) and ctx.tag(p) in TENSORS and any(found.mentions_row(a) for a in p.args) for p in parts
    )


def _within_one(ctx: Context, node: ast.AST) -> bool:
    """Whether a loop around this one is reported for the same copies."""
    around = (loop.node for loop in ctx.loops.around(node, calls=False))
    return any(isinstance(n, (ast.For, ast.ListComp)) and _sliced(ctx, n) is not None for n in around)


def _of_keras(ctx: Context, node: ast.AST, *, first: bool) -> bool:
    """Whether it is a loop over the batch in a layer, loss or metric, which is another rule's (VEC005)."""
    function = ctx.enclosing(node)
    return first and function is not None and function.cls is not None


def _becomes_while(ctx: Context, loop: ast.For) -> bool:
    """Whether the body can be a while loop unchanged: assignments that keep shape and type between iterations.

    The counter becomes an int32 tensor, used only in a cast; values that the body carries are tensors before the loop.
    """
    target = loop.target.id if isinstance(loop.target, ast.Name) else ""
    bound = stored_names(loop) - {target}
    if not target or loop.orelse or not all(isinstance(s, (ast.Assign, ast.AugAssign)) for s in loop.body):
        return False
    parts = list(walk(loop.body))
    counters = [n for n in parts if isinstance(n, ast.Name) and n.id == target]
    if not all(isinstance(c := ctx.parent(n), ast.Call) and ctx.name(c.func) == "tensorflow.cast" for n in counters):
        return False
    inside = [n for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in bound]
    before = {
        b for n in inside for b in ctx.definitions(n) for b in (b.sources or (b,)) if not ctx.loops.inside(b.node, loop)
    }
    if not all(_tensor_before(ctx, b) for b in before) or _read_after(
        ctx, loop, bound | {target} - {b.name for b in before}
    ):
        return False
    return all(_keeps_shape(ctx, s.value, bound) for s in loop.body if isinstance(s, (ast.Assign, ast.AugAssign)))


def _tensor_before(ctx: Context, binding: Binding) -> bool:
    """Whether the loop's initial value is a tensor: a number would become a tensor of another type."""
    value = ctx.engine.inference.binding(ctx.module, binding)
    return value.tag in TENSORS and not value.many


def _read_after(ctx: Context, loop: ast.For, names: set[str]) -> bool:
    """Whether code after the loop reads a name that only the loop binds."""
    function = ctx.enclosing(loop)
    nodes = [n for part in (function.body if function is not None else []) for n in ast.walk(part)]
    return any(
        isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load) and not ctx.loops.inside(n, loop)
        and any(ctx.loops.inside(b.node, loop) for b in ctx.definitions(n))
        and not any(not ctx.loops.inside(s.node, loop) for b in ctx.definitions(n) for s in (b, *b.sources))
        for n in nodes
    )  # fmt: skip


def _keeps_shape(ctx: Context, expr: ast.expr, bound: set[str]) -> bool:
    """Whether an expression is arithmetic of carried values, numbers and elementwise ops; an outside tensor may be
    wider.
    """
    if isinstance(expr, ast.BinOp):
        return _keeps_shape(ctx, expr.left, bound) and _keeps_shape(ctx, expr.right, bound)
    if isinstance(expr, ast.UnaryOp):
        return _keeps_shape(ctx, expr.operand, bound)
    if isinstance(expr, ast.Name):
        return expr.id in bound or ctx.tag(expr) is Tag.PY_SCALAR
    if isinstance(expr, ast.Constant):
        return isinstance(expr.value, (int, float))
    if not isinstance(expr, ast.Call) or expr.keywords:
        return False
    op = ctx.name(expr.func).removeprefix("tensorflow.")
    counted = op == "cast" and len(expr.args) == CAST and isinstance(expr.args[0], ast.Name)
    if counted:
        return expr.args[0].id not in bound if isinstance(expr.args[0], ast.Name) else False
    return op in ELEMENTWISE and all(_keeps_shape(ctx, a, bound) for a in expr.args)


def _axis(ctx: Context, expr: ast.expr) -> str:
    """``x.shape[1]`` of a tensor, also through a name; not the last axis, nor the batch axis."""
    if isinstance(expr, ast.Name):
        made = ctx.definitions(expr)
        value = made[0].value if len(made) == 1 and made[0].kind == "assign" else None
        return _axis(ctx, value) if value is not None and not isinstance(value, ast.Name) else ""
    if not isinstance(expr, ast.Subscript) or ctx.loops.integer(expr.slice) != 1:
        return ""
    base = expr.value
    if not isinstance(base, ast.Attribute) or base.attr != "shape":
        return ""
    tensor = ctx.tag(base.value) in TENSORS or (isinstance(base.value, ast.Name) and _is_input(ctx, base.value))
    return ctx.text(expr) if tensor else ""


def _is_input(ctx: Context, name: ast.Name) -> bool:
    """Whether a name is the first argument of a Keras layer's or model's ``call``."""
    function = ctx.enclosing(name)
    if function is None or function.cls is None or function.name != "call":
        return False
    parameters = [a.arg for a in function.parameters[1:2]]
    tag = ctx.engine.inference.instance(function.cls).tag
    return tag in (Tag.MODEL, Tag.LAYER) and parameters == [name.id]


def _computes(ctx: Context, loop: ast.For) -> bool:
    """Whether an iteration computes at least one tensor."""
    return any(
        (isinstance(part, ast.Call) and ctx.tag(part) in TENSORS)
        or (isinstance(part, ast.BinOp) and ctx.tag(part) in TENSORS)
        or (isinstance(part, ast.AugAssign) and ctx.tag(part.value) in TENSORS)
        for part in walk(loop.body)
    )


def _needs_python(ctx: Context, loop: ast.For, *, lists: bool) -> bool:
    """Whether the number must be a Python one: it indexes a list, is part of a name, or (``lists``) a list grows."""
    target = loop.target.id if isinstance(loop.target, ast.Name) else ""
    for part in walk(loop.body):
        if isinstance(part, ast.Subscript) and _uses(part.slice, target):
            value = ctx.value(part.value)
            given = isinstance(part.value, ast.Name) and _is_input(ctx, part.value)
            if not given and (value.tag not in (*TENSORS, Tag.NUMPY) or value.many):
                return True
        if isinstance(part, ast.Call) and last_word(part.func) in (LISTS if lists else LISTS - GROWS):
            return True
        if isinstance(part, (ast.JoinedStr, ast.Yield)) and _uses(part, target):
            return True
    return False


def _uses(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _carries(loop: ast.For) -> bool:
    """Whether the body reads a name before binding it: a state carried between iterations."""
    bound = stored_names(loop)
    first: dict[str, str] = {}
    for statement in loop.body:
        reads = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        for name in reads:
            first.setdefault(name, "read")
        for name in stored_names(statement):
            first.setdefault(name, "bound")
    target = loop.target.id if isinstance(loop.target, ast.Name) else ""
    return any(first.get(name) == "read" for name in bound if name != target)


RULE = Rule(
    code="TFF004",
    name="python-loop-in-graph",
    severity="warning",
    symptom="Time: slow initialization time",
    cause="Model: confusion with computation model",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=6.7,
    remedy="loop over tf.range, or use one op for all iterations",
    nodes=(ast.For, ast.ListComp),
    on_node=check,
    since_version=(2, 0),
    related=("GRF002",),
)
