"""A setting makes every tf.function and Keras step run eagerly.

## What it does
Reports `tf.config.run_functions_eagerly(True)`, `tf.data.experimental.enable_debug_mode()`, `compile(run_eagerly=True)`
and `model.run_eagerly = True` if no condition controls them.

## Why it is slow
These are debugging switches: steps run op by op in Python, as if there were no tf.function, and functions of a tf.data
pipeline run in Python too. Measured with `fit` of a small dense model: 7.6 times the time of an epoch.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse", run_eagerly=True)
model.fit(np.zeros((960, 8)), np.zeros((960, 1)))
```

Fixed:

```python
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.zeros((960, 8)), np.zeros((960, 1)))
```

## When it is silent
When a condition controls the switch (`if args.debug:`) or the value is not a literal True; when the file switches it
off again; when the model's class uses NumPy or `.numpy()`, or, for the switch of all functions, a function of the file
calls `.numpy()`, which a graph cannot run; in a script (`if __name__ == "__main__":`) that runs no compiled step, and
imports no file that does: a demonstration, a conversion; in tests.

## Fix and its safety
Remove the switch. Code that relied on it (prints in each step, `.numpy()` in a layer, Python state) then runs only
while tracing, or fails. The fix is therefore applied only with `--unsafe-fixes`, and not if such code is visible.

## Versions
TensorFlow 2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.graphable import acts, returns_tensors
from stepscope.check.analyses.idioms import in_test, is_true, makers
from stepscope.check.context import Call, Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.names import Function
from stepscope.check.inference.relevance import is_main
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule

STEPS = ("call", "train_step", "test_step", "predict_step")
STEP_METHODS = frozenset("fit fit_generator train_on_batch test_on_batch predict predict_on_batch evaluate".split())
"""Methods of models that run compiled steps."""
SWITCH = "tensorflow.config.run_functions_eagerly"
DEBUG = "tensorflow.data.experimental.enable_debug_mode"
BEHAVIOUR = "Steps run as graphs: Python side effects happen only while tracing, and .numpy() in them fails."


def check(ctx: Context) -> Iterator[Hit]:
    """Report every such switch in a file."""
    if in_test(ctx):
        return
    switches = [c for c in ctx.calls("run_functions_eagerly", "experimental_run_functions_eagerly") if c.name == SWITCH]
    if not any(_off(call) for call in switches) and not _reads_in_functions(ctx):
        for call in switches:
            if not is_true(call.argument(0, "run_eagerly")) or _conditional(ctx, call.node):
                continue
            if not _idle(ctx, call.node):
                yield _statement(ctx, call.node, "all tf.functions run eagerly: op by op, in Python")
    for call in ctx.calls("enable_debug_mode"):
        if call.name == DEBUG and not _conditional(ctx, call.node):
            yield _statement(
                ctx, call.node, "the functions of all tf.data pipelines run in Python, one element at a time"
            )
    for call in ctx.calls("compile"):
        yield from _compile(ctx, call)
    for store in ctx.module.flow.stores:
        parent = ctx.parent(store)
        if (
            isinstance(store, ast.Attribute)
            and store.attr == "run_eagerly"
            and isinstance(parent, ast.Assign)
            and is_true(parent.value)
            and ctx.tag(store.value) is Tag.MODEL
            and not _conditional(ctx, parent)
            and not _needs_python(ctx, store.value)
        ):
            yield ctx.hit(parent, f"the steps of {ctx.text(store.value)} run eagerly: op by op, in Python")


def _reads_in_functions(ctx: Context) -> bool:
    """Whether functions of the file call ``.numpy()``, which would fail in a graph."""
    return any(ctx.enclosing(call.node) is not None for call in ctx.calls("numpy", "set_trace", "breakpoint"))


def _idle(ctx: Context, switch: ast.Call) -> bool:
    """Whether a script's own switch slows nothing down: neither the script nor what it imports runs compiled steps."""
    parent = ctx.parent(switch)
    while parent is not None and not (isinstance(parent, ast.If) and is_main(parent)):
        parent = ctx.parent(parent)
    if parent is None:
        return False
    targets = {name for imported in ctx.module.flow.imported.values() for name in imported}
    homes = {name.rpartition(".")[0] for name in targets} | targets
    near = [m for home in sorted(homes) if (m := ctx.engine.project.find(ctx.module, home)) is not None]
    return not any(_compiles(ctx.at(module)) for module in (ctx.module, *near))


