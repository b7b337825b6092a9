"""The number of passes over the training data that ended within the steady steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.steps.steps import names_of
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.tables.records import I64

EPOCH_END = "on_epoch_end"


def ended(steps: Steps) -> int:
    """Number of ends of Keras' epochs, else of the iterator that the step thread pulls most from; 0 if unknown."""
    records = steps.worker.records
    lo, hi = steps.windows
    if len(lo) == 0:
        return 0
    ends = ends_of(steps)
    epochs = int(((ends >= lo[0]) & (ends < hi[-1])).sum())
    inside = (records.thread == steps.thread) & (records.start_ns >= lo[0]) & (records.start_ns < hi[-1])
    pulls = inside & (records.kind == Kind.NEXT)
    if epochs or not pulls.any():
        return epochs
    sites, counts = np.unique(records.name[pulls], return_counts=True)
    mine = pulls & (records.name == sites[int(counts.argmax())])
    return int((mine & ((records.flags & Flag.END) != 0)).sum())


def ends_of(steps: Steps) -> I64:
    """Ends of Keras' epochs, int64[epoch], in order."""
    records = steps.worker.records
    hooks = [n.id for n in names_of(steps.worker).values() if n.hook == EPOCH_END]
    mine = (records.thread == steps.thread) & (records.kind == Kind.HOOK) & np.isin(records.name, hooks)
    ends: I64 = np.sort(records.start_ns[mine])
    return ends
