"""Python code that feeds the training opens and decodes files one after the other.

## What it does
Reports PIL, OpenCV, `np.load`, librosa, pandas and other Python loaders that run once per element: in a generator
passed to `Dataset.from_generator` or `fit`, in `__getitem__` of a Keras `Sequence` that `fit` runs with one worker, or
in a loop that calls `train_on_batch`.

## Why it is slow
A generator runs in one Python thread: the next file is opened only after the previous one has been handed over, and
decoding, cropping and conversion hold the interpreter lock while the other cores idle. tf.data's own ops run in as many
threads as there are cores, ahead of the step. Measured with JPEGs of 256 x 256 pixels on two cores: 3.1 times the
throughput of a PIL generator; a public project reports 30 times for a change of this kind.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf
from PIL import Image

def images(paths):
    for path in paths:
        image = Image.open(path)
        yield np.array(image, "float32") / 255.0

paths = tf.io.gfile.glob("images/*.jpg")
batches = tf.data.Dataset.from_generator(
    lambda: images(paths), output_signature=tf.TensorSpec([256, 256, 3])
).batch(32)
```

Fixed:

```python
import tensorflow as tf

def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.cast(image, tf.float32) / 255.0

paths = tf.io.gfile.glob("images/*.jpg")
batches = tf.data.Dataset.from_tensor_slices(paths).map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(32)
```

## When it is silent
When files are loaded once before the loop; when each file holds many elements (a loop that yields is inside the loop
that loads); when `fit` is given `workers`; when the generator yields file names and a `map` loads them; when the
generator is unknown.

## Fix and its safety
Pass file names to the dataset and load them in `map` with `num_parallel_calls=tf.data.AUTOTUNE`: `tf.io.read_file` with
`tf.io.decode_jpeg`, `decode_png`, `tf.audio.decode_wav`. For formats that TensorFlow cannot read, use
`tf.numpy_function(np.load, [path], tf.float32)`, which loads several files at a time if the loader releases the
interpreter lock. Decoders and resizing methods round differently from PIL's and OpenCV's (and OpenCV gives BGR). Not
done automatically.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from stepscope.check.context import Call, Context
from stepscope.check.costs import LOADERS
from stepscope.check.hits import Hit
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Class
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

FEW = 10
"""Files that are too few to matter."""
SEQUENCES = frozenset({"keras.utils.Sequence", "keras.utils.PyDataset", "keras.utils.data_utils.Sequence"})
FIT = frozenset({"keras.Model.fit", "keras.Model.fit_generator"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report loaders in code that feeds a dataset or a training."""
    if call.name == "keras.Model.train_on_batch":
        yield from _training_loop(ctx, call)
        return
    if call.name in FIT:
        data = call.argument(0, "generator" if call.word == "fit_generator" else "x")
    else:
        data = call.argument(0, "generator")
    if data is None:
        return
    sequence = _sequence(ctx, data) if call.name in FIT else None
    if sequence is not None:
        if not _workers(ctx, call, sequence):
            yield from _report(ctx, call, ctx.functions.methods(sequence, "__getitem__"), "a Sequence with one worker")
        return
    if call.name in FIT and _asked(call):
        return
    functions = [f for f in _generators(ctx, data) if f.scope.yields]
    found = list(_report(ctx, call, functions, "a Python generator", loops=True))
    if call.name not in FIT or functions:
        yield from found


def _generators(ctx: Context, expr: ast.expr) -> Iterable[Function]:
    """Yield the generator functions in ``gen``, ``gen(paths)``, ``lambda: gen(paths)`` or ``partial(gen, paths)``."""
    if isinstance(expr, ast.Call) and (called := ctx.functions.callees(expr)):
        yield from called
        return
    if isinstance(expr, ast.Name):
        made = [b.value for b in ctx.definitions(expr) if b.kind == "assign"]
        calls = [m for m in made if isinstance(m, ast.Call)]
        for one in calls:
            yield from _generators(ctx, one)
        if calls:
            return
    function = ctx.function(expr)
    if function is None:
        return
    yield function
    at = ctx.at(function.module)
    if not function.scope.yields:
        for returned in function.scope.returns:
            if isinstance(returned, ast.Call):
                yield from at.functions.callees(returned)


