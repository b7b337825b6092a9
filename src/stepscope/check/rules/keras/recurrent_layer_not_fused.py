"""An argument of an LSTM or GRU rules out the fused GPU kernel.

## What it does
Reports, as info, `LSTM` and `GRU` layers with `recurrent_dropout`, a non-default `activation` or
`recurrent_activation`, `unroll=True`, `use_bias=False`, and a GRU with `reset_after=False`.

## Why it is slow
On a GPU Keras runs these layers as one cuDNN kernel for the whole sequence, but only with the default arguments;
otherwise it runs a loop with a handful of small ops per time step. The cost depends on the GPU and the length of the
sequence: users report 5 to 10 times. A CPU has no such kernel and shows no difference, so this is info.

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
For arguments whose values are not written in the source; in programs that disable GPUs; before TensorFlow 2.0, where
the layer with the kernel had another name (`CuDNNLSTM`).

## Fix and its safety
Leave the argument at its default: `dropout` instead of `recurrent_dropout`, `tanh` instead of `relu`. This is a
different model and must be trained again, so it is not done automatically.

## Versions
TensorFlow 2.0 and later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.rule import Rule

DEFAULTS: dict[str, object] = {
    "activation": "tanh",
    "recurrent_activation": "sigmoid",
    "recurrent_dropout": 0,
    "unroll": False,
    "use_bias": True,
    "reset_after": True,
}
"""Arguments that cuDNN's kernel supports. Source: Keras, class LSTM, "The requirements to use the cuDNN
implementation"."""
POSITIONS = {"activation": 1, "recurrent_activation": 2, "use_bias": 3}


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a recurrent layer with a non-default argument."""
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
            f"{name}={given.value!r} rules out the fused GPU kernel: {call.word} runs op by op for each time step",
            confidence=0.9,
        )
        return


def _without_gpu(ctx: Context) -> bool:
    """Whether the file hides all GPUs from TensorFlow."""
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
