"""A map runs Python code for work that TensorFlow has ops for.

## What it does
Reports `tf.py_function` and `tf.numpy_function` in the function of a tf.data stage, if they run only NumPy, OpenCV, PIL
and text calls that TensorFlow has ops for: splitting and looking up words, arithmetic, casts, reading and decoding
images, resizing, flipping.

## Why it is slow
Each call takes the interpreter lock, so that elements wait for each other and for the training loop's own Python,
whatever `num_parallel_calls` says; tensors are converted in both directions; and the function counts as stateful, so
that tf.data does not optimise it. Measured with a scaling of rows of 64 numbers: 3 times the CPU time.

## Example
Slow:

```python
import numpy as np
import tensorflow as tf

def scale(x):
    return np.log1p(np.abs(x)).astype("float32")

def load(x):
    return tf.numpy_function(scale, [x], tf.float32)

rows = tf.data.Dataset.from_tensor_slices(np.load("x.npy"))
batches = rows.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(256)
```

Fixed:

```python
import numpy as np
import tensorflow as tf

def load(x):
    return tf.math.log1p(tf.abs(x))

rows = tf.data.Dataset.from_tensor_slices(np.load("x.npy"))
batches = rows.batch(256).map(load, num_parallel_calls=tf.data.AUTOTUNE)
```

## When it is silent
When the Python function calls anything without a counterpart in TensorFlow (`np.load`, librosa, tokenizers, the
project's own objects), or its calls are unknown.

## Fix and its safety
Write the function with TensorFlow ops. Numerical details may differ (resizing and decoding round differently, OpenCV
gives BGR), and NumPy's random seeds do not affect TensorFlow's. Not done automatically.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import free_names
from stepscope.check.context import Call, Context
from stepscope.check.costs import PYTHON
from stepscope.check.hits import Hit
from stepscope.check.inference.names import Function
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import walk

STAGES = frozenset(f"tensorflow.data.Dataset.{name}" for name in ("map", "interleave", "flat_map", "filter"))
COUNTERPARTS = frozenset(
    """
    cv2.imread cv2.imdecode cv2.resize cv2.flip cv2.cvtColor PIL.Image.open PIL.Image.fromarray
    numpy.abs numpy.absolute numpy.add numpy.subtract numpy.multiply numpy.divide numpy.power numpy.sqrt numpy.square
    numpy.exp numpy.log numpy.log1p numpy.log2 numpy.log10 numpy.sin numpy.cos numpy.tanh numpy.clip numpy.maximum
    numpy.minimum numpy.round numpy.floor numpy.ceil numpy.sum numpy.mean numpy.std numpy.var numpy.max numpy.min
    numpy.amax numpy.amin numpy.argmax numpy.argmin numpy.concatenate numpy.stack numpy.hstack numpy.vstack
    numpy.expand_dims numpy.squeeze numpy.reshape numpy.transpose numpy.tile numpy.repeat numpy.pad numpy.zeros
    numpy.ones numpy.zeros_like numpy.ones_like numpy.full numpy.arange numpy.eye numpy.where numpy.flip numpy.fliplr
    numpy.flipud numpy.rot90 numpy.roll numpy.dot numpy.matmul numpy.array numpy.asarray numpy.float32 numpy.float64
    numpy.int32 numpy.int64 numpy.uint8 numpy.random.uniform numpy.random.normal numpy.random.rand numpy.random.randn
    numpy.random.randint numpy.random.random numpy.fromstring numpy.frombuffer numpy.cumsum numpy.less numpy.greater
    random.random random.uniform random.randint math.log math.exp math.sqrt re.findall re.split re.sub
    zlib.decompress gzip.decompress
    """.split()
)
METHODS = frozenset(
    "astype reshape transpose mean sum max min std var clip copy flatten squeeze decode numpy resize convert "
    "item lower upper strip split replace findall sub get".split()
)
MESSAGES = ("tensorflow.train.",)
"""Prefixes of protocol buffers, which no op makes."""
BUILTINS = frozenset("int float len range str abs min max".split())


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a stage whose function runs Python."""
    given = call.argument(0, "predicate" if call.word == "filter" else "map_func")
    function = ctx.function(given) if given is not None else None
    if function is None:
        return
    for effect in ctx.functions.effects(function):
        if effect.kind != "python" or not isinstance(effect.node, ast.Call):
            continue
        at = ctx.at(effect.module)
        title = _replaceable(at, effect.node)
        if not title:
            continue
        local = effect.module is ctx.module
        short = effect.name.replace("tensorflow.", "tf.")
        yield ctx.hit(
            effect.node if local else call.node,
            f"{short} runs {title} in Python, although TensorFlow has ops for it",
            confidence=0.8,
            also=[ctx.places.span(call.node) if local else at.places.span(effect.node)],
        )


def _replaceable(ctx: Context, call: ast.Call) -> str:
    """The name of the function run in Python, if TensorFlow has ops for all of it; "" otherwise."""
    given = Call(call, "").argument(0, "func")
    if given is None:
        return ""
    names = ctx.names(given)
    if names:
        return ctx.text(given) if all(name in COUNTERPARTS for name in names) else ""
    function = ctx.function(given)
    if function is None or not _simple(ctx.at(function.module), function, 2):
        return ""
    return "a lambda" if function.name == "<lambda>" else function.name


def _simple(ctx: Context, function: Function, levels: int) -> bool:
    """Whether every call in a function has a counterpart, and it uses only its arguments."""
    for node in walk(function.body):
        if isinstance(node, (ast.While, ast.Try, ast.With, ast.Global, ast.Nonlocal, ast.For)):
            return False
        if isinstance(node, ast.Subscript) and _of_program(ctx, function, node.value):
            return False
        if isinstance(node, ast.Call) and not _counterpart(ctx, node, levels):
            return False
    return True


def _of_program(ctx: Context, function: Function, read: ast.expr) -> bool:
    """Whether what is read from is an object around the function of which nothing is known: a video, a file."""
    return isinstance(read, ast.Name) and read.id in free_names(function) and not ctx.value(read).known


def _counterpart(ctx: Context, call: ast.Call, levels: int) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id in BUILTINS and not ctx.definitions(call.func):
        return True
    names = ctx.names(call.func)
    if names:
        return all(
            n in COUNTERPARTS
            or (n.startswith("tensorflow.") and n not in PYTHON and not n.startswith(MESSAGES))
            or (n.startswith("numpy.ndarray.") and n.rpartition(".")[2] in METHODS)
            for n in names
        )
    callees = ctx.functions.callees(call)
    if callees:
        return levels > 0 and all(c.cls is None and _simple(ctx.at(c.module), c, levels - 1) for c in callees)
    return isinstance(call.func, ast.Attribute) and call.func.attr in METHODS


RULE = Rule(
    code="TFD007",
    name="python-function-in-map",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: not using efficient API",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    speedup=2.6,
    remedy="write the function with TensorFlow's ops",
    calls=STAGES,
    on_call=check,
    related=("INP002",),
)
