"""What a step function of Keras on PyTorch does: the backward pass by records, the rest by stack samples.

The step function is Python, and calls PyTorch as it goes: unlike a compiled one, its stacks say where it is. All of
these parts are parts of ``call``: they are said, and not painted.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.steps.anatomy import spans_of
from stepscope.derive.steps.sampled_parts import MIN_SAMPLES
from stepscope.model.log.events import Code, Stack
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.steps.anatomy import Anatomy

PLACES = {
    "layers": ("/keras/src/layers/layer.py", "__call__"),
    "update": ("/keras/src/optimizers/base_optimizer.py", "apply"),
}
"""The function of Keras in which a part of the step runs, whatever layer or optimizer it is."""
STEP = ("/keras/src/backend/torch/trainer.py", "train_step")


class KerasParts(Struct, frozen=True, kw_only=True):
    """Shares of the time in the step function."""

    backward_ratio: float
    samples: int
    """Samples in the step function outside of its backward pass."""
    forward_ratio: float | None = None
    """None: too few samples, of the optimizer, too."""
    optimizer_ratio: float | None = None
    rest_line: int = 0
    """Line of Keras' ``train_step`` with most of what is none of these parts; 0: not known."""
    rest_line_ratio: float = 0.0


def build(anatomy: Anatomy) -> KerasParts | None:
    """The parts; None where no step function of Keras runs PyTorch's autograd engine."""
    steps = anatomy.steps
    calls = intervals.clip(intervals.merge(steps.starts, steps.call_ends), steps.windows)
    backward = intervals.clip(intervals.merge(*spans_of(steps, Kind.AUTOGRAD)[:2]), calls)
    whole, engine = intervals.total(calls), intervals.total(backward)
    if steps.kind != Kind.EXECUTION or not whole or not engine:
        return None
    records = steps.worker.records
    stacks = {one.id: one.frames for one in steps.worker.all(Stack)}
    codes = {code.id: (code.file.replace("\\", "/"), code.function) for code in steps.worker.all(Code)}
    mine = (records.kind == Kind.SAMPLE) & (records.thread == steps.thread) & np.isin(records.name, list(stacks))
    at = records.start_ns
    mine &= intervals.overlapping(calls, at, at + 1) & ~intervals.overlapping(backward, at, at + 1)
    rows = records.take(mine)
    weights = rows.dur_ns if rows.dur_ns.any() else np.ones(len(rows), np.int64)
    backward_ratio = min(1.0, engine / whole)
    if int((weights > 0).sum()) < MIN_SAMPLES:
        return KerasParts(backward_ratio=backward_ratio, samples=len(rows))
    times: Counter[str] = Counter()
    lines: Counter[int] = Counter()
    for number, weight in zip(rows.name.tolist(), weights.tolist(), strict=True):
        part, line = _part([(*codes.get(code, ("", "")), line) for code, line in stacks[number]])
        times[part] += weight
        if not part and line:
            lines[line] += weight
    scale = (1.0 - backward_ratio) / max(1, times.total())
    line, spent = lines.most_common(1)[0] if lines else (0, 0)
    return KerasParts(
        backward_ratio=backward_ratio,
        samples=len(rows),
        forward_ratio=scale * times["layers"],
        optimizer_ratio=scale * times["update"],
        rest_line=line,
        rest_line_ratio=scale * spent,
    )


def _part(frames: Sequence[tuple[str, str, int]]) -> tuple[str, int]:
    """The part that a stack is in, root to leaf, "" for none of them; and the line of Keras' ``train_step``."""
    line = 0
    for file, function, at in frames:
        if _is(file, function, (STEP,)):
            line = at
        for part, place in PLACES.items():
            if _is(file, function, (place,)):
                return part, line
    return "", line


def _is(file: str, function: str, places: Iterable[tuple[str, str]]) -> bool:
    return any(file.endswith(ending) and function.rpartition(".")[2] == name for ending, name in places)
