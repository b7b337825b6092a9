"""Whether code can become a tf.function: what a graph cannot contain, and what might behave differently in one.

``fails`` finds certain errors: ``.numpy()``, or Python iteration over a tensor that AutoGraph does not turn into a
graph loop (``zip``, comprehensions). ``keeps_results`` asks for more: every action of the function is known and happens
in the graph, each time it is called. If something is unknown the answer is no.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from stepscope.check.analyses.looks import UPDATING, looks, used_in, without
from stepscope.check.context import Context
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag, Value
from stepscope.check.inference.values import passed
from stepscope.check.source.bindings import COMPREHENSIONS, FUNCTIONS
from stepscope.check.source.syntax import last_word, walk

MAX_LEVELS = 3
"""Depth to which calls of project functions are followed."""
OF_PYTHON = frozenset({"numpy", "item", "tolist", "render", "input", "print"})
"""Methods and functions that a graph cannot contain."""
TENSORS = (Tag.TENSOR, Tag.VARIABLE)
_NUMBERS = frozenset({"float", "int", "bool", "complex"})
_ITERATING = frozenset(
    {"zip", "list", "tuple", "set", "sorted", "sum", "min", "max", "any", "all", "map", "filter", "next"}
)
"""Builtins that AutoGraph leaves unchanged: they ask a tensor for its elements one by one."""
_HARMLESS = frozenset({"range", "len", "zip", "enumerate", "list", "tuple", "dict", "reversed", "super"})
_STATEMENTS = (
    ast.Return, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.With, ast.For, ast.Pass,
)  # fmt: skip
"""Statements that a function may consist of; others branch, catch, declare or end, which a graph does only while it is
traced."""
_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try)
"""Statements by which code is left in its midst: what follows it then does not come."""
_MAKING = ("tensorflow.Variable", "tensorflow.random.Generator", "tensorflow.lookup.", "keras.optimizers.")
"""Prefixes of names of objects that are made once, outside a function."""
_ONCE = (
    "tensorflow.summary",
    "tensorflow.print",
    "tensorflow.data.",
    "tensorflow.io.",
    "tensorflow.config",
    "tensorflow.py",
)
"""Prefixes of calls that act when called, need a separate place, or are ignored because they are rare in a step."""
_METHODS = frozenset("gradient jacobian watch apply_gradients minimize update_state result add_loss".split())
"""Methods of tapes, optimizers and metrics."""

_IN_GRAPH = _METHODS | frozenset({"assign", "assign_add", "assign_sub", "scatter_nd_update", "insert", "write"})
"""Methods, including those of variables and tables, that are called for their effect and work in a graph."""


def fails(ctx: Context, body: Iterable[ast.AST], levels: int = MAX_LEVELS) -> bool:
    """Whether code of this file, or project functions it calls, contains something that a graph cannot."""
    return any(_fails(at, node) for at, node in _below(ctx, body, levels))


def postponable(ctx: Context, body: Sequence[ast.AST]) -> tuple[ast.AST, ...] | None:
    """What a graph cannot contain in some code, if it can all follow the graph, because it only looks at values.

    Returns:
        The reads in the code itself, without those in functions that it calls. None: something else stands in the way.
    """
    for at, part in _bodies(ctx, body, MAX_LEVELS):
        reads = frozenset(node for node in walk(part) if _fails(at, node))
        needed = _needed(at, part) if part is body else frozenset()
        if any(_fails(at, node) for node in walk(without(part, looks(at, part, reads, needed)))):
            return None
    found = tuple(node for node in walk(body) if _fails(ctx, node))
    return None if found and any(isinstance(node, _LEAVING) for node in walk(body)) else found


def _needed(ctx: Context, body: Sequence[ast.AST]) -> frozenset[str]:
    """What tapes and optimizers are given in the function around some code."""
    function = ctx.enclosing(body[0]) if body else None
    around = function.body if function is not None else ctx.module.tree.body
    calls = (node for node in walk(around) if isinstance(node, ast.Call) and last_word(node.func) in UPDATING)
    return frozenset(path for call in calls for path in used_in(call))


def _bodies(ctx: Context, body: Sequence[ast.AST], levels: int) -> Iterator[tuple[Context, Sequence[ast.AST]]]:
    """Some code, and that of each project function that it calls."""
    seen: set[ast.AST] = set()
    todo = [(ctx, body, levels)]
    while todo:
        at, part, left = todo.pop()
        yield at, part
        for call in (node for node in walk(part) if left and isinstance(node, ast.Call)):
            for function in at.functions.callees(call):
                if function.node not in seen:
                    seen.add(function.node)
                    todo.append((at.at(function.module), function.body, left - 1))


def _below(ctx: Context, body: Iterable[ast.AST], levels: int) -> Iterator[tuple[Context, ast.AST]]:
    """Every node of some code and of the project functions it calls, with the context of its file."""
    seen: set[ast.AST] = set()
    todo = [(ctx, list(body), levels)]
    while todo:
        at, nodes, left = todo.pop()
        for node in walk(nodes):
            yield at, node
            for function in at.functions.callees(node) if left and isinstance(node, ast.Call) else ():
                if function.node not in seen:
                    seen.add(function.node)
                    todo.append((at.at(function.module), function.body, left - 1))


def _fails(ctx: Context, node: ast.AST) -> bool:
    if isinstance(node, COMPREHENSIONS):
        return any(_tensor(ctx, g.iter) for g in node.generators)
    if not isinstance(node, ast.Call):
        return False
    word = last_word(node.func)
    if word in OF_PYTHON:
        return True
    given = [*node.args, *(k.value for k in node.keywords)]
    if word in _NUMBERS or ctx.name(node.func).startswith("numpy."):
        return any(_tensor(ctx, g) for g in given)
    own = isinstance(node.func, ast.Name) and not ctx.definitions(node.func)
    if own and word in _ITERATING:
        return any(_tensor(ctx, g.value if isinstance(g, ast.Starred) else g) for g in given)
    return (
        own
        and word == "enumerate"
        and any(_tensor(ctx, g) for g in given)
        and not isinstance(ctx.parent(node), ast.For)
    )


def _tensor(ctx: Context, expr: ast.expr) -> bool:
    value = ctx.value(expr)
    return value.tag in TENSORS and not value.many


# ---- the same results ----------------------------------------------------------------------------------------------


def keeps_results(ctx: Context, function: Function) -> bool:
    """Whether a function gives the same results as a tf.function, judged by its actions, its calls and its
    arguments.
    """
    at = ctx.at(function.module)
    return not fails(at, function.body) and _pure(at, function, MAX_LEVELS, frozenset()) and _given(ctx, function)


def traced_once(ctx: Context, function: Function) -> bool:
    """Whether a function's Python code only builds the graph: the number of traces then does not affect results."""
    return _pure(ctx.at(function.module), function, MAX_LEVELS, frozenset(), returns=False)


