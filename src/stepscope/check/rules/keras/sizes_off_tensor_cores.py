"""Layers computed in half precision have sizes that are no multiple of 8, as Tensor Cores want them.

## What it does
Reports, as info and once per file, convolutions with 24 filters or more and `Dense` layers with 64 units or more whose
number is no multiple of 8, in a program that sets the policy `mixed_float16` or `mixed_bfloat16`.

## Why it is slow
Tensor Cores multiply blocks of 8 numbers of half precision or more. NVIDIA advises multiples of 8 (better: 64) for all
sizes of a layer; what is left over is padded, or computed by a slower kernel. Not measured here: it needs a GPU. CPUs
in full precision show no clear cost: 70 filters took 1.2 to 1.8 times the CPU time of 64, which is 1.2 times the work,
but 30 took 0.9 to 1.2 times that of 32. Therefore nothing is reported for them.

## Example
Slow:

```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([
    keras.layers.Input((32, 32, 3)),
    keras.layers.Conv2D(100, 3, padding="same", activation="relu"),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(10, dtype="float32"),
])
```

Fixed:

```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([
    keras.layers.Input((32, 32, 3)),
    keras.layers.Conv2D(96, 3, padding="same", activation="relu"),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(10, dtype="float32"),
])
```

## When it is silent
In full precision; for layers with a `dtype`, or with `activation="softmax"` or `"sigmoid"`, whose number is that of the
classes; for sizes that are not written in the source; in tests.

## Fix and its safety
Take the multiple of 8 next to the number. This is a different model and must be trained again, so it is not done
automatically.

## Versions
TensorFlow 2.1 and later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.rule import Rule

BLOCK = 8
"""Numbers of half precision that Tensor Cores take at once. Source: NVIDIA, Deep learning performance, "Tensor Core
requirements"."""
FEW = {
    "Conv1D": 24, "Conv2D": 24, "Conv3D": 24, "Conv2DTranspose": 24, "Conv3DTranspose": 24, "Dense": 64,
}  # fmt: skip
"""Filters or units up to which a layer is too small to matter."""
CLASSES = ("softmax", "sigmoid")
"""Activations of layers whose size is the number of classes."""
POLICIES = ("set_global_policy", "set_policy", "set_dtype_policy", "set_experimental_policy")
HALF = ("mixed_float16", "mixed_bfloat16")


def check(ctx: Context) -> Iterator[Hit]:
    """Report the first layer of odd size, with the others of the file."""
    if in_test(ctx):
        return
    found = [call for call in ctx.calls(*FEW) if _odd(ctx, call) and _half(ctx, call)]
    found.sort(key=lambda call: (call.node.lineno, call.node.col_offset))
    if not found:
        return
    first, *others = found
    size = ctx.loops.integer(_size(first)) or 0
    more = (
        f", and those of {len(others)} more layers" if len(others) > 1 else ", and those of one more" if others else ""
    )
    yield ctx.hit(
        first.node,
        f"the {size} {_argument(first)} of {first.word} are no multiple of {BLOCK}{more}: Tensor Cores need one",
        confidence=0.8,
        also=[ctx.places.span(other.node) for other in others],
    )


def _argument(call: Call) -> str:
    return "units" if call.word == "Dense" else "filters"


def _size(call: Call) -> ast.expr | None:
    return call.argument(0, _argument(call))


def _odd(ctx: Context, call: Call) -> bool:
    """Whether a layer of Keras has a number of filters or units, above a few, that is no multiple of the block."""
    activation = call.argument(-1, "activation")
    of_classes = isinstance(activation, ast.Constant) and activation.value in CLASSES
    size = ctx.loops.integer(_size(call)) if call.name.startswith("keras.layers.") else None
    if size is None or of_classes or call.argument(-1, "dtype") is not None:
        return False
    return size >= FEW[call.word] and size % BLOCK != 0


def _half(ctx: Context, call: Call) -> bool:
    """Whether the file sets a policy of half precision, or one that calls the function around a layer."""
    function = ctx.enclosing(call.node)
    callers = ctx.functions.callers(function) if function is not None else ()
    return any(at.once(_sets_half) for at in (ctx, *(ctx.at(module) for module, _ in callers)))


def _sets_half(ctx: Context) -> bool:
    """Whether a file sets a policy of half precision."""
    given = (call.argument(0, "policy") for call in ctx.calls(*POLICIES))
    return any(isinstance(part, ast.Constant) and part.value in HALF for g in given if g for part in ast.walk(g))


RULE = Rule(
    code="KER013",
    name="sizes-off-tensor-cores",
    severity="info",
    symptom="Time: slow execution time",
    cause="Model: improper model parameter",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=1.0,
    remedy="take a multiple of 8 as the number of filters or units",
    on_file=check,
    mentions=("Conv", "Dense"),
    since_version=(2, 1),
    related=("KRN004",),
)