def _sequence(ctx: Context, expr: ast.expr) -> Class | None:
    """The project class of an expression, if it is a Keras Sequence."""
    cls = ctx.value(expr).cls
    names = ctx.functions.lineage(cls) if cls is not None else ()
    return cls if any(name in SEQUENCES for name in names) else None


def _asked(call: Call) -> bool:
    """Whether ``fit`` is given workers, or hides its arguments."""
    return call.opaque or any(k.arg in ("workers", "use_multiprocessing") for k in call.node.keywords)


def _workers(ctx: Context, call: Call, cls: Class) -> bool:
    """Whether some code asks for more than one worker, or may."""
    if _asked(call):
        return True
    for init in ctx.functions.methods(cls, "__init__"):
        for node in walk(init.body):
            if isinstance(node, ast.Call) and any(k.arg in ("workers", None) for k in node.keywords):
                return True
    made = [part for part in ast.walk(ctx.module.tree) if isinstance(part, ast.Call)]
    return any(ctx.value(m).cls is cls and any(k.arg == "workers" for k in m.keywords) for m in made)


def _report(
    ctx: Context, call: Call, functions: Iterable[Function], title: str, *, loops: bool = False
) -> Iterator[Hit]:
    """Report the first loader of each function, if the function is in the file being checked."""
    for function in functions:
        at = ctx.at(function.module)
        found = [(where, c) for where, c in at.functions.calls_below(function.body) if _loader(where, c)]
        if loops:
            found = [(w, c) for w, c in found if _each(w, c, function)]
        if not found:
            continue
        where, loader = next(((w, c) for w, c in found if w.module is ctx.module), found[0])
        local = where.module is ctx.module
        name = next(n for n in where.names(loader.node.func) if n in LOADERS)
        yield ctx.hit(
            loader.node if local else call.node,
            f"{_short(name)} loads one file at a time in {title}, {function.name}",
            confidence=0.85,
            also=[ctx.places.span(call.node) if local else where.places.span(loader.node)],
        )


def _loader(ctx: Context, call: Call) -> bool:
    return any(name in LOADERS for name in ctx.names(call.node.func))


def _each(ctx: Context, call: Call, function: Function) -> bool:
    """Whether a node runs once per element: in a loop of the generator that contains no loop that yields, or in a
    function called from there.
    """
    for loop in ctx.loops.around(call.node):
        if loop.iterations is not None and loop.iterations <= FEW:
            return False
        if loop.module is function.module and _within(function, loop.node, ctx):
            return not any(_yields_in_loop(part) for part in loop.body)
    return False


def _within(function: Function, node: ast.AST, ctx: Context) -> bool:
    at = ctx.at(function.module)
    enclosing = at.enclosing(node)
    return enclosing is not None and enclosing.node is function.node


def _yields_in_loop(part: ast.AST) -> bool:
    return any(
        isinstance(inner, (ast.For, ast.While))
        and any(isinstance(leaf, (ast.Yield, ast.YieldFrom)) for leaf in walk([inner]))
        for inner in walk([part])
    )


def _training_loop(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report ``train_on_batch`` in a loop whose body loads files."""
    for loop in ctx.loops.around(call.node, calls=False):
        if loop.iterations is not None and loop.iterations <= FEW:
            continue
        for where, inner in ctx.functions.calls_below(loop.body):
            if where.module is ctx.module and _loader(where, inner):
                name = next(n for n in ctx.names(inner.node.func) if n in LOADERS)
                yield ctx.hit(
                    inner.node,
                    f"{_short(name)} loads files while the device waits, between calls of train_on_batch",
                    confidence=0.8,
                    also=[ctx.places.loop_span(loop)],
                )
        return


def _short(name: str) -> str:
    for long, short in (("numpy.", "np."), ("pandas.", "pd.")):
        if name.startswith(long):
            return short + name.removeprefix(long)
    return name


RULE = Rule(
    code="TFD008",
    name="python-file-loading",
    severity="warning",
    symptom="Time: slow execution time",
    cause="Data: inefficient data preprocessing",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="raw-input",
    speedup=3.1,
    remedy="pass file names to tf.data and load them in map with num_parallel_calls=tf.data.AUTOTUNE",
    calls=frozenset({"tensorflow.data.Dataset.from_generator", "keras.Model.train_on_batch", *FIT}),
    on_call=check,
    related=("INP003",),
)
