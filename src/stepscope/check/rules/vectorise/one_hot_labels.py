"""Labels of many classes are one-hot encoded for categorical_crossentropy.

## What it does
Reports `to_categorical` and `tf.one_hot` of labels with 1,000 classes or more (a number written in the source, or the
size of a tokenizer's or vocabulary's index) in a program that trains with `categorical_crossentropy`.

## Why it is slow
Each label becomes one float per class, nearly all of them zero: they fill memory, are copied to the device with each
batch, and are multiplied and summed in the loss. `sparse_categorical_crossentropy` takes the class number and gives the
same loss. Measured with 20,000 classes and 4,000 rows: 2.2 GB of memory against 0.6 GB, and 4.3 times the time of an
epoch.

## Example
Slow:

```python
import numpy as np
import keras

CLASSES = 20000
x = np.zeros((4000, 16), "float32")
labels = keras.utils.to_categorical(np.arange(4000), num_classes=CLASSES)
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(CLASSES, activation="softmax")])
model.compile("adam", "categorical_crossentropy")
model.fit(x, labels)
```

Fixed:

```python
import numpy as np
import keras

CLASSES = 20000
x = np.zeros((4000, 16), "float32")
labels = np.arange(4000)
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(CLASSES, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(x, labels)
```

## When it is silent
For fewer classes or an unknown number; with label smoothing or mixed labels (mixup), which need the vector; when the
result is not what a model is trained on.

## Fix and its safety
Drop the encoding and use `sparse_categorical_crossentropy`, and `sparse_categorical_accuracy` if the metric is named.
`--unsafe-fixes` does it if the loss is named once, the vectors are used only for training, the class numbers are an
array or tensor, and no metric but the accuracy is named.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import in_test
from stepscope.check.context import Call, Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.tags import Tag
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import argument, last_word

MANY = 1000
"""Classes from which the vectors cost more than the rest of a small model."""
VOCABULARY = frozenset({"word_index", "index_word", "get_vocabulary", "vocabulary_size", "get_vocab", "vocab_size"})
"""Attributes and methods of tokenizers and vocabularies that hold thousands of words."""
LOSSES = frozenset({"keras.losses.CategoricalCrossentropy", "keras.losses.categorical_crossentropy"})
TRAINING = frozenset({"fit", "evaluate", "train_on_batch", "test_on_batch"})
MAX_DEPTH = 5


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report encoded labels for a loss that accepts class numbers."""
    losses = _dense_losses(ctx)
    if in_test(ctx) or not losses:
        return
    count = call.argument(1, "num_classes") or call.argument(1, "depth") or call.argument(-1, "nb_classes")
    if count is None:
        return
    number = ctx.loops.integer(count)
    many = number >= MANY if number is not None else _vocabulary(ctx, count, 0)
    if not many:
        return
    classes = f"{number:,} classes" if number is not None else f"{ctx.text(count)} classes, a vocabulary"
    yield ctx.hit(
        call.node,
        f"labels of {classes} are one-hot encoded; sparse_categorical_crossentropy takes class numbers",
        confidence=0.85 if number is not None else 0.7,
        severity="warning" if number is not None else "info",
        fix=_fix(ctx, call, losses),
    )


def _fix(ctx: Context, call: Call, losses: list[ast.expr]) -> FixPlan | None:
    """Pass the class numbers and name the sparse loss, if both are in plain sight."""
    labels = call.argument(0, "x") or call.argument(0, "indices")
    if len(losses) != 1 or not isinstance(losses[0], ast.Constant) or labels is None:
        return None
    if (
        ctx.tag(labels) not in (Tag.NUMPY, Tag.TENSOR)
        or not _trained_on_alone(ctx, call.node)
        or not _plain(ctx, losses[0])
    ):
        return None
    title = "Pass class numbers to sparse_categorical_crossentropy"
    behaviour = "Labels are numbers instead of vectors, also for metrics and all other uses."
    loss = ctx.fix(
        "replace-expression",
        title,
        losses[0],
        safety="unsafe",
        behaviour=behaviour,
        value='"sparse_categorical_crossentropy"',
    )
    return ctx.fix(
        "replace-expression",
        title,
        call.node,
        labels,
        safety="unsafe",
        behaviour=behaviour,
        value="$2",
        parts=[loss],
    )