def acts(ctx: Context, body: Iterable[ast.AST], levels: int = MAX_LEVELS) -> bool:
    """Whether Python code has an effect each time it runs: in a tf.function this happens once per trace, so the number
    of traces is visible.

    A call that is a statement has no purpose but its effect; those of TensorFlow happen in the graph.
    """
    return any(_acts(at, node) for at, node in _below(ctx, body, levels))


def _acts(ctx: Context, node: ast.AST) -> bool:
    if isinstance(node, (ast.Global, ast.Nonlocal, ast.Delete)):
        return True
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Call) and last_word(node.func) == "print":
        return ctx.name(node.func) != "tensorflow.print"
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call) or ctx.functions.callees(node.value):
        return False
    called = node.value.func
    return not ctx.name(called).startswith(("tensorflow.", "keras.")) and last_word(called) not in _IN_GRAPH


def traces_act(ctx: Context, made: ast.AST) -> bool:
    """Whether the tf.function made by a node, a decorated function or a call, has traces with Python effects."""
    if isinstance(made, ast.FunctionDef):
        return acts(ctx, made.body)
    given = made.args[0] if isinstance(made, ast.Call) and made.args else None
    function = ctx.function(given) if given is not None else None
    return function is not None and acts(ctx.at(function.module), function.body)


def returns_tensors(ctx: Context, function: Function) -> bool:
    """Whether a function returns tensors both inside and outside a graph; Python numbers become tensors inside."""
    at = ctx.at(function.module)
    found = [function.node.body] if isinstance(function.node, ast.Lambda) else function.scope.returns
    return all(_result(at, r) for r in found)


def _given(ctx: Context, function: Function) -> bool:
    """Whether the arguments of its calls keep their type: an array would become a tensor, which is stricter about
    types.
    """
    for parameter in function.parameters[int(function.cls is not None) :]:
        for at, expr in ctx.functions.given(function, parameter.arg):
            if expr is None:
                continue
            value = at.value(expr)
            if not value.known or value.tag in (Tag.NUMPY, Tag.PY_STRING) or value.many or value.parts:
                return False
            if value.tag is Tag.PY_SCALAR and not isinstance(expr, ast.Constant):
                return False  # traced again for each value
    return all(not call.keywords or all(k.arg for k in call.keywords) for _, call in ctx.functions.callers(function))


