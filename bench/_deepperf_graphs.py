"""Explains why a report of DeepPerf's checker of repeated nodes (C1) is no finding of ours, from what we know."""

from __future__ import annotations

import ast
import csv
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stepscope.check.analyses.graphs import graph_mode, runs
from stepscope.check.analyses.idioms import hot, in_test, may_be_compiled
from stepscope.check.analyses.once import kept, placed, single
from stepscope.check.analyses.pure import INITIALIZERS, same
from stepscope.check.context import Call, Context, Engine
from stepscope.check.inference.loops import Loop
from stepscope.check.registry import ALL
from stepscope.check.source import pins

LIST = Path(__file__).with_name("deepperf_c1.csv")
"""Places reported to projects in 2021, as their trackers show them."""
OLD = (1, 15)
GRAPHS = re.compile(r"\btf\.(?:placeholder|Session|contrib|get_variable|app\.run|train\.[A-Z]\w+Optimizer)\b")
"""Names that only TensorFlow 1 has; projects for it seldom state their version."""
VARIABLES = ("tensorflow.Variable", "tensorflow.get_variable", "tensorflow.get_local_variable")
WEIGHTS = ("keras.layers.", "tensorflow.layers.", "tensorflow.contrib.layers.", "tensorflow.contrib.slim.")
DRAWS = (
    "tensorflow.random", "tensorflow.truncated_normal", "tensorflow.multinomial", "tensorflow.nn.dropout",
    "tensorflow.image.random_", "tensorflow.distributions.", "tensorflow.py_func", "tensorflow.numpy_function",
)  # fmt: skip
GUARDS = (ast.If, ast.IfExp, ast.Try, ast.With)


@dataclass(frozen=True, slots=True)
class Place:
    """One published report."""

    repo: str
    commit: str
    path: str
    line: int


def published() -> Iterator[Place]:
    """The published reports, one per line of the list."""
    with LIST.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for line in row["lines"].split():
                yield Place(row["repo"], row["commit"], row["path"], int(line))


def version_of(tree: Path, newest: tuple[int, int]) -> tuple[int, int]:
    """TensorFlow version of a tree: pinned in its files, else version 1 if it uses names that only version 1 has."""
    pinned = pins.project_target(tree)
    if pinned is not None:
        return pinned.tensorflow
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in tree.rglob("*.py"))
    return OLD if any(GRAPHS.search(text) for text in texts) else newest


def why_not(engine: Engine, path: str, line: int) -> str:
    """Why a call that DeepPerf reports as repeated is not reported here."""
    module = engine.project.load(path)
    if module is None:
        return f"file not read: {engine.project.skipped.get(path, 'not concerned')}"
    ctx = Context(engine, module, ALL[0])
    call = next(_at(ctx, line), None)
    if call is None:
        return "no call of TensorFlow is known there"
    if in_test(ctx):
        return "in a file of tests"
    reasons = {_of(ctx, call, loop) for loop in ctx.loops.around(call.node)}
    for reason in ORDER:
        if reason in reasons:
            return reason
    return "no loop of the project repeats it"


def _at(ctx: Context, line: int) -> Iterator[Call]:
    """Calls of TensorFlow on a line, outermost first."""
    nodes = [n for n in ast.walk(ctx.module.tree) if isinstance(n, ast.Call)]
    starts = [n for n in nodes if n.lineno == line] or [n for n in nodes if n.lineno <= line <= (n.end_lineno or 0)]
    for node in starts:
        call = ctx.call(node)
        if call.name.startswith(("tensorflow.", "keras.")):
            yield call


FEW = "at most ten iterations"
NEW = "another variable, weight or random draw is wanted each time"
TRACED = "in a tf.function or a Keras step: traced once, equal nodes are merged"
ONE = "built once and kept, in one iteration, or for a device of its own"
FIRST = "told once, at another op of the same iteration"
CHANGES = "its arguments change from one iteration to the next"
UNKNOWN = "not known to stay the same"
GUARDED = "under a condition"
COMPILED = "in a function that a decorator of the project, or whoever it is handed to, may compile"
LATER = "the loop builds a graph that runs later: equal nodes are merged"
EAGER = "an eager constant, shape or cast: microseconds"
ORDER = (FIRST, TRACED, NEW, ONE, CHANGES, LATER, COMPILED, UNKNOWN, GUARDED, EAGER, FEW)
"""Reasons by precedence: the first one that holds for a surrounding loop is given."""


def _of(ctx: Context, call: Call, loop: Loop) -> str:
    """Why a call is not reported because of one loop."""
    node, direct = call.node, not loop.via
    parts = [*node.args, *(k.value for k in node.keywords)]
    reasons: tuple[tuple[str, Callable[[], bool]], ...] = (
        (FEW, lambda: not hot((loop,))),
        (TRACED, lambda: ctx.traced(node) or any(ctx.at(module).traced(way) for module, way in loop.via)),
        (NEW, lambda: call.name.startswith((*VARIABLES, *WEIGHTS, *DRAWS, *INITIALIZERS)) or _initial(ctx, node)),
        (ONE, lambda: kept(ctx, node, loop) or placed(ctx, node, loop) or single(ctx, node, loop)),
        (FIRST, lambda: ctx.once(graph_mode) and runs(ctx, call, loop)),
        (CHANGES, lambda: direct and any(ctx.loops.varies(part, loop) for part in parts)),
        (LATER, lambda: ctx.once(graph_mode)),
        (COMPILED, lambda: direct and may_be_compiled(ctx, node) and not all(same(ctx, p, loop) for p in parts)),
        (UNKNOWN, lambda: direct and not all(same(ctx, part, loop) for part in parts)),
        (GUARDED, lambda: direct and any(isinstance(n, GUARDS) for n in _between(ctx, node, loop))),
    )
    return next((reason for reason, holds in reasons if holds()), EAGER)


def _initial(ctx: Context, node: ast.AST) -> bool:
    """Whether it is the initial value of a variable or layer."""
    parent = ctx.parent(node)
    while isinstance(parent, (ast.expr, ast.keyword)):
        if isinstance(parent, ast.Call) and ctx.call(parent).name.startswith((*VARIABLES, *WEIGHTS)):
            return True
        parent = ctx.parent(parent)
    return False


def _between(ctx: Context, node: ast.AST, loop: Loop) -> Iterator[ast.AST]:
    parent = ctx.parent(node)
    while parent is not None and parent is not loop.node:
        yield parent
        parent = ctx.parent(parent)


def measured(rounds: int = 5) -> list[str]:
    """Measurements behind the two reasons about cost, with the installed TensorFlow."""
    program = Path(__file__).with_name("_deepperf_cost.py")
    environ = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
    done = subprocess.run(
        [sys.executable, str(program), str(rounds)], capture_output=True, text=True, check=True, env=environ
    )
    return done.stdout.splitlines()
