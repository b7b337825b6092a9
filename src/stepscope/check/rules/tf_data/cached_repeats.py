"""A cache after repeat stores every repetition.

## What it does
Reports `cache` after `repeat` in the same pipeline.

## Why it is slow
`repeat` makes one long dataset of all epochs; a cache after it stores them all, one after the other, and is complete
only when the last one has been read, so nothing is ever read from it. Without a count it grows until memory is full.
Measured after ten epochs of 33 MB: 1.9 times the time, because each epoch still does all the work, and 340 MB instead
of 44.

## Example
Slow:

```python
import tensorflow as tf

records = tf.data.TFRecordDataset("train.tfrecord")
batches = records.repeat().cache().batch(32)
```

Fixed:

```python
import tensorflow as tf

records = tf.data.TFRecordDataset("train.tfrecord")
batches = records.cache().repeat().batch(32)
```

## When it is silent
When a `take` between them ends the dataset; for `repeat(1)`.

## Fix and its safety
Put `cache()` before `repeat()`. The results are the same, and `--fix` does it if epochs do not differ: not after a
shuffle, random ops or variables, because every later epoch would then repeat the first one.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.graphable import acts
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.inference.datasets import Chain, Stage
from stepscope.check.rule import Rule

RUNNING = frozenset("map filter interleave flat_map scan take_while".split())
"""Stages that run a function."""


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a cache with a repeat on every path to it."""
    if call.receiver is None:
        return
    found: list[Stage] = []
    for chain in ctx.chains(call.receiver):
        last = next((s for s in reversed(chain.stages) if s.name in ("repeat", "take", "cache")), None)
        if last is None or last.name != "repeat" or _count(ctx, last) == 1:
            return
        found.append(last)
    if not found:
        return
    repeat = found[0]
    chains = ctx.chains(call.receiver) if call.receiver is not None else ()
    direct = call.receiver is repeat.call and not any(_changes(ctx, c) for c in chains)
    count = _count(ctx, repeat)
    times = f"{count} times" if count is not None and count > 0 else "without end"
    yield ctx.hit(
        call.node,
        f"the cache stores every repetition of a dataset that is repeated {times}",
        confidence=0.95,
        also=[ctx.at(repeat.module).places.place(repeat.call)] if repeat.call is not None else (),
        fix=ctx.fix(
            "move-call-in-chain",
            "Move cache() before repeat()",
            call.node,
            call.receiver,
            safety="safe",
            behaviour="Elements and their order stay the same; the second epoch is read from the cache.",
        )
        if direct
        else None,
    )


def _changes(ctx: Context, chain: Chain) -> bool:
    """Whether an epoch differs from the one before, through a shuffle, random draws, counting or something unknown."""
    if not chain.complete or {"shuffle", "from_generator", "list_files", "random"} & set(chain.names):
        return True
    functions = [ctx.functions.of_stage(s) for s in chain.stages if s.name in RUNNING]
    return any(f is None or ctx.functions.effects(f) or acts(ctx.at(f.module), f.body) for f in functions)


def _count(ctx: Context, repeat: Stage) -> int | None:
    given = repeat.argument(0, "count")
    at = ctx.at(repeat.module)
    return -1 if given is None or (isinstance(given, ast.Constant) and given.value is None) else at.loops.integer(given)


RULE = Rule(
    code="TFD013",
    name="cached-repeats",
    severity="warning",
    symptom="Memory: memory leak",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="raw-input",
    speedup=1.9,
    remedy="put cache() before repeat()",
    calls=frozenset({"tensorflow.data.Dataset.cache"}),
    on_call=check,
    related=("MEM001",),
)
