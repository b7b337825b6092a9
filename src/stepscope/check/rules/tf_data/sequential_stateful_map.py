"""A tf.data stage handles one element at a time, because its function is stateful or the stage was never made parallel.

## What it does
Reports `map` without `num_parallel_calls` if its function is stateful (random ops, a captured Variable, a lookup table,
`py_function`, `numpy_function`), and `interleave` without it.

## Why it is slow
tf.data parallelises a `map` by default, but only if its function has no state: a stateless one runs in parallel with or
without the argument. A stateful function runs one element at a time on one core, and so does every `interleave`.
Measured with a stateful function of 10 ms, eight parallel calls on two cores: 2.8 times the throughput.

## Example
Slow:

```python
import tensorflow as tf

def augment(image):
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_brightness(image, 0.2)

images = tf.data.Dataset.from_tensor_slices(tf.zeros([512, 64, 64, 3]))
batches = images.map(augment).batch(32)
```

Fixed:

```python
import tensorflow as tf

def augment(image):
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_brightness(image, 0.2)

images = tf.data.Dataset.from_tensor_slices(tf.zeros([512, 64, 64, 3]))
batches = images.map(augment, num_parallel_calls=tf.data.AUTOTUNE).batch(32)
```

## When it is silent
When the function is stateless on a version that parallelises it; when nothing is known about the function; when the
arguments are hidden in `*args` or `**kwargs`; where a comment says why it is sequential ("not parallel: the reader is
not thread-safe"); for a `Sequential` of layers without weights (`Resizing`, `Rescaling`), which has no state; on
sources of a few elements (`range(10)`, `from_tensors`); for a handful of casts and changes of shape on elements not
known to be images; for an `interleave` of one input at a time or of datasets in memory. Cheap functions that work on
batches, and functions that call a model on a batch, are info: their ops run in parallel themselves. So are functions
that draw random numbers and do arithmetic, on neither images nor strings (noise on 64 floats: 1.0 to 1.4 times), and
stateless functions that cost almost nothing, or casts for one pass of `evaluate` or `predict`, on versions that do not
parallelise them. Augmentation that the call disables (`preprocess(image, training=False)`) does not count.

## Fix and its safety
Pass `num_parallel_calls=tf.data.AUTOTUNE`. Elements keep their order; random ops draw in another order, so that a run
with fixed seeds gives other numbers than before (`deterministic` does not change that). A function with `py_function`
still runs Python one call at a time: moving the work into TensorFlow ops gains more. If its Python uses more than its
arguments, there is no fix: an open file or a reader may bear one caller at a time.

## Versions
With TensorFlow before 2.7, which does not parallelise `map` by default, every `map` without the argument is reported;
as info if something that the function calls is unknown and none of its known calls is costly. For 2.7 to 2.11, where
the project's own pin does not rule out older versions, a stateless `map` that reads, parses or decodes is info.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import shares_nothing
from stepscope.check.analyses.reasons import SEQUENTIAL, says
from stepscope.check.context import Call, Context
from stepscope.check.costs import heavy
from stepscope.check.hits import CheckSeverity, FixPlan, Hit
from stepscope.check.inference.effects import Effect
from stepscope.check.inference.names import Function
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word

PARALLEL_BY_DEFAULT = (2, 7)
"""First version that parallelises stateless maps (option ``map_parallelization``)."""
STILL_OLDER = (2, 12)
"""Version up to which projects commonly allow a TensorFlow before 2.7 as well."""
FEW = 32
"""Elements of a source that is too small to need a second core."""
FEW_CALLS = 4
TRIVIAL = frozenset(
    "tensorflow.cast tensorflow.expand_dims tensorflow.squeeze tensorflow.reshape tensorflow.one_hot "
    "tensorflow.identity tensorflow.multiply tensorflow.add tensorflow.subtract tensorflow.divide".split()
)
"""Ops that cost microseconds on an element that is not an image: less than handing it to another thread."""
CASTS = TRIVIAL | {"tensorflow.image.convert_image_dtype"}
"""Ops that cost little on an image."""
ONCE = frozenset({"evaluate", "predict"})
"""Methods of a model that go through a Dataset once."""
IMAGES = ("keras.datasets.cifar", "tensorflow_datasets.load")
"""Prefixes of functions that return datasets of images, or may."""
POSITION = {"map": 1, "map_with_legacy_function": 1, "interleave": 3}
"""Position of ``num_parallel_calls`` among the arguments."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a map or interleave without parallelism."""
    given = call.argument(POSITION[call.word], "num_parallel_calls")
    if call.opaque or not _sequential(ctx, given) or _few(ctx, call) or says(ctx, call.node, SEQUENTIAL):
        return
    function_expr = call.argument(0, "map_func")
    function = ctx.function(function_expr) if function_expr is not None else None
    told = _interleave(ctx, call, function) if call.word == "interleave" else _map(ctx, call, function)
    if told is None:
        return
    message, severity = told
    yield ctx.hit(
        call.node,
        message,
        confidence=0.9 if severity == "warning" else 0.6,
        severity=severity,
        fix=_fix(ctx, call, function) if given is None else None,
    )


def _fix(ctx: Context, call: Call, function: Function | None) -> FixPlan | None:
    """Add the argument; never where Python in the function may use objects that bear one caller at a time."""
    effects = ctx.functions.effects(function) if function is not None and call.word != "interleave" else ()
    kinds = {effect.kind for effect in effects}
    if any(effect.kind == "python" and not _shares_nothing(ctx, effect) for effect in effects):
        return None
    unsafe = call.word != "interleave" and (function is None or bool(kinds - {"table"}))
    drawn = "; random ops draw in a different order" if "random" in kinds else ""
    state = "; what it writes is written by several calls at once" if kinds & {"variable", "side effect"} else ""
    return ctx.fix(
        "add-keyword",
        "Add num_parallel_calls=tf.data.AUTOTUNE",
        call.node,
        safety="unsafe" if unsafe else "safe",
        behaviour=f"Elements keep their order{drawn}{state}.",
        keyword="num_parallel_calls",
        value="tensorflow.data.AUTOTUNE",
    )


