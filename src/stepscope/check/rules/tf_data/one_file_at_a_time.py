"""Record files are read one after the other.

## What it does
Reports `TFRecordDataset` of several files without `num_parallel_reads`, and `flat_map` over files with a function that
opens each as a `TFRecordDataset`, `TextLineDataset`, `FixedLengthRecordDataset` or `CsvDataset`.

## Why it is slow
One thread opens, reads, decompresses and checks the files, and network storage answers one request at a time. Nothing
parallelises this by default. Measured with 16 GZIP files on two cores, in the page cache (TensorFlow 2.21): twice the
throughput with 8 readers; a public project reports 2.6 times for its change. `AUTOTUNE` as the number of readers
brought 1.6 times in some runs and nothing in most, in which it stayed at one reader.

## Example
Slow:

```python
import tensorflow as tf

files = tf.io.gfile.glob("train-*.tfrecord")
records = tf.data.TFRecordDataset(files, compression_type="GZIP").shuffle(10000)
```

Fixed:

```python
import tensorflow as tf

files = tf.io.gfile.glob("train-*.tfrecord")
records = tf.data.TFRecordDataset(files, compression_type="GZIP", num_parallel_reads=8).shuffle(10000)
```

## When it is silent
For fewer than four files, or an unknown number; inside the function of an `interleave`, which is itself parallel; when
the arguments are hidden in `*args` or `**kwargs`; when the records are zipped with those of other files, whose order
must stay; in a branch written for some versions of TensorFlow.

## Fix and its safety
Use `num_parallel_reads=8`, or `interleave(..., cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE)` instead of
`flat_map`. Records of different files then come interleaved instead of file after file, in the same order each time.
This matters only if order does: zipped datasets, predictions matched by position.

## Versions
All.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stepscope.check.analyses.idioms import by_version
from stepscope.check.context import Call, Context
from stepscope.check.hits import Hit
from stepscope.check.rule import Rule
from stepscope.check.source.syntax import last_word

READS = "8"
"""Readers that the fix asks for: AUTOTUNE stays at one in most runs on two cores (bench/rules/TFD005)."""
READERS = {
    "tensorflow.data.TFRecordDataset": 3,
    "tensorflow.data.TextLineDataset": 3,
    "tensorflow.data.FixedLengthRecordDataset": 6,
}
"""Position of ``num_parallel_reads`` among the arguments."""
OPENS = frozenset({*READERS, "tensorflow.data.experimental.CsvDataset"})
GLOBS = frozenset(
    "glob.glob glob.iglob tensorflow.io.gfile.glob tensorflow.gfile.Glob tensorflow.io.matching_files os.listdir "
    "tensorflow.io.gfile.listdir tensorflow.matching_files tensorflow.train.match_filenames_once "
    "tensorflow.data.Dataset.list_files tensorflow.python.platform.gfile.Glob".split()
)
PASSING = frozenset({"sorted", "list", "tuple", "reversed"})
MANY = 4
"""Number of files below which parallel reads gain little."""
MAX_LEVELS = 5


def check(ctx: Context, call: Call) -> Iterator[Hit]:
    """Report a reader of several files, or a flat_map that opens them."""
    if call.word == "flat_map":
        yield from _flat_map(ctx, call)
        return
    files = call.argument(0, "filenames")
    given = call.argument(READERS[call.name], "num_parallel_reads")
    if files is None or call.opaque or (given is not None and not _one(ctx, given)):
        return
    if not _several(ctx, files, MAX_LEVELS) or _aligned(ctx, call) or by_version(ctx, call.node):
        return
    yield ctx.hit(
        call.node,
        f"{call.word} reads the files of {ctx.text(files)} one after the other",
        confidence=0.9,
        fix=None
        if given is not None
        else ctx.fix(
            "add-keyword",
            f"Add num_parallel_reads={READS}",
            call.node,
            safety="unsafe",
            behaviour="Records of different files come interleaved instead of file after file.",
            keyword="num_parallel_reads",
            value=READS,
        ),
    )


def _flat_map(ctx: Context, call: Call) -> Iterator[Hit]:
    given = call.argument(0, "map_func")
    if given is None:
        return
    opened = next((n for n in ctx.names(given) if n in OPENS), "")
    if not opened and (function := ctx.function(given)) is not None:
        at = ctx.at(function.module)
        for returned in function.scope.returns:
            chains = at.chains(returned)
            opened = opened or next((c.source.name for c in chains if _reader(at, c.source.call)), "")
    if opened and not _aligned(ctx, call):
        short = opened.rpartition(".")[2]
        yield ctx.hit(call.node, f"flat_map opens one {short} after the other", confidence=0.9)


def _aligned(ctx: Context, call: Call) -> bool:
    """Whether the records are zipped with others: interleaved records would be paired wrongly."""
    for module, zipping in ctx.engine.project.calls(ctx.module, "zip"):
        at = ctx.at(module)
        if at.name(zipping.func) == "tensorflow.data.Dataset.zip":
            parts = (n for a in zipping.args for n in ast.walk(a) if isinstance(n, (ast.Name, ast.Call, ast.Attribute)))
            if any(chain.index(call.node) >= 0 for part in parts for chain in at.chains(part)):
                return True
    return False


def _reader(ctx: Context, call: ast.Call | None) -> bool:
    return call is not None and any(n in OPENS for n in ctx.names(call.func))


def _one(ctx: Context, given: ast.expr) -> bool:
    return (isinstance(given, ast.Constant) and given.value is None) or ctx.loops.integer(given) == 1


def _several(ctx: Context, expr: ast.expr, levels: int) -> bool:
    """Whether an expression is known to be more than one file: a list of several, the result of a glob, a
    comprehension.
    """
    if not levels:
        return False
    if isinstance(expr, (ast.List, ast.Tuple)):
        return len(expr.elts) >= MANY
    if isinstance(expr, ast.ListComp):
        source = expr.generators[0].iter
        length = ctx.loops.length(source)
        return length is None or length >= MANY
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Add):
        return _several(ctx, expr.left, levels - 1) or _several(ctx, expr.right, levels - 1)
    if isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Slice):
        return _several(ctx, expr.value, levels - 1)
    if isinstance(expr, ast.Call):
        return _called(ctx, expr, levels)
    if isinstance(expr, ast.Name):
        bindings = ctx.definitions(expr)
        values = [b.value for b in bindings if b.kind == "assign" and b.value is not None]
        if values and len(values) == len(bindings):
            return all(_several(ctx, v, levels - 1) for v in values)
        return len(bindings) == 1 and bindings[0].kind == "param" and _passed(ctx, expr, levels)
    return False


def _called(ctx: Context, call: ast.Call, levels: int) -> bool:
    name = ctx.name(call.func)
    if name in GLOBS:
        return not (call.args and _exact(call.args[0]))
    word = call.func.id if isinstance(call.func, ast.Name) else ""
    if (word in PASSING or name.startswith("random.s") or name == "tensorflow.constant") and call.args:
        return _several(ctx, call.args[0], levels - 1)
    for function in ctx.functions.callees(call):
        at = ctx.at(function.module)
        returns = function.scope.returns
        return bool(returns) and all(_several(at, r, levels - 1) for r in returns)
    return False


def _exact(pattern: ast.expr) -> bool:
    """Whether a pattern is a literal without a wildcard; for a joined path, its last part."""
    if isinstance(pattern, ast.Call) and last_word(pattern.func) == "join" and pattern.args:
        return _exact(pattern.args[-1])
    return isinstance(pattern, ast.Constant) and isinstance(pattern.value, str) and not set(pattern.value) & set("*?[")


def _passed(ctx: Context, name: ast.Name, levels: int) -> bool:
    """Whether every call in the project passes several files."""
    function = ctx.enclosing(name)
    if function is None or levels <= 1:
        return False
    given = ctx.functions.given(function, name.id)
    return bool(given) and all(g is not None and _several(at, g, levels - 2) for at, g in given)


RULE = Rule(
    code="TFD005",
    name="one-file-at-a-time",
    severity="warning",
    symptom="Time: slow execution time",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="raw-input",
    speedup=1.7,
    remedy="pass num_parallel_reads=8, or use interleave with num_parallel_calls instead of flat_map",
    calls=frozenset({*READERS, "tensorflow.data.Dataset.flat_map"}),
    on_call=check,
    related=("INP001",),
)
