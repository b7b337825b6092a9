"""A tf.function is made in a loop, or in a function called repeatedly, and is traced each time.

## What it does
Reports `tf.function(f)`, `@tf.function` and `get_concrete_function` that a loop repeats, directly or through the
enclosing function, if the result is called there and not kept; also those made by lambdas in a loop.

## Why it is slow
The tf.function object holds the graphs. A new object has none: it traces the Python code again, builds and optimises a
graph, runs it once and is discarded. That takes longer than running the same ops eagerly. Measured with two ops of a
small model: 30 times the time of a function made once.

## Example
Slow:

```python
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)

def score(x):
    @tf.function
    def total(x):
        return tf.reduce_sum(tf.square(x))
    return total(x)

for x in data:
    score(x)
```

Fixed:

```python
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)

@tf.function
def total(x):
    return tf.reduce_sum(tf.square(x))

def score(x):
    return total(x)

for x in data:
    score(x)
```

## When it is silent
When the function is made to be kept: returned, stored in an attribute or a container, or behind `functools.cache`; when
it belongs to a model, optimizer or environment made in the same iteration (folds, searches, agents); in loops of at
most ten iterations, in tests, and inside traced code. It is a warning if the new function then runs in its own loop. It
is info in a function that a loop calls and that itself contains a loop, so that a trace is a small part of it; and if
it is called once in a function that no loop of the project is known to call.

## Fix and its safety
Make the function once, at the top of the module or in `__init__`, and pass what it captured as arguments. What it
captured from the enclosing function then becomes an argument or an attribute: this changes the code and is left to you.

The fix moves a function that captures nothing from the loop before the loop, and one that needs only names of the
module above the enclosing function or its class: unsafe, because variables it makes are then made once. There is no fix
if each trace prints or appends.

## Versions
TensorFlow 2 (and `tf.contrib.eager.defun`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from stepscope.check.analyses import hoisting
from stepscope.check.analyses.graphable import traces_act
from stepscope.check.analyses.idioms import MAKES_FUNCTIONS, free_names, hot, in_test, makers
from stepscope.check.context import Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.bindings import FUNCTIONS
from stepscope.check.source.syntax import last_word

MADE = "tensorflow.function"
CACHES = frozenset({"cache", "lru_cache", "cached_property", "memoize", "cached", "singledispatch", "fixture"})
OWN = (Tag.MODEL, Tag.LAYER, Tag.OPTIMIZER, Tag.UNKNOWN, Tag.FUNCTION, Tag.VARIABLE)
"""Tags of values made in the same iteration that may require a new function each time."""
BEHAVIOUR = "All calls share it: its variables are made once."


class FunctionMade(Struct, frozen=True):
    """A place where a tf.function is made."""

    node: ast.AST
    """Node of the def, or of the call."""
    name: str
    """Name that the function is called by; "" if it is called immediately."""
    calls: tuple[ast.Call, ...]
    """Calls in the scope where the function is made."""
    kept: bool
    """Flag: the function outlives the iteration, because it is returned, stored or passed on."""


def check(ctx: Context) -> Iterator[Hit]:
    """Report every function that is made where it may be repeated."""
    for node in makers(ctx):
        yield from _check(ctx, node)


def _check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    made = _made(ctx, node)
    if made is None or in_test(ctx) or ctx.traced(made.node):
        return
    outer = ctx.enclosing(made.node)
    loops = hot(ctx.loops.around(made.node))
    if outer is not None and any(last_word(_target(d)) in CACHES for d in outer.decorators):
        return
    direct = [loop for loop in loops if not loop.via]
    what = made.name or ctx.text(made.node, 40)
    if direct and not made.kept and made.calls:
        loop = direct[0]
        if _captures_own(ctx, made, loop):
            return
        again = _in_loop_of_its_own(ctx, made, loop)
        yield ctx.hit(
            made.node,
            f"{what} is made and traced again in each iteration of this loop",
            severity="warning" if again else None,
            confidence=0.85,
            also=[ctx.places.loop_span(loop)],
            fix=None if _acts(ctx, made) else hoisting.statement(ctx, made.node, loop, behaviour=BEHAVIOUR),
        )
        return
    if outer is None or not made.calls or direct:
        return
    again = _in_loop_of_its_own(ctx, made, None) or _loops_itself(outer)
    for loop in loops:
        if any(ctx.at(m).traced(c) for m, c in loop.via):
            continue
        text = f"{what} is made and traced again in each call of {outer.name}"
        kept = made.kept or loop.is_comprehension  # a comprehension collects one per element
        yield _hit(ctx, made, loop, text, info=again or kept or _arguments_differ(ctx, made, outer, loop))
        return
    once = len(made.calls) == 1 and not again and isinstance(made.node, ast.FunctionDef)
    if once and outer.parameters and not _is_entry(outer) and not _known_callers(ctx, outer):
        yield ctx.hit(
            made.node,
            f"{what} is traced for one call in each call of {outer.name}: that takes longer than running it eagerly",
            severity="info",
            confidence=0.6,
        )


def _hit(ctx: Context, made: FunctionMade, loop: Loop, text: str, *, info: bool) -> Hit:
    return ctx.hit(
        made.node,
        text,
        severity="info" if info else None,
        confidence=0.6 if info else 0.9,
        also=[ctx.places.loop_span(loop)],
        fix=_out(ctx, made),
    )


def _acts(ctx: Context, made: FunctionMade) -> bool:
    """Whether each trace has a visible effect: prints, appends."""
    return traces_act(ctx, made.node)


def _out(ctx: Context, made: FunctionMade) -> FixPlan | None:
    """Move the function above the enclosing one."""
    statement = made.node if isinstance(made.node, ast.FunctionDef) else ctx.parent(made.node)
    if made.kept or not made.name or not isinstance(statement, ast.stmt) or _acts(ctx, made):
        return None
    return hoisting.out_of_function(ctx, statement, f"Make {made.name} once", BEHAVIOUR)


def _made(ctx: Context, node: ast.AST) -> FunctionMade | None:
    """The tf.function that a node makes: a decorated function, ``g = tf.function(f)`` or ``tf.function(f)(x)``."""
    if isinstance(node, ast.FunctionDef):
        function = ctx.engine.names.function(ctx.module, node)
        if function.cls is not None or ctx.functions.graph_decorator(function) is None:
            return None
        return FunctionMade(node, node.name, *_uses(ctx, node, node.name))
    parent = ctx.parent(node)
    if not isinstance(node, ast.Call) or not _makes(ctx, node):
        return None
    if isinstance(parent, ast.Call) and parent.func is node:
        return FunctionMade(node, "", (parent,), kept=False) if _in_plain_statement(ctx, parent) else None
    named = isinstance(parent, ast.Assign) and len(parent.targets) == 1 and parent.value is node
    if isinstance(parent, ast.Assign) and named and isinstance(parent.targets[0], ast.Name):
        return FunctionMade(node, parent.targets[0].id, *_uses(ctx, parent, parent.targets[0].id))
    return None


def _in_plain_statement(ctx: Context, call: ast.Call) -> bool:
    """Whether a call is part of a call that is a statement by itself, or of a value that is returned or added."""
    outermost: ast.AST = call
    parent = ctx.parent(call)
    while parent is not None and not isinstance(parent, ast.stmt):
        outermost, parent = parent, ctx.parent(parent)
    return isinstance(parent, (ast.Expr, ast.Return, ast.AugAssign)) and isinstance(outermost, ast.Call)


def _makes(ctx: Context, call: ast.Call) -> bool:
    if ctx.name(call.func) == MADE:
        return bool(call.args)
    return isinstance(call.func, ast.Attribute) and call.func.attr == "get_concrete_function" and (
        ctx.tag(call.func.value) is Tag.FUNCTION
    )  # fmt: skip


def _wrapped(call: ast.Call) -> ast.expr:
    """The function that becomes a graph: ``f`` in ``tf.function(f)`` and in ``f.get_concrete_function(x)``."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "get_concrete_function":
        return call.func.value
    return call.args[0]


