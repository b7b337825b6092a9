"""The same model is loaded or built repeatedly, in a loop or for each request.

## What it does
Reports calls that make a model (`load_model`, `saved_model.load`, `hub.load`, `from_pretrained`,
`keras.applications.*`, `keras.Model(other.input, ...)`) in a loop, in a function called from a loop, or in a request
handler, if their arguments are the same each time.

## Why it is slow
Loading reads and checks files, makes every layer and its weights again, and the first prediction traces and compiles
again; TensorFlow does not release everything it keeps for the old models. Measured with a small dense model and 20
batches: 3.8 times the time of loading once. The cost grows with the model.

## Example
Slow:

```python
import numpy as np
import keras

def score(batch):
    model = keras.models.load_model("model.keras")
    return model.predict(batch, verbose=0)

scores = [score(batch) for batch in np.zeros((20, 32, 16), "float32")]
```

Fixed:

```python
import numpy as np
import keras

model = keras.models.load_model("model.keras")
scores = model.predict(np.zeros((20, 32, 16), "float32").reshape(-1, 16), verbose=0)
```

## When it is silent
When another model is loaded each time, or may be; behind `if model is None`; in functions that cache their result
(`lru_cache`, `st.cache_resource`); when a condition runs it only every n-th time; in loops that train (each fold starts
from a fresh model); where a comment says that it is loaded again on
purpose; in loops of at most three iterations; in tests, and where only a test has the loop.

## Fix and its safety
Load the model before the loop, or when the server starts, and pass it to the code that needs it. `--unsafe-fixes` moves
the call out of the loop around it if the loop only asks the model for results. A model that keeps state between calls
(recurrent layers with `stateful=True`) must be reset.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses import hoisting
from stepscope.check.analyses.idioms import in_test
from stepscope.check.analyses.invariant import constant, invariant
from stepscope.check.analyses.reasons import RESTARTS, says
from stepscope.check.analyses.repeats import cached, called_in, handler, optional, rarely
from stepscope.check.context import Call, Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word

FEW = 3
"""Models that are too few to matter."""
LOADS = frozenset(
    "keras.models.load_model keras.models.model_from_json keras.models.model_from_yaml tensorflow.saved_model.load "
    "tensorflow_hub.load tensorflow_hub.KerasLayer tensorflow_hub.Module mlflow.keras.load_model "
    "mlflow.tensorflow.load_model".split()
)
TRAINS = frozenset(
    "keras.Model.fit keras.Model.fit_generator keras.Model.train_on_batch keras.Model.compile tensorflow.GradientTape "
    "keras.Optimizer.minimize keras.Optimizer.apply_gradients".split()
)
WRITES = ("save", "export", "copyfile", "copytree", "urlretrieve", "download")
"""Prefixes of functions that write files: the loaded model may then differ each time."""
TRAINING_WORDS = frozenset({"fit", "fit_generator", "train_on_batch", "compile", "GradientTape", "minimize"})
ASKS = frozenset("predict predict_on_batch evaluate test_on_batch count_params get_weights summary".split())
"""Methods of models that do not modify the model."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a call that makes a model that exists already."""
    if not _makes(ctx, call) or in_test(ctx) or optional(ctx.module, call.node) or call.opaque:
        return
    if says(ctx, call.node, RESTARTS):
        return
    function = ctx.enclosing(call.node)
    if function is not None and cached(function):
        return
    given = [*call.node.args, *(k.value for k in call.node.keywords)]
    name = ctx.text(call.node.func)
    for loop in ctx.loops.around(call.node):
        if (loop.iterations is not None and loop.iterations <= FEW) or rarely(ctx, call.node, loop):
            continue
        if _kept(ctx, loop) or _trains(ctx, call, loop) or not invariant(ctx, given, loop):
            continue
        around = f" through {ctx.text(loop.via[-1][1].func)}" if loop.via else ""
        yield ctx.hit(
            call.node,
            f"{name} makes the same model in every iteration of a loop{around}",
            confidence=0.85 if loop.via else 0.95,
            also=[ctx.places.loop_span(loop)],
            fix=_fix(ctx, call, loop),
        )
        return
    server = handler(ctx, call.node)
    if server is not None and constant(ctx, given):
        yield ctx.hit(call.node, f"{name} makes the same model for each request of {server.name}", confidence=0.85)


