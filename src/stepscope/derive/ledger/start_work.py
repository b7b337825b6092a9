"""What frameworks do before steps are in their stride, by the stacks of the thread: start a device, compile.

Compilation inside of one call of C has no frame that says it (TensorFlow optimises and compiles a graph in its first
run): of that, ``first_runs`` has what the first steps took beyond tracing and the time of usual ones.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.derive.python import stack_samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.ledger.part import LedgerPart
    from stepscope.derive.python.stack_samples import Spot
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.session import Worker

DEVICE, COMPILING = "starting the device", "compiling"
_WORK: tuple[tuple[str, str, frozenset[str]], ...] = (
    (DEVICE, "/tensorflow/python/eager/context.py", frozenset({"ensure_initialized", "_initialize_physical_devices"})),
    (DEVICE, "/torch/cuda/__init__.py", frozenset({"_lazy_init"})),
    (DEVICE, "/jax/_src/xla_bridge.py", frozenset({"_init_backend"})),
    (COMPILING, "/jax/_src/compiler.py", frozenset({"backend_compile", "backend_compile_and_load"})),
    (COMPILING, "/torch/_dynamo/convert_frame.py", frozenset({"_compile"})),
    (COMPILING, "/triton/compiler/compiler.py", frozenset({"compile"})),
)
"""What is done in functions of frameworks, by the ending of their file. Sources: TensorFlow 2.15 to 2.21, PyTorch 2.3
to 2.9, JAX 0.4 to 0.8, Triton 3."""
LONGEST_NS = 5_000_000_000
"""Longest time that one sample stands for: a thread that holds the interpreter's lock is not sampled meanwhile."""


def of(worker: Worker, threads: tuple[int, ...], part: LedgerPart) -> dict[str, int]:
    """Nanoseconds of a part in each of these, from sample to sample."""
    found: Counter[str] = Counter()
    known: dict[int, str] = {}  # by identity: samples of one stack share its frames
    for thread in threads:
        before = None
        for sample in sorted(stack_samples.thread_samples(worker, [thread], gaps=True), key=lambda one: one.at):
            if id(sample.frames) not in known:
                known[id(sample.frames)] = _what(sample.frames)
            what = known[id(sample.frames)]
            if what:
                begin = max(sample.at - sample.weight_ns if before is None else before, sample.at - LONGEST_NS)
                span = np.array([begin], np.int64), np.array([sample.at], np.int64)
                found[what] += intervals.total(intervals.clip(span, part.spans))
            before = sample.at
    return dict(found)


def _what(frames: Sequence[Spot]) -> str:
    for frame in frames:
        for what, file, functions in _WORK:
            if frame.file.endswith(file) and frame.function.rpartition(".")[2] in functions:
                return what
    return ""


def first_runs(steps: Steps, part: LedgerPart, traced_ns: int) -> int:
    """Nanoseconds of the first steps beyond tracing and as many usual steps."""
    usual = float(np.median((steps.ends - steps.starts)[steps.steady])) if steps.steady.any() else 0.0
    return max(0, int(part.ns - traced_ns - part.count * usual))
