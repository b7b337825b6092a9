"""Serialized examples are parsed one by one and batched afterwards.

## What it does
Reports a `map` with `tf.io.parse_single_example` of fixed-length features, followed by `batch`, if the rest of the
function is elementwise.

## Why it is slow
Each parse call costs some ten microseconds per example around the work itself; `tf.io.parse_example` parses a batch in
one call, with several threads. Measured with two features and batches of 128: 4.3 times the CPU time.

## Example
Slow:

```python
import tensorflow as tf

FEATURES = {"x": tf.io.FixedLenFeature([16], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}

def parse(record):
    example = tf.io.parse_single_example(record, FEATURES)
    return example["x"], example["y"]

batches = tf.data.TFRecordDataset("train.tfrecord").shuffle(1000).map(parse).batch(128)
```

Fixed:

```python
import tensorflow as tf

FEATURES = {"x": tf.io.FixedLenFeature([16], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}

def parse(records):
    examples = tf.io.parse_example(records, FEATURES)
    return examples["x"], examples["y"]

batches = tf.data.TFRecordDataset("train.tfrecord").shuffle(1000).batch(128).map(parse)
```

## When it is silent
For features of varying length, or not written in the source; when the rest of the function needs single examples
(decoding images, random ops, reshaping) or is unknown; with `padded_batch`; when a `cache` or `filter` stands between
them.

## Fix and its safety
Batch first, then use `tf.io.parse_example`: the results are the same. Shapes in the function get a batch dimension.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.context import Call, Context
from stepscope.check.hits import FixPlan, Hit
from stepscope.check.inference.datasets import Chain, Stage
from stepscope.check.inference.names import Function
from stepscope.check.rule import Rule

PARSE = "tensorflow.io.parse_single_example"
FIXED = frozenset({"tensorflow.io.FixedLenFeature", "tensorflow.FixedLenFeature"})
NEUTRAL = frozenset({"shuffle", "repeat", "prefetch", "take", "skip", "shard", "with_options"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a batch after a map that parses."""
    found: dict[ast.Call, Stage] = {}
    for chain in ctx.chains(call.node):
        stage = _parsing(ctx, chain, chain.index(call.node))
        if stage is None or stage.call is None:
            return
        found[stage.call] = stage
    if ctx.loops.integer(call.argument(0, "batch_size")) == 1:
        return
    for node, stage in found.items():
        local = stage.module is ctx.module
        yield ctx.hit(
            node if local else call.node,
            "examples are parsed one by one and batched afterwards: parse_example parses a batch in one call",
            confidence=0.85,
            also=[ctx.places.place(call.node) if local else ctx.at(stage.module).places.span(node)],
            fix=_fix(ctx, call, stage),
        )


def _fix(ctx: Context, call: Call, stage: Stage) -> FixPlan | None:
    """Swap the two calls and parse the batch, if the function is used by this map only."""
    function = ctx.functions.of_stage(stage)
    if function is None or stage.call is None or stage.call is not call.receiver or function.module is not ctx.module:
        return None
    parsing = _parse_call(ctx, function)
    maps = [c for c in ctx.calls("map") if (f := ctx.function(c.node.args[0])) is not None and f.node is function.node]
    if parsing is None or len(maps) != 1:
        return None
    title = "Batch first, and parse the batch"
    behaviour = "The function receives a batch of records; features have the same values, with a batch dimension."
    name = "tensorflow.io.parse_example"
    rename = ctx.fix("rename-call", title, parsing, safety="unsafe", behaviour=behaviour, name=name)
    return ctx.fix(
        "move-call-in-chain",
        title,
        call.node,
        stage.call,
        safety="unsafe",
        behaviour=behaviour,
        parts=[rename],
    )


def _parsing(ctx: Context, chain: Chain, index: int) -> Stage | None:
    """The parsing map, if nothing up to the batch needs single examples."""
    for stage in reversed(chain.stages[1 : max(index, 1)]):
        if stage.name == "map":
            function = ctx.functions.of_stage(stage)
            if function is None:
                return None
            parsing = _parse_call(ctx, function)
            if parsing is not None:
                return stage if _fixed(ctx.at(function.module), parsing) and _rest(ctx, function, parsing) else None
            if not ctx.functions.vectorisable(function):
                return None
        elif stage.name not in NEUTRAL:
            return None
    return None


def _parse_call(ctx: Context, function: Function) -> ast.Call | None:
    """The one call in the function's own body that parses its parameter."""
    at = ctx.at(function.module)
    calls = [c.node for where, c in at.functions.calls_below(function.body, 0) if c.name == PARSE and where is at]
    if len(calls) != 1:
        return None
    first = (
        calls[0].args[0] if calls[0].args else next((k.value for k in calls[0].keywords if k.arg == "serialized"), None)
    )
    names = [a.arg for a in function.parameters]
    return calls[0] if isinstance(first, ast.Name) and first.id in names else None


def _fixed(ctx: Context, parsing: ast.Call) -> bool:
    """Whether all features are written in the source and of fixed length."""
    features = Call(parsing, PARSE).argument(1, "features")
    exprs = [features] if features is not None else []
    if isinstance(features, ast.Name):
        bindings = ctx.definitions(features)
        exprs = [b.value for b in bindings if b.kind == "assign" and b.value is not None]
        if len(exprs) != len(bindings):
            return False
    return bool(exprs) and all(
        isinstance(e, ast.Dict)
        and bool(e.values)
        and all(isinstance(v, ast.Call) and ctx.name(v.func) in FIXED for v in e.values)
        for e in exprs
    )


def _rest(ctx: Context, function: Function, parsing: ast.Call) -> bool:
    """Whether the parsed features are only used elementwise."""
    return not ctx.functions.effects(function) and ctx.functions.elementwise(function, given={parsing: "parsed"})


RULE = Rule(
    code="TFD009",
    name="parse-single-before-batch",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: not using batch API",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    speedup=4.3,
    remedy="batch the records first and parse them with tf.io.parse_example",
    calls=frozenset({"tensorflow.data.Dataset.batch"}),
    on_call=check,
    related=("INP001",),
)