def _pure(ctx: Context, function: Function, levels: int, open_: frozenset[ast.AST], *, returns: bool = True) -> bool:
    if function.node in open_ or not levels or function.scope.yields or function.scope.shared:
        return False
    nodes = list(walk(function.body))
    if any(isinstance(n, ast.stmt) and not isinstance(n, _STATEMENTS) for n in nodes):
        return False
    if any(isinstance(n, (*FUNCTIONS, ast.IfExp, ast.BoolOp, ast.Await, ast.NamedExpr, ast.JoinedStr)) for n in nodes):
        return False
    if any(isinstance(n, (ast.Attribute, ast.Subscript)) and not isinstance(n.ctx, ast.Load) for n in nodes):
        return False
    if returns and not open_ and not all(_result(ctx, r) for r in function.scope.returns):
        return False
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    return all(_known(ctx, c, levels, open_ | {function.node}) for c in calls) and all(
        _loops(ctx, n) for n in nodes if isinstance(n, ast.For)
    )


def _loops(ctx: Context, loop: ast.For) -> bool:
    """Whether a loop iterates in Python: over a range of constants, pairs of variables and gradients, or a list of
    layers.
    """
    return not loop.orelse and not _tensor(ctx, loop.iter) and ctx.tag(loop.iter) not in (Tag.DATASET, Tag.ITERATOR)


def _result(ctx: Context, expr: ast.expr) -> bool:
    """Whether a result is a tensor both inside and outside a graph, or several of them, or None."""
    if isinstance(expr, (ast.Tuple, ast.List)):
        return all(_result(ctx, e) for e in expr.elts)
    if isinstance(expr, ast.Dict):
        return all(_result(ctx, v) for v in expr.values)
    return (isinstance(expr, ast.Constant) and expr.value is None) or computed(ctx, expr)


def computed(ctx: Context, expr: ast.expr, depth: int = 0) -> bool:
    """Whether a value comes from an op, a layer, a model or a loss."""
    if depth > 2 * MAX_LEVELS:
        return False
    if ctx.tag(expr) is Tag.TENSOR:
        return True
    if isinstance(expr, ast.Name):
        made = ctx.definitions(expr)
        return bool(made) and all(
            b.kind == "assign" and b.value is not None and computed(ctx, b.value, depth + 1) for b in made
        )
    if isinstance(expr, ast.BinOp):
        return computed(ctx, expr.left, depth + 1) or computed(ctx, expr.right, depth + 1)
    if isinstance(expr, ast.Call):
        called = ctx.value(expr.func)
        return _callable(called) or ctx.name(expr.func).startswith(("keras.losses.", "keras.ops."))
    return False


def _callable(value: Value) -> bool:
    """Whether a value is a model, a layer or a loss, as a callable object."""
    ours = value.tag in (Tag.MODEL, Tag.LAYER) or value.kind.startswith(("keras.losses.", "keras.metrics."))
    return ours and not value.many


def _known(ctx: Context, call: ast.Call, levels: int, open_: frozenset[ast.AST]) -> bool:
    """Whether a call only computes in the graph."""
    functions = ctx.functions.callees(call)
    if functions:
        return all(_pure(ctx.at(f.module), f, levels - 1, open_, returns=False) for f in functions)
    called = ctx.value(call.func)
    if _callable(called):
        return called.cls is None
    name = ctx.name(call.func)
    if name.startswith(_MAKING) or name.startswith(_ONCE):
        return name.startswith("tensorflow.Variable.assign")
    if name.startswith(("tensorflow.", "keras.losses.", "keras.ops.", "keras.activations.", "keras.metrics.")):
        return not name.rpartition(".")[2][:1].isupper() or name == "tensorflow.GradientTape"
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in _IN_GRAPH
    return isinstance(call.func, ast.Name) and not ctx.definitions(call.func) and call.func.id in _HARMLESS


def parameter_of(call: ast.Call, function: Function, argument: ast.expr) -> str:
    """The parameter that receives an argument of a call; "" if that is not visible."""
    names = [a.arg for a in (*function.parameters, *function.node.args.kwonlyargs)]
    return next((name for name in names if passed(call, function, name) is argument), "")
