"""TensorFlow 1 graphs: where code builds one, which calls add nodes to it, and which loops run it."""

from __future__ import annotations

import ast

from stepscope.check.analyses.repeats import loop_parts
from stepscope.check.context import Call, Context
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag

FRESH = frozenset({"tensorflow.Graph", "tensorflow.reset_default_graph", "keras.backend.clear_session"})
"""Calls that begin a new graph."""
BUILDING = frozenset(
    "tensorflow.assign tensorflow.assign_add tensorflow.assign_sub tensorflow.train.Saver tensorflow.group "
    "tensorflow.global_variables_initializer tensorflow.local_variables_initializer tensorflow.variables_initializer "
    "tensorflow.initialize_all_variables tensorflow.tables_initializer tensorflow.initializers.global_variables "
    "tensorflow.gradients tensorflow.summary.scalar tensorflow.summary.image tensorflow.summary.histogram "
    "tensorflow.summary.merge_all tensorflow.summary.merge tensorflow.map_fn tensorflow.placeholder tensorflow.no_op "
    "tensorflow.split tensorflow.unstack tensorflow.cond tensorflow.while_loop tensorflow.scan".split()
)
"""Calls that build nodes, although their result is not a tensor known to the tables."""
METHODS = frozenset(
    "tensorflow.Variable.assign tensorflow.Variable.assign_add tensorflow.Variable.assign_sub "
    "tensorflow.Variable.read_value tensorflow.Variable.count_up_to tensorflow.data.Iterator.get_next "
    "tensorflow.data.Dataset.reduce tensorflow.data.Dataset.get_single_element".split()
)
"""Methods of objects that build nodes."""
REUSING = frozenset({"tensorflow.get_variable"})
"""Calls that return an existing object, or raise."""
OTHER = ("tensorflow.Session.", "tensorflow.Tensor.", "tensorflow.py_func")
"""Prefixes of calls that build no nodes, or nodes that a loop has a reason for."""
RUNS = frozenset({"tensorflow.Session.run", "tensorflow.Tensor.eval", "tensorflow.Variable.eval"})


def builds(ctx: Context, call: Call) -> bool:
    """Whether the result of a call is a node of the graph."""
    if call.name in REUSING or call.name.startswith(OTHER):
        return False
    return call.name in BUILDING or ctx.tag(call.node) in (Tag.TENSOR, Tag.VARIABLE)


def graph_mode(ctx: Context) -> bool:
    """Whether a file is for TensorFlow 1, or uses sessions of version 1."""
    if ctx.target.tensorflow < (2, 0):
        return not any(True for _ in ctx.calls("enable_eager_execution"))
    words = ("Session", "InteractiveSession", "disable_eager_execution", "disable_v2_behavior", "run", "get_session")
    return any(
        c.name in ("tensorflow.Session", "tensorflow.InteractiveSession", "tensorflow.Session.run")
        or c.name.endswith(("disable_eager_execution", "disable_v2_behavior", "backend.get_session"))
        for c in ctx.calls(*words)
    )


def runs(ctx: Context, call: Call, loop: Loop) -> bool:
    """Whether a loop's body, or the functions that lead to the call, run a session on the same graph."""
    inside = [inner for at, part in loop_parts(ctx, call.node, loop) for _, inner in at.functions.calls_below([part])]
    names = {inner.name for inner in inside}
    return not names & FRESH and (bool(names & RUNS) or any(_fed(inner) for inner in inside))


def _fed(call: Call) -> bool:
    """Whether a call is like ``self.net.sess.run(op, feed_dict=...)``: only a session accepts that, whatever holds
    it.
    """
    func = call.node.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr == "run"
        and not call.name
        and any(keyword.arg == "feed_dict" for keyword in call.node.keywords)
    )
