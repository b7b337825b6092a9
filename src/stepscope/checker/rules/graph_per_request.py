"""A graph is made in a function that answers requests.

## What it does
Reports `tf.function(...)`, `@tf.function` and `get_concrete_function` in a handler of a web framework (`@app.route`,
`@app.post`, `@router.get`, a `do_POST` method), and in functions of the project that such handlers call.

## Why it is slow
Each request traces the model again before it computes anything, and throws the graph away. Measured with a small model:
19 times the time of a request that calls a function made at start-up.

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
Where the function is kept: stored in an attribute, a global or a container, or made by a cached function.

## Fix and its safety
Make the function once, when the service starts, and call it once with an example, so that the first request does not
wait. Not done automatically.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.checker.context import Context
from stepscope.checker.hits import Hit
from stepscope.checker.idioms import MAKES_FUNCTIONS, in_test
from stepscope.checker.modules import Module
from stepscope.checker.names import Function
from stepscope.checker.rule import Rule
from stepscope.checker.syntax import last_word
from stepscope.checker.tags import Tag

HANDLERS = frozenset({"route", "post", "get", "put", "websocket", "api_view", "api_route"})
METHODS = frozenset({"do_POST", "do_GET"})
CACHES = frozenset({"cache", "lru_cache", "cached_property", "cached"})
MAX_LEVELS = 2


def check(ctx: Context, node: ast.AST) -> Iterator[Hit]:
    """What makes a tf.function, in a handler."""
    if in_test(ctx):
        return
    made: ast.AST
    if isinstance(node, ast.FunctionDef):
        function = ctx.engine.names.function(ctx.module, node)
        if function.cls is not None or not node.decorator_list or ctx.graph_decorator(function) is None:
            return
        made, name = node, node.name
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _makes(ctx, node.value):
        target = node.targets[0]
        if not isinstance(target, ast.Name) or target.id in ctx.module.scope_of(node).shared:
            return
        made, name = node.value, target.id
    else:
        return
    outer = ctx.enclosing(node)
    if outer is None or ctx.traced(node) or _leaves(ctx, outer, name):
        return
    handler = _handler(ctx, outer, MAX_LEVELS)
    if handler:
        yield ctx.hit(made, f"{name} is made and traced again for each request that {handler} answers", confidence=0.85)


def _makes(ctx: Context, call: ast.Call) -> bool:
    if ctx.name(call.func) == "tensorflow.function":
        return True
    func = call.func
    return (
        isinstance(func, ast.Attribute) and func.attr == "get_concrete_function" and ctx.tag(func.value) is Tag.FUNCTION
    )


def _leaves(ctx: Context, outer: Function, name: str) -> bool:
    """Returned, stored or handed on."""
    for part in ast.walk(outer.node):
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
            parent = ctx.parent(part)
            if not (isinstance(parent, ast.Call) and parent.func is part):
                return True
    return False


def _handler(ctx: Context, function: Function, levels: int) -> str:
    """The name of the handler that a function is, or is called by; "" when none is known."""
    words = [last_word(d.func) for d in function.decorators if isinstance(d, ast.Call)]
    if any(last_word(d.func if isinstance(d, ast.Call) else d) in CACHES for d in function.decorators):
        return ""
    if any(word in HANDLERS for word in words) or (function.cls is not None and function.name in METHODS):
        return function.name
    if not levels:
        return ""
    found = [_of_caller(ctx, module, call, levels) for module, call in ctx.callers(function)]
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
    speedup=19.0,
    remedy="make the tf.function once, when the service starts",
    nodes=(ast.FunctionDef, ast.Assign),
    on_node=check,
    mentions=MAKES_FUNCTIONS,
    since_version=(2, 0),
    related=("GRF001",),
)
