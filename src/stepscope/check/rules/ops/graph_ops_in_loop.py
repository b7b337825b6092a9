"""Ops are added to a TensorFlow 1 graph in the loop that runs it.

## What it does
Reports calls that build graph ops (`tf.assign`, `tf.reduce_mean`, `tf.train.Saver`, initializers, ...) in a loop that
runs a session, directly or through functions of the project: each iteration adds nodes to the same graph.

## Why it is slow
Before a run, a session compares its graph with what it has seen and extends it: runs get slower with every node, and
nothing is ever removed. Measured with four nodes per iteration: 44 times the time of a hoisted op after 100 runs, 180
times after 400; memory grows as well.

## Example
Slow:

```python
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
rate = tf.Variable(0.1)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(400):
        session.run(tf.assign(rate, 0.1 / (step + 1)))
```

Fixed:

```python
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
rate = tf.Variable(0.1)
new_rate = tf.placeholder(tf.float32)
set_rate = tf.assign(rate, new_rate)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(400):
        session.run(set_rate, {new_rate: 0.1 / (step + 1)})
```

## When it is silent
In loops that build a graph and run nothing (layers of a model); when each iteration makes its own graph (`tf.Graph()`,
`tf.reset_default_graph()`); when an op is made once and kept (`if key not in self.ops:`, `except KeyError:`) or made in
the one iteration that a condition names (`if step == last:`); in towers, which each iteration places on a device or in
a scope of its own; in loops of at most ten iterations; when weights are assigned in a loop over the variables; in eager
code, and inside traced functions.

Ops built from one another are reported once, and so is each function that the loop calls, at its first op. It is a
warning if it happens only every n-th iteration. It is info for at most a hundred times, also as every 50th of a
thousand iterations; for a Saver every n-th time; for an initializer in any loop, because the training it starts takes
longer; for loops over a table of names (`.items()`), which are as short as the table; and for loops over epochs or
trials, each with its own loop of steps.

## Fix and its safety
Build the op once before the loop and feed the changing value through a placeholder, or use `variable.load(value,
session)`. Call `tf.get_default_graph().finalize()` before the loop, so that the mistake raises an error.

`session.run(tf.assign(v, x))` becomes `v.load(x, session)`, which runs the op that gave the variable its first value:
safe if the value is known to be a number or an array, otherwise unsafe, and not done for a tensor. An op that is the
same in each iteration moves before the loop (unsafe: it is then also built if the loop does not run). Other cases are
left to you.

## Versions
TensorFlow 1, and `tf.compat.v1` in graph mode with all later versions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses import hoisting
from stepscope.check.analyses.graphs import METHODS, RUNS, builds, graph_mode, runs
from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.once import kept, placed, single
from stepscope.check.analyses.pure import same
from stepscope.check.analyses.repeats import guard, loop_parts, rarely, times
from stepscope.check.context import Call, Context
from stepscope.check.hits import CheckSeverity, FixPlan, Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.bindings import COMPREHENSIONS
from stepscope.check.source.syntax import last_word

FEW = 10
"""Nodes that are too few to matter."""
SHORT = 100
"""Iterations of four nodes that cost half a second in all."""
STARTS = frozenset(
    "tensorflow.global_variables_initializer tensorflow.local_variables_initializer tensorflow.variables_initializer "
    "tensorflow.initialize_all_variables tensorflow.tables_initializer tensorflow.initializers.global_variables".split()
)
"""Ops that start a training: a loop around them repeats whole trainings or evaluations, compared with which a node
costs nothing."""
PARAMETERS = frozenset(
    "items iteritems global_variables trainable_variables local_variables model_variables all_variables".split()
)
"""Methods and functions that are iterated over to load or copy weights: one node per variable, once."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a call that builds nodes in a loop that runs them."""
    if in_test(ctx) or not ctx.once(graph_mode) or not builds(ctx, call) or ctx.traced(call.node):
        return
    table: Loop | None = None
    for loop in ctx.loops.around(call.node):
        if table is not None and _over_rows(ctx, table, loop):
            continue
        table = None
        if loop.is_comprehension and not loop.via:
            continue
        if (loop.iterations is not None and loop.iterations <= FEW) or not runs(ctx, call, loop):
            continue
        if call.word in ("assign", "load") and _over_parameters(loop):
            table = loop
            continue
        if kept(ctx, call.node, loop) or placed(ctx, call.node, loop) or single(ctx, call.node, loop):
            continue
        if not _first(ctx, call, loop):
            return
        name = call.name.replace("tensorflow.", "tf.")
        yield ctx.hit(
            call.node,
            f"{name} adds nodes to the graph in each iteration of the loop that runs it",
            confidence=0.85 if loop.via else 0.9,
            severity=_severity(ctx, call, loop),
            also=[ctx.places.loop_span(loop)],
            fix=_load(ctx, call) or _hoist(ctx, call, loop),
        )
        return