def _shares_nothing(ctx: Context, effect: Effect) -> bool:
    """Whether the Python function that an op runs reads only what it is given."""
    at = ctx.at(effect.module)
    given = Call(effect.node, "").argument(0, "func") if isinstance(effect.node, ast.Call) else None
    function = at.function(given) if given is not None else None
    return function is not None and shares_nothing(at, function)


def _interleave(ctx: Context, call: Call, function: Function | None) -> tuple[str, CheckSeverity] | None:
    """Message and severity for an interleave of several inputs that, as far as known, are costly to make."""
    length = call.argument(1, "cycle_length")
    if length is not None and ctx.loops.integer(length) == 1:
        return None
    if function is not None:
        at = ctx.at(function.module)
        called = ctx.functions.called(function)
        passed_on = [r for r in function.scope.returns if isinstance(r, ast.Name) and not at.chains(r)]
        if not called and passed_on == function.scope.returns:
            return None
    return "interleave without num_parallel_calls reads its inputs one after the other", "warning"


def _map(ctx: Context, call: Call, function: Function | None) -> tuple[str, CheckSeverity] | None:
    """Message and severity for a sequential map."""
    if function is None:
        return None
    effects = ctx.functions.effects(function)
    called = ctx.functions.called(function)
    message = f"map runs {_title(function)} on one element at a time{_because(effects)}"
    if not effects and ctx.target.tensorflow >= PARALLEL_BY_DEFAULT:
        older = ctx.target.tensorflow < STILL_OLDER and not ctx.target.oldest
        still = older and any(heavy(name) for name in called)
        return (f"{message} with TensorFlow before 2.7", "info") if still else None
    works = any(heavy(name) or name.startswith("tensorflow.image.") for name in called)
    drawn = all(effect.kind == "random" and not effect.name.startswith("tensorflow.image.") for effect in effects)
    if "" in called and not works and drawn:
        return message, "info"
    light = "" not in called and not works
    if light and not effects:
        gain = called - TRIVIAL or len(called) > FEW_CALLS or _images(ctx, call) or _batched(ctx, call)
        return (message, "info") if gain else None
    if not effects and called - {""} <= CASTS and _one_pass(ctx, call):
        return message, "info"
    own = light or all(effect.kind == "variable" for effect in effects)
    quick = _batched(ctx, call) or (light and drawn)
    return message, "info" if own and effects and quick else "warning"


def _one_pass(ctx: Context, call: Call) -> bool:
    """Whether the stage's elements are used once: its Dataset is handed to ``evaluate`` or ``predict`` right here."""
    node: ast.AST = call.node
    parent = ctx.parent(node)
    while isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node):
        node, parent = parent, ctx.parent(parent)
    return isinstance(parent, ast.Call) and node in parent.args and last_word(parent.func) in ONCE


def _images(ctx: Context, call: Call) -> bool:
    """Whether the elements are known to be images, for which even a cast is costly."""
    for chain in ctx.chains(call.receiver) if call.receiver is not None else ():
        at = ctx.at(chain.source.module)
        for node in ast.walk(chain.source.call) if chain.source.call is not None else ():
            if isinstance(node, ast.Name) and any(
                isinstance(b.value, ast.Call) and at.name(b.value.func).startswith(IMAGES) for b in at.definitions(node)
            ):
                return True
    return False


def _batched(ctx: Context, call: Call) -> bool:
    """Whether the function receives batches, on which its ops run in parallel themselves."""
    chains = ctx.chains(call.receiver) if call.receiver is not None else ()
    last = [[name for name in chain.names if name in ("batch", "padded_batch", "unbatch")][-1:] for chain in chains]
    return bool(chains) and all(name and name[0] != "unbatch" for name in last)


def _sequential(ctx: Context, given: ast.expr | None) -> bool:
    """Whether the argument is missing, None or 1."""
    if given is None:
        return True
    return (isinstance(given, ast.Constant) and given.value is None) or ctx.loops.integer(given) == 1


def _few(ctx: Context, call: Call) -> bool:
    """Whether every chain that leads here begins with a handful of elements."""
    if call.receiver is None:
        return False
    sources = [chain.source for chain in ctx.chains(call.receiver)]
    if sources and all(source.name == "from_tensors" for source in sources):
        return all("repeat" not in chain.names for chain in ctx.chains(call.receiver))
    elements = ctx.engine.relevance.elements(ctx.module, call.receiver)
    return elements is not None and elements <= FEW


def _title(function: Function) -> str:
    return "its lambda" if function.name == "<lambda>" else function.name


def _because(effects: tuple[Effect, ...]) -> str:
    """What makes the function stateful, in the user's names."""
    if not effects:
        return ""
    effect = effects[0]
    short = effect.name.replace("tensorflow.", "tf.")
    return {
        "random": f": {short} makes it stateful",
        "variable": f": it reads the variable {short}",
        "table": f": the lookup table of {short} makes it stateful",
        "python": f": {short} makes it stateful",
        "side effect": f": {short} makes it stateful",
    }[effect.kind]


RULE = Rule(
    code="TFD001",
    name="sequential-stateful-map",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    speedup=2.8,
    remedy="pass num_parallel_calls=tf.data.AUTOTUNE",
    calls=frozenset(f"tensorflow.data.Dataset.{name}" for name in POSITION),
    on_call=check,
    related=("INP001",),
)
