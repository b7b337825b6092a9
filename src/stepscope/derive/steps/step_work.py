"""The work of the calls that make steps (training, evaluation or prediction), their place, and other calls in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.steps.candidate import EVALUATIONS, TRAIN_ROLES
from stepscope.derive.steps.steps import names_of
from stepscope.model.log.events import BatchSeen, Traced
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps

CALLS = kinds_with(Trait.STEP)
OFTEN = 0.5
"""Share of the steady steps in which a call must occur to belong to a step."""
MAX_USUAL = 64
LOOPS = {"train": "fit", "test": "evaluate", "predict": "predict"}
"""Keras' loop that calls a compiled function, by the role of the function."""


def work(steps: Steps) -> str:
    """The work: training, evaluation or prediction; "" if the calls do not show it."""
    call = steps.call
    if call is None:
        return ""
    if call.role in TRAIN_ROLES or steps.kind in kinds_with(Trait.UPDATE):
        return "training"
    if call.role in EVALUATIONS:
        return "evaluation"
    if "predict" in call.role:
        return "prediction"
    updates = any(
        traced.updates > 0 and (traced.file, traced.line) == (call.file, call.line)
        for traced in steps.worker.all(Traced)
    )
    return "training" if call.file and updates else ""


def training_beside(steps: Steps) -> tuple[int, ...]:
    """Names of the calls that train, if the steps are evaluations of a fit that is still running; else none.

    While a fit validates for the first time, nothing has trained after an evaluation yet.
    """
    worker, records, names = steps.worker, steps.worker.records, names_of(steps.worker)
    if steps.kind != Kind.EXECUTION or steps.call is None or steps.call.role not in EVALUATIONS:
        return ()
    fits = [name.id for name in names.values() if name.role == "fit"]
    over = records.start_ns[(records.kind == Kind.LOOP) & np.isin(records.name, fits)]
    begun = [batch.loop for batch in worker.all(BatchSeen) if batch.role == "train" and batch.loop]
    if not begun or max(begun) in over:
        return ()
    trains = [name.id for name in names.values() if name.role in TRAIN_ROLES]
    mine = (records.kind == Kind.EXECUTION) & (records.thread == steps.thread) & np.isin(records.name, trains)
    return tuple(np.unique(records.name[mine]).tolist())


def place(steps: Steps) -> tuple[str, int] | None:
    """(file, line) of the user code that calls the steps, or Keras' loop around them; None if unknown."""
    call = steps.call
    if call is None:
        return None
    if call.call_file:
        return call.call_file, call.call_line
    return loop_place(steps, LOOPS.get(call.role, ""))


def loop_place(steps: Steps, role: str) -> tuple[str, int] | None:
    """(file, line) of the user code that calls a loop of Keras'; None if unknown."""
    names = names_of(steps.worker).values()
    around = [name for name in names if name.role == role and name.call_file]
    return (around[-1].call_file, around[-1].call_line) if around else None


def usual(steps: Steps) -> tuple[tuple[int, int], ...]:
    """(kind, name) of the other calls that most of the steady steps make on their thread."""
    records = steps.worker.records
    starts, _ = steps.windows
    mine = (records.thread == steps.thread) & np.isin(records.kind, CALLS) & ((records.flags & Flag.NESTED) == 0)
    found = []
    for kind, name in sorted(set(zip(records.kind[mine].tolist(), records.name[mine].tolist(), strict=True))):
        rows = mine & (records.kind == kind) & (records.name == name)
        within = np.searchsorted(starts, records.start_ns[rows], side="right")
        if len(np.unique(within[within > 0])) >= OFTEN * len(starts):
            found.append((int(kind), int(name)))
    return tuple(found[:MAX_USUAL])
