"""Images are decoded at full size and shrunk afterwards.

## What it does
Reports, as info, code that runs for each image, in a loop, a generator, a `__getitem__` or a `map`, and resizes what
`load_img`, `PIL.Image.open`, `cv2.imread`, `decode_jpeg` or `decode_image` has decoded whole, with nothing in between
but conversions.

## Why it is slow
A JPEG decoder can make a half, a quarter or an eighth of the size while it decodes, for a fraction of the work. The
whole picture costs its decoding, its conversion to float and the resize's pass over it: with 1280 x 960 pixels for a
picture of 128 x 128 that is 75 times as many numbers as are kept. Measured so, in a loop
against a `map` with `ratio=4`: 3 times the CPU time, and a parallel `map` spreads the rest over the cores. It is info
because the source does not say how large the files are.

## Example
Slow:

```python
import pathlib
import keras
import numpy as np
import tensorflow as tf

images = []
for path in sorted(pathlib.Path("photos").glob("*.jpg")):
    photo = keras.utils.img_to_array(keras.utils.load_img(path))
    images.append(tf.image.resize(photo, (128, 128)).numpy())
images = np.array(images)
```

Fixed:

```python
import pathlib
import numpy as np
import tensorflow as tf

def load(path):
    photo = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, ratio=4)
    return tf.image.resize(photo, (128, 128))

paths = [str(path) for path in sorted(pathlib.Path("photos").glob("*.jpg"))]
photos = tf.data.Dataset.from_tensor_slices(paths).map(load, num_parallel_calls=tf.data.AUTOTUNE)
images = np.array(list(photos.as_numpy_iterator()))
```

## When it is silent
When the decoder is given a size (`target_size=`, `ratio=`, `draft`, `IMREAD_REDUCED_...`); when the picture is
cropped, or its shape or anything else of it is used, before it is resized; when the new size is more than 1024 pixels,
in a `map` when it is unknown or more than 160, because few files are then large enough; for single images and at most
ten; in files that speak of PNG and not of JPEG; in tests.

## Fix and its safety
`tf.io.decode_jpeg(..., ratio=2)`, 4 or 8, as large as leaves the picture at least as large as needed; in PIL
`image.draft("RGB", size)` before the first use, or `thumbnail`; in OpenCV `cv2.IMREAD_REDUCED_COLOR_4`; in Keras
`load_img(target_size=...)`, which saves the conversion of the whole picture but not its decoding. Load in a `map` with
`num_parallel_calls=tf.data.AUTOTUNE`. Pixels differ a little from those of a resize alone. Not done automatically.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.names import Function
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word

FEW = 10
"""Images that are too few to matter."""
LARGE = 1024
"""Pixels of a side from which little is thrown away."""
SMALL = 160
"""Pixels of a side to which a half of the usual files is still enough: a quarter of 640 x 480."""
MAX_DEPTH = 8
"""Names, conversions and functions followed from a resize to what decodes."""
KERAS = ("keras.utils.load_img", "keras.preprocessing.image.load_img", "keras.utils.image_utils.load_img")
TOLD = {
    **dict.fromkeys(KERAS, (3, "target_size")),
    "PIL.Image.open": (-1, "reducing_gap"),
    "cv2.imread": (1, "flags"),
    "tensorflow.io.decode_jpeg": (2, "ratio"),
    "tensorflow.image.decode_jpeg": (2, "ratio"),
    "tensorflow.io.decode_image": (-1, "ratio"),
    "tensorflow.image.decode_image": (-1, "ratio"),
}
"""Decoders, with the place and the name of the argument that tells them a size."""
RESIZES = ("resize", "resize_with_pad", "resize_images", "resize_bilinear", "imresize")
RESIZERS = ("tensorflow.image.", "keras.ops.image.", "cv2.", "skimage.transform.", "keras.preprocessing.image.")
CONVERTS = frozenset(
    "img_to_array array asarray cast convert_image_dtype constant convert_to_tensor expand_dims cvtColor".split()
)
"""Functions that convert their first argument."""
METHODS = frozenset({"convert", "astype", "copy"})
"""Methods that convert their object."""
OF_DATA = ("map", "flat_map", "interleave")


def check(ctx: Context) -> Iterator[Hit]:
    """Report resizes of what was decoded whole, once for each image."""
    if in_test(ctx) or _no_jpeg(ctx):
        return
    for call in ctx.calls(*RESIZES):
        picture = _picture(call)
        if picture is None or not _shrinks(ctx, call) or not _for_each(ctx, call.node):
            continue
        found = _decoder(ctx, picture, MAX_DEPTH)
        if found is None:
            continue
        at, decoder = found
        around = (loop.node for loop in ctx.loops.around(call.node, calls=False))
        head = next((loop.iter for loop in around if isinstance(loop, ast.For)), None)
        also = [at.places.span(decoder)]
        yield ctx.hit(
            head or call.node,
            f"{at.text(decoder.func)} decodes the whole picture before {ctx.text(call.node.func)} shrinks it",
            confidence=0.8,
            also=also if head is None else [ctx.places.span(call.node), *also],
        )


def _no_jpeg(ctx: Context) -> bool:
    """Whether a file speaks of PNG, which has no smaller decoding, and not of JPEG."""
    text = "\n".join(ctx.module.source.lines).lower()
    return ".png" in text and ".jp" not in text


def _picture(call: Call) -> ast.expr | None:
    """What a resize takes: its first argument, or the object whose method it is."""
    if call.name.startswith(RESIZERS):
        return call.argument(0, "images") or call.argument(0, "image") or call.argument(0, "src")
    return call.receiver if not call.name and call.node.args else None


def _shrinks(ctx: Context, call: Call) -> bool:
    """Whether the new size is small enough to throw much away, for what the code is likely to read."""
    number = max((n for a in call.node.args for n in _numbers(ctx, a)), default=None)
    if ctx.traced(call.node):
        return number is not None and number <= SMALL
    return number is None or number <= LARGE


def _numbers(ctx: Context, expr: ast.expr) -> list[int]:
    """The integers of ``(128, 128)``, also by name."""
    if isinstance(expr, (ast.Tuple, ast.List)):
        return [n for e in expr.elts for n in _numbers(ctx, e)]
    number = ctx.loops.integer(expr)
    if number is not None:
        return [number]
    made = [b.value for b in ctx.definitions(expr)] if isinstance(expr, ast.Name) else []
    value = made[0] if len(made) == 1 else None
    return _numbers(ctx, value) if isinstance(value, (ast.Tuple, ast.List)) else []


def _decoder(ctx: Context, expr: ast.expr, depth: int) -> tuple[Context, ast.Call] | None:
    """The call that decoded a picture at full size, with its file; None if there is none, or more is done with it."""
    if depth == 0:
        return None
    if isinstance(expr, ast.Name):
        made = ctx.definitions(expr)
        value = made[0].value if len(made) == 1 and made[0].kind in ("assign", "with") else None
        return _decoder(ctx, value, depth - 1) if value is not None and _only_use(ctx, expr) else None
    if isinstance(expr, ast.BinOp):
        return _decoder(ctx, expr.left, depth - 1)
    if not isinstance(expr, ast.Call):
        return None
    call = ctx.call(expr)
    name = next((n for n in ctx.names(expr.func) if n in TOLD), "")
    if name:
        return None if call.opaque or call.argument(*TOLD[name]) is not None else (ctx, expr)
    word = last_word(expr.func)
    if isinstance(expr.func, ast.Attribute) and word in METHODS:
        return _decoder(ctx, expr.func.value, depth - 1)
    if word in CONVERTS and expr.args:
        return _decoder(ctx, expr.args[0], depth - 1)
    for function in ctx.functions.callees(expr)[:1]:
        returned = function.scope.returns
        if len(returned) == 1:
            return _decoder(ctx.at(function.module), returned[0], depth - 1)
    return None


def _only_use(ctx: Context, name: ast.Name) -> bool:
    """Whether nothing else reads what a name stands for: its shape, a crop, a second size."""
    bound = set(ctx.definitions(name))
    function = ctx.enclosing(name)
    parts = function.body if function is not None else ctx.module.tree.body
    reads = [n for part in parts for n in ast.walk(part) if isinstance(n, ast.Name) and n.id == name.id]
    return sum(isinstance(n.ctx, ast.Load) and not bound.isdisjoint(ctx.definitions(n)) for n in reads) == 1


def _for_each(ctx: Context, node: ast.AST) -> bool:
    """Whether code runs for each of many images."""
    loops = ctx.loops.around(node)
    if loops:
        return any(loop.iterations is None or loop.iterations > FEW for loop in loops)
    function = ctx.enclosing(node)
    return function is not None and (function.name == "__getitem__" or _mapped(ctx, function))


def _mapped(ctx: Context, function: Function, levels: int = 2) -> bool:
    """Whether a Dataset's map runs a function, or one that calls it."""
    for word in OF_DATA:
        for other in ctx.calls(word):
            given = other.argument(0, "map_func")
            found = ctx.function(given) if given is not None else None
            if found is not None and found.node is function.node:
                return True
    outer = [at.enclosing(call) for m, call in ctx.functions.callers(function) for at in [ctx.at(m)]] if levels else []
    return any(f is not None and _mapped(ctx.at(f.module), f, levels - 1) for f in outer)


RULE = Rule(
    code="TFD021",
    name="image-shrunk-after-decoding",
    severity="info",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="data preparation",
    pipeline_stage="preprocessing",
    speedup=3.0,
    remedy="decode at a smaller size: decode_jpeg(ratio=), draft, load_img(target_size=), in a parallel map",
    on_file=check,
    mentions=("resize",),
    related=(),
)