def _fix(ctx: Context, call: Call, loop: Loop) -> FixPlan | None:
    """Move ``model = load_model(path)`` before the loop if it stands directly in the loop's body."""
    statement = ctx.parent(call.node)
    if loop.via or not isinstance(statement, ast.Assign) or not hoisting.movable(ctx, statement, loop):
        return None
    if not all(isinstance(t, ast.Name) and _only_asked(ctx, t.id, loop) for t in statement.targets):
        return None
    return ctx.fix(
        "hoist-statement",
        "Load before the loop",
        statement,
        loop.node,
        safety="unsafe",
        behaviour="All iterations share one model and its state.",
    )


def _only_asked(ctx: Context, name: str, loop: Loop) -> bool:
    """Whether the loop only asks the model for results; passing the model on might change it."""
    return all(
        _asks(ctx, node)
        for part in loop.body
        for node in ast.walk(part)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    )


def _asks(ctx: Context, name: ast.Name) -> bool:
    parent = ctx.parent(name)
    if isinstance(parent, ast.Call):
        return parent.func is name
    called = ctx.parent(parent) if isinstance(parent, ast.Attribute) else None
    return isinstance(parent, ast.Attribute) and parent.attr in ASKS and isinstance(called, ast.Call)


def _makes(ctx: Context, call: Call) -> bool:
    if call.name in LOADS:
        return True
    if call.name == "keras.Model":
        sources = (call.argument(0, "inputs"), call.argument(1, "outputs"))
        return all(s is not None and _of_model(ctx, s) for s in sources)
    if call.name.startswith("transformers."):
        return call.word == "from_pretrained" and call.name.split(".")[-2].startswith("TF")
    return call.name.startswith("keras.applications.") and ctx.tag(call.node) is Tag.MODEL


def _of_model(ctx: Context, source: ast.expr) -> bool:
    """Whether a source is ``model.input``, ``model.get_layer(name).output``, or a list of those."""
    if isinstance(source, (ast.List, ast.Tuple)):
        return bool(source.elts) and all(_of_model(ctx, e) for e in source.elts)
    if not isinstance(source, ast.Attribute) or source.attr not in ("input", "inputs", "output", "outputs"):
        return False
    base = source.value
    if isinstance(base, ast.Call) and last_word(base.func) == "get_layer" and isinstance(base.func, ast.Attribute):
        base = base.func.value
    return ctx.tag(base) is Tag.MODEL


def _kept(ctx: Context, loop: Loop) -> bool:
    """Whether a call on the way to the loader runs only if nothing is cached yet, or caches its result."""
    for module, call in loop.via:
        function = ctx.at(module).enclosing(call)
        if optional(module, call) or (function is not None and cached(function)):
            return True
    return False


def _trains(ctx: Context, call: Call, loop: Loop) -> bool:
    names = called_in(ctx, call.node, loop)
    written = any(n.rpartition(".")[2].startswith(WRITES) for n in names)
    return written or bool(names & TRAINS) or any(n.startswith("?.") and n[2:] in TRAINING_WORDS for n in names)


RULE = Rule(
    code="KER003",
    name="model-loaded-in-loop",
    severity="error",
    symptom="Time: slow execution time",
    cause="Model: confusion with computation model",
    introduced_stage="prediction",
    exposed_stage="prediction",
    pipeline_stage="none",
    speedup=3.8,
    remedy="load the model once, before the loop or when the server starts",
    calls=LOADS | {"keras.Model", "keras.applications.*", "transformers.*"},
    on_call=check,
    related=("HST007",),
)
