"""Ops are added to a TensorFlow 1 graph in the loop that runs it.

## What it does
Reports calls that build graph ops (`tf.assign`, `tf.reduce_mean`, `tf.train.Saver`, initializers, ...) in a loop that
runs a session, directly or through functions of the project: each iteration adds nodes to the same graph.

## Why it is slow
Before it runs, a session compares its graph with what it has seen and extends it: runs get slower with every node, and
nothing is ever removed. Measured with four nodes an iteration: 44 times the time of a hoisted op after 100 runs, 180
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
In loops that build a graph and run nothing (layers of a model); where each iteration makes a graph of its own
(`tf.Graph()`, `tf.reset_default_graph()`); in loops of at most ten iterations; where weights are assigned in a loop
over the variables; in eager code, and inside of functions that are traced. An initializer in a loop is an info: what it
starts takes longer.

## Fix and its safety
Build the op once before the loop and feed what changes through a placeholder, or `variable.load(value, session)`. Call
`tf.get_default_graph().finalize()` before the loop, so that the mistake raises an error. Not done automatically.

## Versions
TensorFlow 1, and `tf.compat.v1` in graph mode with all later ones.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.checker.context import Call, Context
from stepscope.checker.hits import Hit
from stepscope.checker.idioms import in_test
from stepscope.checker.loops import Loop
from stepscope.checker.rule import Rule
from stepscope.checker.syntax import last_word
from stepscope.checker.tags import Tag

FEW = 10
"""So many nodes are no matter."""
FRESH = frozenset({"tensorflow.Graph", "tensorflow.reset_default_graph", "keras.backend.clear_session"})
BUILDING = frozenset(
    "tensorflow.assign tensorflow.assign_add tensorflow.assign_sub tensorflow.train.Saver tensorflow.group "
    "tensorflow.global_variables_initializer tensorflow.local_variables_initializer tensorflow.variables_initializer "
    "tensorflow.initialize_all_variables tensorflow.tables_initializer tensorflow.initializers.global_variables "
    "tensorflow.gradients tensorflow.summary.scalar tensorflow.summary.image tensorflow.summary.histogram "
    "tensorflow.summary.merge_all tensorflow.summary.merge tensorflow.map_fn tensorflow.placeholder".split()
)
"""Build nodes, although their result is not a tensor that the tables know."""
STARTS = frozenset(
    "tensorflow.global_variables_initializer tensorflow.local_variables_initializer tensorflow.variables_initializer "
    "tensorflow.initialize_all_variables tensorflow.tables_initializer tensorflow.initializers.global_variables".split()
)
"""Begin a training: a loop around them repeats whole trainings or evaluations, beside which a node is nothing."""
METHODS = frozenset(
    "tensorflow.Variable.assign tensorflow.Variable.assign_add tensorflow.Variable.assign_sub "
    "tensorflow.Variable.read_value tensorflow.Variable.count_up_to tensorflow.data.Iterator.get_next "
    "tensorflow.data.Dataset.reduce tensorflow.data.Dataset.get_single_element".split()
)
"""Of objects, which build nodes as well."""
REUSING = frozenset({"tensorflow.get_variable"})
"""Gives what is there already, or raises."""
PARAMETERS = frozenset(
    "items iteritems global_variables trainable_variables local_variables model_variables all_variables".split()
)
"""What is iterated over where weights are loaded or copied: as many nodes as there are variables, once."""
OTHER = ("tensorflow.Session.", "tensorflow.Tensor.", "tensorflow.py_func")
"""Build no nodes, or such as a loop has a reason for."""
RUNS = frozenset({"tensorflow.Session.run", "tensorflow.Tensor.eval", "tensorflow.Variable.eval"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """A call that builds nodes, with a loop around it that runs them."""
    if in_test(ctx) or not ctx.once(_graph_mode) or call.name in REUSING or call.name.startswith(OTHER):
        return
    builds = call.name in BUILDING or ctx.tag(call.node) in (Tag.TENSOR, Tag.VARIABLE)
    if not builds or ctx.traced(call.node):
        return
    for loop in ctx.loops(call.node):
        if loop.is_comprehension and not loop.via:
            continue
        if (loop.iterations is not None and loop.iterations <= FEW) or not _runs(ctx, call, loop):
            continue
        if call.word in ("assign", "load") and _over_parameters(loop):
            continue
        name = call.name.replace("tensorflow.", "tf.")
        yield ctx.hit(
            call.node,
            f"{name} adds nodes to the graph in each iteration of the loop that runs it",
            confidence=0.85 if loop.via else 0.9,
            severity="info" if call.name in STARTS else None,
            also=[ctx.loop_span(loop)],
        )
        return


def _over_parameters(loop: Loop) -> bool:
    """The loop goes over the variables of a model, or over a table of their values."""
    iterated = loop.node.iter if isinstance(loop.node, ast.For) else None
    return isinstance(iterated, ast.Call) and last_word(iterated.func) in PARAMETERS


def _graph_mode(ctx: Context) -> bool:
    """TensorFlow 1, or a file that uses sessions of version 1."""
    if ctx.version < (2, 0):
        return not any(True for _ in ctx.calls("enable_eager_execution"))
    words = ("Session", "InteractiveSession", "disable_eager_execution", "disable_v2_behavior", "run", "get_session")
    return any(
        c.name in ("tensorflow.Session", "tensorflow.InteractiveSession", "tensorflow.Session.run")
        or c.name.endswith(("disable_eager_execution", "disable_v2_behavior", "backend.get_session"))
        for c in ctx.calls(*words)
    )


def _runs(ctx: Context, call: Call, loop: Loop) -> bool:
    """What the loop repeats runs a session on the same graph: its body, or the functions that lead to the call."""
    parts: list[tuple[Context, ast.AST]] = [(ctx.at(loop.module), part) for part in loop.body]
    function = ctx.enclosing(call.node)
    if loop.via and function is not None:
        parts += [(ctx, part) for part in function.body]
        for module, inner in loop.via[1:]:
            at = ctx.at(module)
            between = at.enclosing(inner)
            parts += [(at, part) for part in between.body] if between is not None else []
    names = {inner.name for at, part in parts for _, inner in at.calls_below([part])}
    return bool(names & RUNS) and not names & FRESH


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
