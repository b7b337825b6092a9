"""The part of PyTorch's steps that stack samples show: its forward pass, the outermost call of a Module.

No record tells of a Module's call: to wrap it costs each of a network's modules, and PyTorch's compiler knows it by
identity (docs/decisions/0115). But its frame stands on the stack. The samples of the steady steps that fall on no
record show which part of that time is the forward pass; the share is taken to be the same in every step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.steps.steps import names_of
from stepscope.model.log.events import Code, Stack
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.tables.records import I64, Bool

OPTIMIZER = "optimizer"
"""Role of the names of PyTorch's optimizer steps."""
MIN_SAMPLES = 60
"""Samples in the rest of the step from which it is split: the standard error of a half is then 6.5 % of the rest."""
_MODULE_FILE = "/torch/nn/modules/module.py"
_MODULE_CALLS = frozenset({"_wrapped_call_impl", "_call_impl"})
"""Functions of PyTorch in which ``Module.__call__`` runs; 2.0 has the latter alone."""


class SampledParts(Struct, frozen=True, kw_only=True):
    """How the rest of the mean step splits."""

    samples: int
    """Samples in the rest, of the steps' thread."""
    forward_ratio: float | None
    """Share of the rest in calls of Modules; None: too few samples."""


def made_by_torch(steps: Steps) -> bool:
    """Whether an optimizer of PyTorch ends a part of the steps, or each of them."""
    records, names = steps.worker.records, names_of(steps.worker)
    mine = (records.kind == Kind.APPLY) & (records.thread == steps.thread)
    return any(number in names and names[number].role == OPTIMIZER for number in np.unique(records.name[mine]).tolist())


def in_module(file: str, function: str) -> bool:
    """Whether a frame is that of a Module's call."""
    return function.rpartition(".")[2] in _MODULE_CALLS and file.replace("\\", "/").endswith(_MODULE_FILE)


def build(steps: Steps, in_rest: Bool, samples: I64) -> SampledParts | None:
    """How the rest splits; None where PyTorch makes no part of the steps.

    Args:
        steps: the steps.
        in_rest: bool[sample], which of the samples fall on the rest of a steady step.
        samples: int64[sample], their rows in the worker's records.
    """
    if not made_by_torch(steps):
        return None
    stacks = {one.id: one.frames for one in steps.worker.all(Stack)}
    rows = steps.worker.records.take(samples[in_rest])
    rows = rows.take(np.isin(rows.name, list(stacks)))
    weights = rows.dur_ns if rows.dur_ns.any() else np.ones(len(rows), np.int64)
    if int((weights > 0).sum()) < MIN_SAMPLES:
        return SampledParts(samples=len(rows), forward_ratio=None)
    codes = {code.id for code in steps.worker.all(Code) if in_module(code.file, code.function)}
    calls = [number for number, frames in stacks.items() if any(code in codes for code, _ in frames)]
    inside = np.isin(rows.name, calls)
    return SampledParts(samples=len(rows), forward_ratio=float(weights[inside].sum() / weights.sum()))
