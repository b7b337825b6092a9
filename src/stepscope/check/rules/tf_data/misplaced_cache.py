"""Costly work with the same result in each epoch is repeated, because it stands after the cache or there is none.

## What it does
Reports a deterministic `map` that reads, parses or transforms after a `cache` of nothing costly, or that parses after
any cache. As info: such a map before any shuffle, without a cache, if `fit` is called for several epochs.

## Why it is slow
Stages before `cache` run once; stages after it run in every epoch. Measured over ten epochs of texts that are split
into numbers: 3 times the CPU time of the cache after the map.

## Example
Slow:

```python
import tensorflow as tf

def load(path):
    return tf.io.decode_raw(tf.io.read_file(path), tf.float32)

paths = tf.data.Dataset.list_files("rows/*.bin", shuffle=False)
batches = paths.cache().map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(32)
```

Fixed:

```python
import tensorflow as tf

def load(path):
    return tf.io.decode_raw(tf.io.read_file(path), tf.float32)

paths = tf.data.Dataset.list_files("rows/*.bin", shuffle=False)
batches = paths.map(load, num_parallel_calls=tf.data.AUTOTUNE).cache().batch(32)
```

## When it is silent
When the function is random (a cache after it would freeze the augmentation) or unknown; when images are decoded from
cached bytes, which may be deliberate (decoded images take ten times the memory); when another cache follows.

## Fix and its safety
Move `cache()` after the map. The results are the same; the map's output must fit in memory, or on a disk with
`cache(filename)`.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.context import Call, Context
from stepscope.check.costs import DECODES, READS, RESIZES, heavy
from stepscope.check.hits import Hit
from stepscope.check.inference.datasets import Chain, Stage
from stepscope.check.rule import Rule

CHEAP_SOURCES = frozenset({"from_tensor_slices", "list_files", "range", "from_tensors", "random"})
KEEPS = frozenset({"cache", "snapshot", "save"})


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a map after a cache, or a fit of several epochs without one."""
    if call.word == "fit":
        yield from _missing(ctx, call)
        return
    chains = ctx.chains(call.node)
    caches = [_before(ctx, chain, chain.index(call.node)) for chain in chains]
    cache = caches[0] if caches else None
    if cache is None or any(c is None or c.call is not cache.call for c in caches) or _kept_later(ctx, call.node):
        return
    local = cache.module is ctx.module
    own = cache.call is not None and local and _in_chain(call.node, cache.call)
    yield ctx.hit(
        call.node,
        f"{_title(ctx, chains[0].stages[chains[0].index(call.node)])} runs again in each epoch, after the cache",
        confidence=0.85,
        also=[ctx.at(cache.module).places.place(cache.call)] if cache.call is not None else (),
        fix=ctx.fix(
            "move-call-in-chain",
            "Move cache() after the map",
            call.node,
            cache.call,
            safety="unsafe",
            behaviour="The results are the same; the cache holds the map's output, which may take more memory.",
        )
        if own and cache.call is not None
        else None,
    )


def _before(ctx: Context, chain: Chain, index: int) -> Stage | None:
    """The cache before a deterministic, costly map that it should follow."""
    if index < 0:
        return None
    cache = next((s for s in reversed(chain.stages[:index]) if s.name == "cache"), None)
    if cache is None or any(s.name in ("batch", "unbatch") for s in chain.stages[:index]):
        return None
    costs = _costs(ctx, chain.stages[index])
    if not costs:
        return None
    before = chain.stages[: chain.stages.index(cache)]
    cheap = before[0].name in CHEAP_SOURCES and all(_cheap(ctx, s) for s in before[1:])
    return cache if cheap or not costs & (DECODES | RESIZES | READS) else None


def _costs(ctx: Context, stage: Stage) -> frozenset[str]:
    """The costly calls of a deterministic map; empty if there are none or the map is not known to be deterministic."""
    function = ctx.functions.of_stage(stage) if stage.name == "map" else None
    if function is None or any(e.kind != "table" for e in ctx.functions.effects(function)):
        return frozenset()
    called = ctx.functions.called(function)
    random = any("random" in name for name in called)
    return frozenset(name for name in called if heavy(name)) if "" not in called and not random else frozenset()


def _cheap(ctx: Context, stage: Stage) -> bool:
    if stage.name != "map":
        return stage.name in ("shuffle", "take", "skip", "shard", "repeat")
    function = ctx.functions.of_stage(stage)
    return function is not None and not any(heavy(name) or not name for name in ctx.functions.called(function))


def _kept_later(ctx: Context, node: ast.Call) -> bool:
    return any(
        chain.index(node) >= 0 for call in ctx.calls(*KEEPS) if call.receiver for chain in ctx.chains(call.receiver)
    )


def _in_chain(outer: ast.Call, inner: ast.Call) -> bool:
    below: ast.expr = outer
    while isinstance(below, ast.Call) and isinstance(below.func, ast.Attribute):
        below = below.func.value
        if below is inner:
            return True
    return False


def _title(ctx: Context, stage: Stage) -> str:
    function = ctx.functions.of_stage(stage)
    return "its lambda" if function is None or function.name == "<lambda>" else function.name


def _missing(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report ``fit(ds, epochs=20)`` on a dataset that is read and parsed again in each epoch."""
    data = call.argument(0, "x")
    epochs = ctx.loops.integer(call.argument(3, "epochs"))
    if data is None or epochs is None or epochs <= 1:
        return
    for chain in ctx.chains(data):
        if not chain.complete or any(s.name in KEEPS or s.name == "repeat" for s in chain.stages):
            continue
        stage = _first(ctx, chain)
        if stage is None or stage.call is None or stage.module is not ctx.module:
            continue
        yield ctx.hit(
            stage.call,
            f"{_title(ctx, stage)} runs again in each of the {epochs} epochs, cache() would keep its output",
            confidence=0.5,
            severity="info",
            also=[ctx.places.span(call.node)],
        )


def _first(ctx: Context, chain: Chain) -> Stage | None:
    """The first costly map with nothing random before it: a cache after a shuffle would freeze its order."""
    for stage in chain.stages[1:]:
        if stage.name not in ("map", "prefetch", "with_options", "interleave", "take", "skip", "shard"):
            return None
        if _costs(ctx, stage):
            return stage
        function = ctx.functions.of_stage(stage) if stage.name == "map" else None
        if stage.name == "map" and (function is None or ctx.functions.effects(function)):
            return None
    return None


RULE = Rule(
    code="TFD004",
    name="misplaced-cache",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    speedup=3.0,
    remedy="put cache() after costly work that is the same in each epoch, before random work",
    calls=frozenset({"tensorflow.data.Dataset.map", "keras.Model.fit"}),
    on_call=check,
    related=("INP001",),
)
