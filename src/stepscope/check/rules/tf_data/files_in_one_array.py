"""A loop decodes every file into a list, and one array is made of it to train on.

## What it does
Reports `np.array`, `np.stack`, `tf.stack`, ... of a list that a loop fills with pictures, sounds or arrays loaded from
files, in a program that trains on arrays. It says so if the array is then divided, which makes each byte a float64.

## Why it is slow
Nothing is trained until the last file is decoded, and all are in memory: once in the list, once more in the array, and
as eight bytes for each byte of a picture after `/ 255.0`. When the folder grows, the machine runs out of memory. A
Dataset holds a few batches, and decodes the next ones while the step runs. Measured with 1,500 pictures of 128 x 128
pixels: 1.5 GB more than before the first batch, against 53 MB; with 600 pictures, 2 times the time until the end of the
first pass.

## Example
Slow:

```python
import glob
import keras
import numpy as np
from PIL import Image

images = []
for path in glob.glob("images/*.jpg"):
    images.append(np.asarray(Image.open(path)))
x = np.array(images) / 255.0

model = keras.Sequential([keras.layers.Conv2D(16, 3), keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, np.zeros(len(x)))
```

Fixed:

```python
import keras

images = keras.utils.image_dataset_from_directory("images", labels=None, image_size=(128, 128), batch_size=32)
batches = images.map(lambda x: (x, x[:, 0, 0, :1]))

model = keras.Sequential([
    keras.layers.Rescaling(1 / 255),
    keras.layers.Conv2D(16, 3),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(1),
])
model.compile("adam", "mse")
model.fit(batches)
```

## When it is silent
For ten files or fewer; where nothing in the file that makes the array, or in those that call its function, trains; in
tests. It is info: how large the folder is, the source does not say, and a small one is better off in memory.

## Fix and its safety
`keras.utils.image_dataset_from_directory`, or a Dataset of the file names with a `map` that decodes. A folder that fits
into memory may stay an array: then fill one of the final size and type (`np.empty((n, 128, 128, 3), "uint8")`), and
let a `Rescaling` layer divide. Not done automatically.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.context import Call, Context
from stepscope.check.costs import DECODES, LOADERS
from stepscope.check.hits import Hit
from stepscope.check.rule import Rule

FEW = 10
"""Files that are too few to matter."""
MAX_DEPTH = 6
"""Names and calls between a loader and the list."""
TABLES = ("pandas.", "numpy.loadtxt", "numpy.genfromtxt", "scipy.io.loadmat")
"""Loaders whose files usually hold many rows of a small table."""
FEEDS = ("fit", "fit_generator", "from_tensor_slices", "train_on_batch")
DECODERS = frozenset(name for name in LOADERS | DECODES if not name.startswith(TABLES))
BYTES = ("PIL.", "cv2.", "imageio.", "skimage.", "tensorflow.io.decode_")
"""Loaders of pictures that give one byte per channel."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report an array of everything that a loop loads."""
    given = call.node.args[0] if call.node.args else None
    if given is None or in_test(ctx) or _again(ctx, call):
        return
    filled = _filled(ctx, given)
    if filled is None or not _trains(ctx, call):
        return
    place, loader = filled
    text = (
        f"{ctx.text(given, 30)} holds each file that {_short(loader)} loads, and {ctx.text(call.node.func)} copies it"
    )
    wide = loader.startswith(BYTES) and "dtype" not in ctx.text(call.node, 200) and _divided(ctx, call.node)
    yield ctx.hit(
        call.node,
        f"{text}; divided, each byte becomes a float64" if wide else text,
        confidence=0.8,
        also=[ctx.places.span(place)],
    )


def _again(ctx: Context, call: Call) -> bool:
    """Whether such an array is made again and again: a batch, not everything."""
    function = ctx.enclosing(call.node)
    by_index = function is not None and (function.name.endswith("__getitem__") or bool(function.scope.yields))
    return by_index or ctx.traced(call.node) or bool(ctx.loops.around(call.node))