def _compiles(ctx: Context) -> bool:
    """Whether a file trains, predicts, or makes a tf.function that is not only exported."""
    if not STEP_METHODS.isdisjoint(ctx.module.flow.calls):
        return True
    decorated = (node for node in makers(ctx) if isinstance(node, ast.FunctionDef))
    made = any(ctx.engine.inference.is_graph_function(ctx.engine.names.function(ctx.module, n)) for n in decorated)
    exports = bool(ctx.module.flow.calls.get("get_concrete_function"))
    return made or (not exports and any(call.name == "tensorflow.function" for call in ctx.calls("function")))


def _same_in_graphs(ctx: Context) -> bool:
    """Whether the file's tf.functions behave the same in a graph: tensors only, and no Python effect in each call."""
    for made in makers(ctx):
        if isinstance(made, ast.FunctionDef):
            function: Function | None = ctx.engine.names.function(ctx.module, made)
        else:
            given = made.args[0] if isinstance(made, ast.Call) and made.args else None
            function = ctx.function(given) if given is not None else None
        if function is None or not returns_tensors(ctx, function) or acts(ctx.at(function.module), function.body):
            return False
    return True


def _steps_act(ctx: Context, model: ast.expr) -> bool:
    """Whether the class of a model has a Python effect in each step."""
    cls = ctx.value(model).cls
    methods = [f for name in STEPS for f in ctx.functions.methods(cls, name)] if cls is not None else []
    return any(acts(ctx.at(f.module), f.body) for f in methods)


def _off(call: Call) -> bool:
    given = call.argument(0, "run_eagerly")
    return isinstance(given, ast.Constant) and given.value is False


def _statement(ctx: Context, node: ast.Call, text: str) -> Hit:
    parent = ctx.parent(node)
    fix: FixPlan | None = None
    if isinstance(parent, ast.Expr) and ctx.once(_same_in_graphs):
        fix = ctx.fix("remove-statement", "Remove it", parent, safety="unsafe", behaviour=BEHAVIOUR)
    return ctx.hit(node, text, confidence=0.95, fix=fix)


def _compile(ctx: Context, call: Call) -> Iterator[Hit]:
    if call.receiver is None or not is_true(call.argument(-1, "run_eagerly")) or _conditional(ctx, call.node):
        return
    known = ctx.tag(call.receiver) is Tag.MODEL
    if _needs_python(ctx, call.receiver):
        return
    yield ctx.hit(
        call.node,
        f"the steps of {ctx.text(call.receiver)} run eagerly: op by op, in Python",
        confidence=0.95 if known else 0.8,
        fix=ctx.fix(
            "remove-keyword",
            "Remove run_eagerly=True",
            call.node,
            safety="unsafe",
            behaviour=BEHAVIOUR,
            keyword="run_eagerly",
        )
        if not _steps_act(ctx, call.receiver)
        else None,
    )


def _conditional(ctx: Context, node: ast.AST) -> bool:
    """Whether a condition controls the switch, in its own function or around all its calls."""
    parent = ctx.parent(node)
    while parent is not None:
        if isinstance(parent, ast.If) and not is_main(parent):
            return True
        if isinstance(parent, (ast.IfExp, ast.Try)):
            return True
        parent = ctx.parent(parent)
    function = ctx.enclosing(node)
    callers = ctx.functions.callers(function) if function is not None else ()
    return bool(callers) and all(_under_if(ctx.at(module), call) for module, call in callers)


def _under_if(ctx: Context, node: ast.AST) -> bool:
    parent = ctx.parent(node)
    while parent is not None:
        if isinstance(parent, ast.If) and not is_main(parent):
            return True
        parent = ctx.parent(parent)
    return False


def _needs_python(ctx: Context, model: ast.expr) -> bool:
    """Whether the model is of a project class whose methods do something that a graph cannot."""
    cls = ctx.value(model).cls
    if cls is None:
        return False
    words = {"numpy", "item", "tolist", "py_function", "numpy_function", "pdb", "set_trace"}
    for part in ast.walk(cls.scope.node):
        if isinstance(part, ast.Attribute) and part.attr in words:
            return True
        if isinstance(part, ast.Call) and ctx.at(cls.module).name(part.func).startswith("numpy."):
            return True
    return False


RULE = Rule(
    code="TFF006",
    name="eager-mode-left-on",
    severity="error",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=7.2,
    remedy="remove the switch, or tie it to a debug option",
    on_file=check,
    since_version=(2, 0),
    related=("GRF003",),
)