def _trained_on_alone(ctx: Context, encoded: ast.Call) -> bool:
    """Whether the vectors are used only for training, in place or through a name."""
    parent = ctx.parent(encoded)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        name = parent.targets[0].id
        reads = [n for n in ast.walk(ctx.module.tree) if isinstance(n, ast.Name) and n.id == name]
        stores = [n for n in reads if not isinstance(n.ctx, ast.Load)]
        return len(stores) == 1 and all(_labels(ctx, n) for n in reads if n not in stores)
    return _labels(ctx, encoded)


def _labels(ctx: Context, expr: ast.expr) -> bool:
    """Whether an expression is the labels of a call that trains or evaluates."""
    parent = ctx.parent(expr)
    if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Slice) and parent.value is expr:
        expr, parent = parent, ctx.parent(parent)  # some of the rows
    call = ctx.parent(parent) if isinstance(parent, ast.keyword) else parent
    return isinstance(call, ast.Call) and last_word(call.func) in TRAINING and argument(call, 1, "y") is expr


def _plain(ctx: Context, loss: ast.expr) -> bool:
    """Whether the model is compiled without metrics, or with the accuracy alone, which also accepts class numbers."""
    parent = ctx.parent(loss)
    call = ctx.parent(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or any(k.arg is None or k.arg == "weighted_metrics" for k in call.keywords):
        return False
    metrics = argument(call, 2, "metrics")
    if metrics is None:
        return True
    given = metrics.elts if isinstance(metrics, (ast.List, ast.Tuple)) else [metrics]
    return all(isinstance(m, ast.Constant) and m.value in ("accuracy", "acc") for m in given)


def _dense_losses(ctx: Context) -> list[ast.expr]:
    """Calls that compile models with categorical_crossentropy; empty if labels are smoothed."""
    found: list[ast.expr] = []
    if any(k.arg == "label_smoothing" for c in ctx.calls("CategoricalCrossentropy") for k in c.node.keywords):
        return found
    for call in ctx.calls("compile"):
        loss = call.argument(1, "loss")
        if isinstance(loss, ast.Constant) and loss.value == "categorical_crossentropy":
            found.append(loss)
        elif loss is not None:
            target = loss.func if isinstance(loss, ast.Call) else loss
            if ctx.name(target) in LOSSES:
                found.append(loss)
    return found


def _vocabulary(ctx: Context, expr: ast.expr, depth: int) -> bool:
    """Whether a size is ``len(tokenizer.word_index) + 1`` or similar, also through a name."""
    if depth > MAX_DEPTH:
        return False
    if isinstance(expr, ast.Name):
        values = [b.value for b in ctx.definitions(expr) if b.kind == "assign"]
        return bool(values) and all(v is not None and _vocabulary(ctx, v, depth + 1) for v in values)
    if isinstance(expr, ast.BinOp):
        return _vocabulary(ctx, expr.left, depth + 1)
    if isinstance(expr, ast.Call):
        if isinstance(expr.func, ast.Name) and expr.func.id == "len" and len(expr.args) == 1:
            return _vocabulary(ctx, expr.args[0], depth + 1)
        return isinstance(expr.func, ast.Attribute) and expr.func.attr in VOCABULARY
    return isinstance(expr, ast.Attribute) and expr.attr in VOCABULARY


RULE = Rule(
    code="VEC006",
    name="one-hot-labels",
    severity="warning",
    symptom="Memory: out of memory",
    cause="Data: inefficient data preprocessing",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="host-to-device",
    speedup=4.3,
    remedy="use sparse_categorical_crossentropy with class numbers",
    calls=frozenset({"keras.utils.to_categorical", "keras.utils.np_utils.to_categorical", "tensorflow.one_hot"}),
    on_call=check,
    related=("MEM004",),
)