def _uses(ctx: Context, node: ast.stmt, name: str) -> tuple[tuple[ast.Call, ...], bool]:
    """The calls of a name in the scope of its statement, and whether it has any other use."""
    scope = ctx.module.scope_of(node)
    calls: list[ast.Call] = []
    kept = name in scope.shared
    for part in ast.walk(scope.node):
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
            parent = ctx.parent(part)
            if isinstance(parent, ast.Call) and parent.func is part:
                calls.append(parent)
            else:
                kept = True
    return tuple(calls), kept


def _captures_own(ctx: Context, made: FunctionMade, loop: Loop) -> bool:
    """Whether it needs something made in the iteration that cannot be an argument."""
    function = ctx.engine.names.function(ctx.module, made.node) if isinstance(made.node, ast.FunctionDef) else None
    if function is None and isinstance(made.node, ast.Call):
        given = _wrapped(made.node)
        names = {n.id for n in ast.walk(given) if isinstance(n, ast.Name)}
        if isinstance(given, ast.Attribute) or (isinstance(given, ast.Name) and ctx.function(given) is None):
            return ctx.loops.varies(given, loop) is not False
        function = ctx.function(given)
    else:
        names = set()
    names |= free_names(function) if function is not None else set()
    return any(_own(ctx, name, loop) for name in names)