def _load(ctx: Context, call: Call) -> FixPlan | None:
    """Replace ``session.run(tf.assign(v, x))`` by ``v.load(x, session)``, which runs an existing op."""
    run = ctx.parent(call.node)
    given = _assigned(call)
    if given is None or not isinstance(run, ast.Call) or not isinstance(ctx.parent(run), ast.Expr):
        return None
    if ctx.name(run.func) != "tensorflow.Session.run" or run.args != [call.node] or run.keywords:
        return None
    variable, value = given
    tag = ctx.tag(value)
    if (
        ctx.tag(variable) is not Tag.VARIABLE
        or tag in (Tag.TENSOR, Tag.VARIABLE)
        or not isinstance(run.func, ast.Attribute)
    ):
        return None
    known = tag in (Tag.PY_SCALAR, Tag.BOOL, Tag.NUMPY)
    return ctx.fix(
        "replace-expression",
        f"Load the value into {ctx.text(variable, 30)}",
        run,
        variable,
        value,
        run.func.value,
        safety="safe" if known else "unsafe",
        behaviour="The variable gets the same value, by the op that initialised it."
        if known
        else "The value must be a number or array, as it seems to be; a tensor would be an error.",
        value="$2.load($3, $4)",
    )


def _assigned(call: Call) -> tuple[ast.expr, ast.expr] | None:
    """The variable that a call assigns to and the value, if it has no other arguments."""
    if call.name == "tensorflow.Variable.assign":
        value, variable = call.argument(0, "value"), call.receiver
        many = 1
    elif call.name == "tensorflow.assign":
        variable, value = call.argument(0, "ref"), call.argument(1, "value")
        many = 2
    else:
        return None
    if variable is None or value is None or call.opaque or len(call.node.args) + len(call.node.keywords) != many:
        return None
    return variable, value


def _hoist(ctx: Context, call: Call, loop: Loop) -> FixPlan | None:
    """Move the part that is the same in each iteration before the loop, with the arithmetic around it."""
    if loop.via or not same(ctx, call.node, loop):
        return None
    node: ast.expr = call.node
    parent = ctx.parent(node)
    while isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Subscript)) and same(ctx, parent, loop):
        node, parent = parent, ctx.parent(parent)
    moved = hoisting.statement(ctx, node, loop, also=lambda expr: same(ctx, expr, loop))
    return moved or hoisting.expression(ctx, node, loop, f"{call.word}_op")


def _severity(ctx: Context, call: Call, loop: Loop) -> CheckSeverity | None:
    """Severity by the number of nodes added."""
    often = times(ctx, call.node, loop)
    short = often is not None and often <= SHORT
    if short or call.name in STARTS or _over_table(loop) or _per_epoch(ctx, call, loop):
        return "info"
    if rarely(ctx, call.node, loop):
        return "info" if call.name == "tensorflow.train.Saver" else "warning"
    return None


def _per_epoch(ctx: Context, call: Call, loop: Loop) -> bool:
    """Whether the steps are in an inner loop of this one: a node per hundred steps does not matter."""
    way = {call.node, *(node for _, node in loop.via)}
    parts = loop_parts(ctx, call.node, loop)
    beside = [
        (at.at(function.module), part)
        for at, repeated in parts
        for node in at.module.calls_in(repeated)
        if guard(at.module, node, loop.node) is None
        for function in at.functions.callees(node)
        for part in function.body
    ]
    return any(_steps(at, node, loop, way) for at, part in [*parts, *beside] for node in ast.walk(part))