def _filled(ctx: Context, given: ast.expr) -> tuple[ast.AST, str] | None:
    """The place that fills a list with loaded files, and the loader's name; None if it holds anything else."""
    if isinstance(given, ast.ListComp):
        loader = _loader(ctx, given.elt, 0)
        length = ctx.loops.length(given.generators[0].iter)
        return (given, loader) if loader and (length is None or length > FEW) else None
    if not isinstance(given, ast.Name):
        return None
    made = [b.value for b in ctx.definitions(given) if b.kind == "assign"]
    if len(made) == 1 and isinstance(made[0], ast.ListComp):
        return _filled(ctx, made[0])
    if not made or not all(_empty(one) for one in made):
        return None
    for append in ctx.calls("append"):
        owner = append.receiver
        if not isinstance(owner, ast.Name) or owner.id != given.id or not append.node.args:
            continue
        if ctx.module.scope_of(append.node) is not ctx.module.scope_of(given):
            continue
        loops = ctx.loops.around(append.node, calls=False)
        few = any(loop.iterations is not None and loop.iterations <= FEW for loop in loops)
        loader = _loader(ctx, append.node.args[0], 0) if loops and not few else ""
        if loader:
            return append.node, loader
    return None


def _empty(value: ast.expr | None) -> bool:
    empty_call = isinstance(value, ast.Call) and not value.args and getattr(value.func, "id", "") == "list"
    return empty_call or (isinstance(value, ast.List) and not value.elts)


def _loader(ctx: Context, expr: ast.expr, depth: int) -> str:
    """The loader that an expression's value comes from, through names and functions of the project; "" for none."""
    if depth > MAX_DEPTH:
        return ""
    for node in ast.walk(expr):
        if isinstance(node, ast.Call):
            name = next((n for n in ctx.names(node.func) if n in DECODERS), "")
            name = name or _returned(ctx, node, depth)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            values = [b.value for b in ctx.definitions(node) if b.kind == "assign"]
            name = next(
                (n for v in values if v is not None and v is not expr and (n := _loader(ctx, v, depth + 1))), ""
            )
        else:
            continue
        if name:
            return name
    return ""


def _returned(ctx: Context, call: ast.Call, depth: int) -> str:
    """The loader of what a function of the project returns."""
    for function in ctx.functions.callees(call):
        at = ctx.at(function.module)
        for value in function.scope.returns:
            if value is not None and (name := _loader(at, value, depth + 2)):
                return name
    return ""


def _trains(ctx: Context, call: Call) -> bool:
    """Whether the file trains, or one that calls the function around the array."""
    if any(True for _ in ctx.calls(*FEEDS)):
        return True
    function = ctx.enclosing(call.node)
    callers = ctx.functions.callers(function) if function is not None else ()
    return any(any(True for _ in ctx.at(module).calls(*FEEDS)) for module, _ in callers)


def _divided(ctx: Context, made: ast.Call) -> bool:
    """Whether an array is divided where it is made, or by its name in the same function."""
    parent = ctx.parent(made)
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Div) and parent.left is made
    if not isinstance(parent, ast.Assign):
        return False
    divisions = (n for n in ast.walk(ctx.module.tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div))
    names = (n.left for n in divisions if isinstance(n.left, ast.Name))
    return any(any(b.value is made for b in ctx.definitions(name)) for name in names)


def _short(name: str) -> str:
    return name.replace("numpy.", "np.")


RULE = Rule(
    code="TFD022",
    name="files-in-one-array",
    severity="info",
    symptom="Memory: out of memory",
    cause="API: not using batch API",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="raw-input",
    speedup=2.0,
    remedy="make a Dataset of the file names and decode in map, or image_dataset_from_directory",
    calls=frozenset(
        "numpy.array numpy.asarray numpy.stack numpy.vstack numpy.concatenate tensorflow.stack tensorflow.constant "
        "tensorflow.convert_to_tensor keras.ops.stack keras.ops.convert_to_tensor".split()
    ),
    on_call=check,
    related=("MEM004",),
)
