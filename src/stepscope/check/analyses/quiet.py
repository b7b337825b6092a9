"""Whether a loop can change an object: whether it stores, or calls what may store, into anything but its own
objects.
"""

from __future__ import annotations

import ast
import builtins

from stepscope.check.context import Call, Context
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag
from stepscope.check.source.syntax import children, last_word

_BUILTINS = frozenset(
    "print len range float int str abs min max sum zip enumerate isinstance sorted reversed tuple list dict set round "
    "bool format repr hash id type any all divmod pow".split()
)
_LIBRARIES = ("math.", "time.", "numpy.", "tensorflow.")
_CHANGING = (
    "numpy.nditer", "numpy.lib.", "numpy.vectorize", "numpy.apply_", "numpy.frompyfunc", "numpy.fromfunction",
    "tensorflow.assign", "tensorflow.scatter_", "tensorflow.py_func", "tensorflow.numpy_function", "tensorflow.train.",
    "tensorflow.map_fn", "tensorflow.vectorized_map", "tensorflow.while_loop", "tensorflow.scan", "tensorflow.foldl",
    "tensorflow.foldr", "tensorflow.cond", "tensorflow.case", "tensorflow.switch_case", "tensorflow.raw_ops.",
    "tensorflow.lookup.", "tensorflow.queue.", "tensorflow.contrib.", "tensorflow.function", "tensorflow.data.",
    "tensorflow.nest.", "tensorflow.keras.", "tensorflow.custom_gradient", "tensorflow.Module", "tensorflow.io.",
    "tensorflow.distribute.", "tensorflow.compat.", "tensorflow.batch_", "tensorflow.count_up_to",
    "tensorflow.Variable",
)  # fmt: skip
"""Prefixes of functions that write into their arguments, or run them."""
IN_PLACE = frozenset(
    "shuffle put copyto place putmask put_along_axis fill fill_diagonal sort partition resize itemset setfield "
    "setflags byteswap assign assign_add assign_sub".split()
)
"""Methods and functions that write into an array or a variable."""
_READING = frozenset({"numpy", "item", "tolist", "astype", "copy", "mean", "sum", "min", "max", "reshape", "get_shape"})
"""Methods of arrays and tensors that change nothing."""
GROWING = frozenset({"append", "extend", "add"})
FILLING = GROWING | {"insert", "pop", "remove", "clear", "update", "setdefault"}
_FRESH = ("numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full", "numpy.array", "list", "dict", "set")
"""Prefixes of calls that make an object with no other reference."""
_CONTEXTS = frozenset({"tensorflow.GradientTape", "tensorflow.name_scope", "tensorflow.device"})
_OTHERS_RUN = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
"""Nodes during which unrelated code may run."""


def quiet(ctx: Context, loop: Loop, expr: ast.expr) -> bool:
    """Whether nothing in a loop can change the object that an expression stands for, by this name or another."""
    node = loop.node
    if loop.via or not isinstance(node, (ast.For, ast.While)):
        return False
    if isinstance(node, ast.For) and not _plain(ctx, node.iter):
        return False
    todo: list[ast.AST] = [*node.body, *([node.test] if isinstance(node, ast.While) else [])]
    while todo:
        part = todo.pop()
        if isinstance(part, _OTHERS_RUN) or not _harmless(ctx, part, expr):
            return False
        todo += children(part)
    return True


def handed(ctx: Context, expr: ast.Name | ast.Attribute, loop: Loop) -> bool:
    """Whether the loop passes an object to anything but an op, calls a method of it, or its file changes it by name."""
    text = ast.dump(expr)
    root: ast.expr = expr
    while isinstance(root, ast.Attribute):
        root = root.value
    own = isinstance(root, ast.Name) and root.id == "self"
    for part in loop.body:
        for call in ctx.module.calls_in(part):
            if ctx.name(call.func).startswith("tensorflow."):
                continue
            given = [*call.args, *(k.value for k in call.keywords)]
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            touched = [*given, *([receiver] if receiver is not None else [])]
            if any(ast.dump(inner) == text for one in touched for inner in ast.walk(one)):
                return True
            if not own and root is not expr and any(ast.dump(one) == ast.dump(root) for one in touched):
                return True
    return any(
        isinstance(call.func, ast.Attribute) and last_word(call.func.value) == last_word(expr)
        for word in FILLING
        for call in ctx.module.flow.calls.get(word, ())
    )


def given_to_change(ctx: Context, name: ast.expr, loop: Loop) -> bool:
    """Whether the loop passes an array to code that may write into it: neither a Keras model nor a read-only
    function.
    """
    for part in loop.body:
        for call in ctx.module.calls_in(part):
            given = [*call.args, *(k.value for k in call.keywords)]
            if not any(ast.dump(inner) == ast.dump(name) for one in given for inner in ast.walk(one)):
                continue
            known = ctx.call(call)
            if not known.name.startswith("keras.Model.") and not _call(ctx, known, name):
                return True
    return False