def _steps(ctx: Context, node: ast.AST, around: Loop, way: set[ast.Call]) -> bool:
    """Whether a loop repeatedly runs a session in each iteration of the loop around, and builds none of the reported
    ops.
    """
    if not isinstance(node, (ast.For, ast.While)) or guard(ctx.module, node, around.node) is not None:
        return False
    few = isinstance(node, ast.For) and (ctx.loops.length(node.iter) or FEW + 1) <= FEW
    if few or any(n in way for n in ast.walk(node)):
        return False
    return bool({c.name for _, c in ctx.functions.calls_below(node.body)} & RUNS)


def _first(ctx: Context, call: Call, loop: Loop) -> bool:
    """Whether this is the one place to report among ops built around this call, or before it in a function that the
    loop calls.
    """
    child: ast.AST = call.node
    parent = ctx.parent(child)
    while isinstance(parent, (ast.expr, ast.keyword, ast.comprehension)) and not isinstance(parent, ast.Lambda):
        if isinstance(parent, ast.Call) and parent.func is not child and builds(ctx, ctx.call(parent)):
            return False
        child, parent = parent, ctx.parent(parent)
    if any(_made_inside(ctx, name, loop) for given in call.node.args for name in ast.walk(given)):
        return False
    function = ctx.enclosing(call.node)
    if not loop.via or function is None:
        return True
    for part in function.body:
        for node in ctx.module.calls_in(part):
            other = ctx.call(node)
            if node is call.node or any(n is call.node for n in ast.walk(node)):
                return True
            if _wanted(other) and builds(ctx, other) and not kept(ctx, node, loop):
                return False
    return True


def _made_inside(ctx: Context, name: ast.AST, loop: Loop) -> bool:
    """Whether a name stands for an op built in the same iteration: the report of that op covers this one."""
    if not isinstance(name, ast.Name) or loop.via:
        return False
    made = [b.value for b in ctx.definitions(name) if b.kind == "assign" and isinstance(b.value, ast.Call)]
    return any(ctx.loops.inside(call, loop) and builds(ctx, ctx.call(call)) for call in made)


def _wanted(call: Call) -> bool:
    """Whether this rule considers a call."""
    return call.name in METHODS or call.name.startswith(("tensorflow.", "keras.layers.", "keras.backend."))


def _over_parameters(loop: Loop) -> bool:
    """Whether the loop goes over the variables of a model, or over a table of their values."""
    iterated = loop.node.iter if isinstance(loop.node, ast.For) else None
    return isinstance(iterated, ast.Call) and last_word(iterated.func) in PARAMETERS


def _over_table(loop: Loop) -> bool:
    """Whether the loop goes over the names of a handwritten table: losses, layers, metrics."""
    iterated = loop.node.iter if isinstance(loop.node, ast.For) else None
    if isinstance(loop.node, COMPREHENSIONS):
        iterated = loop.node.generators[0].iter
    return isinstance(iterated, ast.Call) and last_word(iterated.func) in ("items", "iteritems") and not iterated.args


def _over_rows(ctx: Context, inner: Loop, outer: Loop) -> bool:
    """Whether the inner loop's range depends on the outer loop: together they go over all variables once."""
    source = inner.node.iter if isinstance(inner.node, ast.For) else None
    return source is not None and not outer.via and bool(ctx.at(outer.module).loops.varies(source, outer.node))


RULE = Rule(
    code="OPS001",
    name="graph-ops-in-loop",
    severity="error",
    symptom="Time: increasing time over time",
    cause="Model: confusion with computation model",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=44.0,
    remedy="build the op once before the loop and feed what changes",
    calls=METHODS | {"tensorflow.*", "keras.layers.*", "keras.backend.*"},
    on_call=check,
    related=("GRF004", "TRD001"),
)
