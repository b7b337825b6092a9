"""Whether a job trains a model, or only predicts with one.

Serves several detectors and causes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.steps.candidate import TRAIN_ROLES
from stepscope.model.log.events import ModelBuilt, Traced
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView


def trains(view: SessionView) -> bool:
    """Whether something changes a model: a loop that only predicts may keep its results, or wait for requests."""
    steps = view.steps
    if steps is None:
        return any(w.all(ModelBuilt) for w in view.session.workers)
    records = steps.worker.records
    train = [n.id for n in view.names.values() if n.role in TRAIN_ROLES]
    trained = (records.kind == Kind.EXECUTION) & np.isin(records.name, train)
    trained |= (records.kind == Kind.APPLY) | (records.kind == Kind.SESSION_RUN)
    return bool(trained.any() or view.get(updating_functions))


def predicts(view: SessionView) -> bool:
    """Whether the steps are calls of Keras' predict or evaluate."""
    steps = view.steps
    return steps is not None and steps.kind in kinds_with(Trait.KERAS) and steps.candidate.purpose != "training"


def updating_functions(view: SessionView) -> set[int]:
    """Names of the functions whose graphs change variables: training steps."""
    if view.steps is None:
        return set()
    updating = {(t.file, t.line) for t in view.steps.worker.all(Traced) if t.updates > 0}
    return {n.id for n in view.names.values() if n.file and (n.file, n.line) in updating}