def _plain(ctx: Context, iterated: ast.expr) -> bool:
    """Whether iterating runs no project code; what a generator does between its elements is unknown."""
    if isinstance(iterated, ast.Call):
        if ctx.functions.callees(iterated) or any(
            not _plain(ctx, a) for a in iterated.args if not isinstance(a, ast.Constant)
        ):
            return _counted(ctx, iterated)
        return _builtin(ctx, iterated.func) or ctx.name(iterated.func).startswith(("tensorflow.", "numpy."))
    if isinstance(iterated, (ast.List, ast.Tuple, ast.Constant, ast.BinOp, ast.UnaryOp, ast.ListComp)):
        return True
    made = [b.value for b in ctx.definitions(iterated)] if isinstance(iterated, ast.Name) else []
    if any(isinstance(one, (ast.GeneratorExp, ast.Call)) and not _counting(ctx, one) for one in made):
        return False
    value = ctx.value(iterated)
    return value.many or bool(value.parts) or value.tag in (Tag.TENSOR, Tag.NUMPY, Tag.PY_SCALAR, Tag.PY_STRING)


def _counting(ctx: Context, made: ast.expr) -> bool:
    """Whether a call is of a library function that gives all elements at once."""
    return (isinstance(made, ast.Call) and ctx.tag(made) in (Tag.TENSOR, Tag.NUMPY)) or _fresh(ctx, made)


def _counted(ctx: Context, iterated: ast.Call) -> bool:
    return _builtin(ctx, iterated.func) and last_word(iterated.func) == "range"


def _builtin(ctx: Context, func: ast.expr) -> bool:
    plain = isinstance(func, ast.Name) and func.id in _BUILTINS and hasattr(builtins, func.id)
    return plain and isinstance(func, ast.Name) and not ctx.definitions(func)


def _harmless(ctx: Context, node: ast.AST, expr: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return _call(ctx, ctx.call(node), expr)
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and _runs_code(ctx, node):
        return False
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        return isinstance(node, ast.Subscript) and _apart(ctx, node.value, expr)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return _apart(ctx, node.target, expr) or ctx.tag(node.target) in (Tag.TENSOR, Tag.PY_SCALAR, Tag.PY_STRING)
    if isinstance(node, ast.With):
        calls = [item.context_expr for item in node.items]
        return all(isinstance(call, ast.Call) and ctx.name(call.func) in _CONTEXTS for call in calls)
    if isinstance(node, ast.For):
        return _plain(ctx, node.iter)
    return not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.comprehension)) or (
        isinstance(node, ast.comprehension) and _plain(ctx, node.iter)
    )


def _runs_code(ctx: Context, node: ast.Name | ast.Attribute) -> bool:
    """Whether an object is the project's, or unknown: its operators, properties and string conversions are then
    methods.
    """
    if ctx.value(node).cls is not None:
        return True
    return isinstance(node, ast.Name) and not ctx.value(node).known and any(
        binding.kind == "param" for binding in ctx.definitions(node)
    )  # fmt: skip


def _call(ctx: Context, call: Call, expr: ast.expr) -> bool:
    node = call.node
    given = [*node.args, *(k.value for k in node.keywords)]
    if any(k.arg in (None, "out") for k in node.keywords) or any(ctx.function(g) is not None for g in given):
        return False
    if _builtin(ctx, node.func):
        return True
    if isinstance(node.func, ast.Attribute):
        tag = ctx.tag(node.func.value)
        if node.func.attr in _READING and tag in (Tag.TENSOR, Tag.NUMPY):
            return True
        if node.func.attr in GROWING and _apart(ctx, node.func.value, expr):
            return True
        if tag is Tag.PY_STRING:
            return True
    changing = call.name.startswith(_CHANGING) or last_word(node.func) in IN_PLACE
    return call.name.startswith(_LIBRARIES) and not changing


def _apart(ctx: Context, base: ast.expr, expr: ast.expr) -> bool:
    """Whether both the modified and the read object were made by the code itself, so that they are different
    objects.
    """
    if not isinstance(base, ast.Name) or not isinstance(expr, ast.Name) or base.id == expr.id:
        return False
    bindings = [b for b in ctx.definitions(base) if b.kind != "aug"]
    fresh = all(b.kind == "assign" and b.value is not None and _fresh(ctx, b.value) for b in bindings)
    own = all(b.kind == "assign" and b.value is not None and _fresh(ctx, b.value) for b in ctx.definitions(expr))
    return bool(bindings) and fresh and own


def _fresh(ctx: Context, value: ast.expr) -> bool:
    if isinstance(value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)):
        return True
    if isinstance(value, ast.Constant):
        return True
    if not isinstance(value, ast.Call):
        return False
    return ctx.name(value.func).startswith(_FRESH) or (_builtin(ctx, value.func) and last_word(value.func) in _FRESH)
