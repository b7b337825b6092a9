"""A function that answers requests makes a graph.

## What it does
Reports `tf.function(...)`, `@tf.function` and `get_concrete_function` in a handler of a web framework (`@app.route`,
`@app.post`, `@router.get`, a `do_POST` method), and in project functions that such handlers call.

## Why it is slow
Each request traces the model again before it computes anything, and then discards the graph. Measured with a small
model: 19 times the time of a request that calls a function made at start-up.

## Example
Slow:

```python
import flask
import tensorflow as tf

app = flask.Flask("scores")
model = tf.keras.models.load_model("model.keras")

@app.route("/score", methods=["POST"])
def score():
    x = tf.constant([flask.request.json["x"]])
    call = tf.function(model)
    return {"score": call(x).numpy().tolist()}
```

Fixed:

```python
import flask
import tensorflow as tf

app = flask.Flask("scores")
model = tf.keras.models.load_model("model.keras")
call = tf.function(model, reduce_retracing=True)

@app.route("/score", methods=["POST"])
def score():
    x = tf.constant([flask.request.json["x"]])
    return {"score": call(x).numpy().tolist()}
```

## When it is silent
When the function is kept: stored in an attribute, a global or a container, or made by a cached function.

## Fix and its safety
Make the function once, when the service starts, and call it once with an example, so that the first request does not
wait. The fix moves the statement above the handler, or its class, if it needs only names of the module: unsafe, because
it then runs when the module is loaded. There is no fix if each trace prints or appends.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses import hoisting
from stepscope.check.analyses.graphable import traces_act
from stepscope.check.analyses.idioms import MAKES_FUNCTIONS, in_test, makers
from stepscope.check.context import Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import last_word

HANDLERS = frozenset({"route", "post", "get", "put", "websocket", "api_view", "api_route"})
METHODS = frozenset({"do_POST", "do_GET"})
CACHES = frozenset({"cache", "lru_cache", "cached_property", "cached"})
MAX_LEVELS = 2
BEHAVIOUR = "It is made when the module is loaded, and all requests share it."


def check(ctx: Context) -> Iterator[Hit]:
    """Report what makes a tf.function in a handler."""
    for made in makers(ctx) if not in_test(ctx) else ():
        outer = ctx.enclosing(made)
        name = _name(ctx, made) if outer is not None else ""
        if outer is None or not name or ctx.traced(made) or _leaves(ctx, outer, name):
            continue
        handler = _handler(ctx, outer, MAX_LEVELS)
        if handler:
            text = f"{name} is made and traced again for each request that {handler} answers"
            yield ctx.hit(made, text, confidence=0.85, fix=_fix(ctx, made, name))


def _fix(ctx: Context, made: ast.AST, name: str) -> FixPlan | None:
    statement = made if isinstance(made, ast.FunctionDef) else ctx.parent(made)
    if not isinstance(statement, ast.stmt) or traces_act(ctx, made):
        return None
    return hoisting.out_of_function(ctx, statement, f"Make {name} when the service starts", BEHAVIOUR)


def _name(ctx: Context, made: ast.AST) -> str:
    """The name that the enclosing function uses for a tf.function; "" if a node makes none, or one that outlives the
    function.
    """
    if isinstance(made, ast.FunctionDef):
        function = ctx.engine.names.function(ctx.module, made)
        return made.name if function.cls is None and ctx.functions.graph_decorator(function) is not None else ""
    parent = ctx.parent(made)
    if not isinstance(made, ast.Call) or not isinstance(parent, ast.Assign) or not _makes(ctx, made):
        return ""
    target = parent.targets[0]
    return target.id if isinstance(target, ast.Name) and target.id not in ctx.module.scope_of(parent).shared else ""


def _makes(ctx: Context, call: ast.Call) -> bool:
    if ctx.name(call.func) == "tensorflow.function":
        return True
    func = call.func
    return (
        isinstance(func, ast.Attribute) and func.attr == "get_concrete_function" and ctx.tag(func.value) is Tag.FUNCTION
    )


def _leaves(ctx: Context, outer: Function, name: str) -> bool:
    """Whether a function is returned, stored or passed on."""
    for part in ast.walk(outer.node):
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
            parent = ctx.parent(part)
            if not (isinstance(parent, ast.Call) and parent.func is part):
                return True
    return False


def _handler(ctx: Context, function: Function, levels: int) -> str:
    """The name of the handler that a function is, or is called by; "" if none is known."""
    words = [last_word(d.func) for d in function.decorators if isinstance(d, ast.Call)]
    if any(last_word(d.func if isinstance(d, ast.Call) else d) in CACHES for d in function.decorators):
        return ""
    if any(word in HANDLERS for word in words) or (function.cls is not None and function.name in METHODS):
        return function.name
    if not levels:
        return ""
    found = [_of_caller(ctx, module, call, levels) for module, call in ctx.functions.callers(function)]
    return next((name for name in found if name), "")


def _of_caller(ctx: Context, module: Module, call: ast.Call, levels: int) -> str:
    at = ctx.at(module)
    outer = at.enclosing(call)
    return _handler(at, outer, levels - 1) if outer is not None else ""


RULE = Rule(
    code="TFF014",
    name="graph-per-request",
    severity="error",
    symptom="Time: slow execution time",
    cause="Model: confusion with computation model",
    introduced_stage="prediction",
    exposed_stage="prediction",
    pipeline_stage="forward-backward",
    speedup=15.0,
    remedy="make the tf.function once, when the service starts",
    on_file=check,
    mentions=MAKES_FUNCTIONS,
    since_version=(2, 0),
    related=("GRF001",),
)