def _own(ctx: Context, name: str, loop: Loop) -> bool:
    """Whether the loop binds a name to something with state, or to something unknown."""
    scope = ctx.module.scope_of(loop.node)
    for binding in scope.bindings.get(name, ()):
        if binding.kind in ("phi", "def", "import") or not ctx.loops.inside(binding.node, loop):
            continue
        if binding.kind == "element" or ctx.engine.inference.binding(ctx.module, binding).tag in OWN:
            return True
    return False


def _in_loop_of_its_own(ctx: Context, made: FunctionMade, loop: Loop | None) -> bool:
    """Whether it is called in a loop inside the one that repeats its making."""
    for call in made.calls:
        for inner in ctx.loops.around(call, calls=False):
            if loop is not None and inner.node is loop.node:
                break
            if not ctx.loops.inside(made.node, inner):
                return True
    return False


def _loops_itself(outer: Function) -> bool:
    """Whether the enclosing function has a loop, so that a call of it takes long anyway."""
    return any(isinstance(part, (ast.For, ast.While)) for node in outer.body for part in ast.walk(node))


def _arguments_differ(ctx: Context, made: FunctionMade, outer: Function, loop: Loop) -> bool:
    """Whether it captures a parameter of the enclosing function that may be a different model or function each time."""
    function = ctx.engine.names.function(ctx.module, made.node) if isinstance(made.node, FUNCTIONS) else None
    if function is None and isinstance(made.node, ast.Call):
        named = _wrapped(made.node)
        function = ctx.function(named)
        if isinstance(named, ast.Name) and any(a.arg == named.id for a in outer.parameters):
            return True
    if function is None:
        return False
    parameters = {a.arg for a in outer.parameters} & free_names(function)
    scope = outer.scope
    for name in parameters - {"self"}:
        for binding in scope.bindings.get(name, ()):
            if ctx.engine.inference.binding(ctx.module, binding).tag not in (Tag.TENSOR, Tag.NUMPY, Tag.PY_SCALAR):
                at, call = ctx.at(loop.via[-1][0]), loop.via[-1][1]
                given = [*call.args, *(k.value for k in call.keywords)]
                if any(at.loops.varies(g, loop.node) is not False for g in given if at.loops.inside(g, loop.node)):
                    return True
    return False


def _known_callers(ctx: Context, function: Function, levels: int = 3) -> bool:
    """Whether the project's own code runs it, in no loop (one would have been found); tests and other utilities
    excepted.
    """
    for module, call in ctx.functions.callers(function):
        at = ctx.at(module)
        if in_test(at):
            continue
        outer = at.enclosing(call)
        if outer is None or _is_entry(outer) or (levels and _known_callers(ctx, outer, levels - 1)):
            return True
    return False


def _is_entry(function: Function) -> bool:
    return function.name in ("main", "run", "train", "__init__") or function.name.startswith(("test", "_test"))


def _target(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


RULE = Rule(
    code="TFF002",
    name="function-made-per-call",
    severity="error",
    symptom="Time: slow execution time",
    cause="Model: confusion with computation model",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=4.0,
    remedy="make the tf.function once, outside of the loop",
    on_file=check,
    mentions=MAKES_FUNCTIONS,
    related=("GRF001",),
)
