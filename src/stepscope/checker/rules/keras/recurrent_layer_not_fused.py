"""An LSTM or GRU has an argument that takes the fused GPU kernel away.

## What it does
Reports, as info, `LSTM` and `GRU` layers with `recurrent_dropout`, another `activation` or `recurrent_activation`
than the default, `unroll=True`, `use_bias=False`, and a GRU with `reset_after=False`.

## Why it is slow
On a GPU Keras runs these layers with one cuDNN kernel for the whole sequence, but only with the default arguments;
with others it runs a loop with a handful of small ops per time step. How much that costs depends on the GPU and the
length of the sequence: users report 5 to 10 times. On a CPU there is no such kernel and no difference, so that it is
info.

## Example
Slow:

```python
import keras

model = keras.Sequential([
    keras.layers.Input((100, 8)),
    keras.layers.LSTM(64, recurrent_dropout=0.2),
    keras.layers.Dense(1),
])
```

Fixed:

```python
import keras

model = keras.Sequential([
    keras.layers.Input((100, 8)),
    keras.layers.LSTM(64, dropout=0.2),
    keras.layers.Dense(1),
])
```

## When it is silent
With arguments whose values are not written down; in programs that switch GPUs off; before TensorFlow 2.0, where the
layer with the kernel had another name (`CuDNNLSTM`).

## Fix and its safety
Leave the argument at its default: `dropout` instead of `recurrent_dropout`, `tanh` instead of `relu`. It is another
model and must be trained again: not done automatically.

## Versions
TensorFlow 2.0 and later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.checker.analyses.idioms import in_test
from stepscope.checker.context import Call, Context
from stepscope.checker.hits import Hit
from stepscope.checker.rule import Rule

DEFAULTS: dict[str, object] = {
    "activation": "tanh",
    "recurrent_activation": "sigmoid",
    "recurrent_dropout": 0,
    "unroll": False,
    "use_bias": True,
    "reset_after": True,
}
"""What cuDNN's kernel computes. Source: Keras, class LSTM, "The requirements to use the cuDNN implementation"."""
POSITIONS = {"activation": 1, "recurrent_activation": 2, "use_bias": 3}


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """A recurrent layer with an argument of its own."""
    if in_test(ctx) or _without_gpu(ctx):
        return
    for name, fused in DEFAULTS.items():
        given = call.argument(POSITIONS.get(name, -1), name)
        if not isinstance(given, ast.Constant) or given.value == fused:
            continue
        if name == "reset_after" and call.word != "GRU":
            continue
        yield ctx.hit(
            call.node,
            f"{name}={given.value!r} takes the fused GPU kernel from {call.word}: it runs op by op for each time step",
            confidence=0.9,
        )
        return


def _without_gpu(ctx: Context) -> bool:
    """The file hides all GPUs from TensorFlow."""
    for store in ctx.module.flow.stores:
        if isinstance(store, ast.Subscript) and isinstance(store.slice, ast.Constant):
            statement = ctx.parent(store)
            value = statement.value if isinstance(statement, ast.Assign) else None
            hidden = isinstance(value, ast.Constant) and value.value in ("-1", "")
            if store.slice.value == "CUDA_VISIBLE_DEVICES" and hidden:
                return True
    return False


RULE = Rule(
    code="KER010",
    name="recurrent-layer-not-fused",
    severity="info",
    symptom="Time: slow execution time",
    cause="Model: improper model parameter",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    speedup=1.0,
    remedy="leave the arguments at the defaults that cuDNN computes",
    calls=frozenset({"keras.layers.LSTM", "keras.layers.GRU"}),
    on_call=check,
    since_version=(2, 0),
)
