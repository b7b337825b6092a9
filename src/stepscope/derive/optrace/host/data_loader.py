"""PyTorch's DataLoader in an op trace: the duration of its ``next``, and whether batches are made within it.

kineto names each ``next`` after the loader's iterator: one that makes batches in the process itself, or one that takes
them from worker processes, whose own work is not in the trace.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.host.activity import LOADER

if TYPE_CHECKING:
    from stepscope.derive.optrace.host.batch_waits import Waits
    from stepscope.tables.optrace import OpTrace

IN_PROCESS = "_SingleProcessDataLoaderIter."
"""Iterator of a DataLoader with num_workers=0. Source: torch/utils/data/dataloader.py."""


class Loader(Struct, frozen=True, kw_only=True):
    """The loader that delivered the batches of a trace."""

    name: str
    """Name of the iterator's call in the trace."""
    batches: int
    mean_ns: float
    """Mean duration of a ``next``."""
    in_process_ratio: float
    """Share of the batches made within ``next``."""


def build(trace: OpTrace, waits: Waits) -> Loader | None:
    """The loader that delivered the steps' batches; None without one."""
    names = trace.names()[waits.event]
    taken = np.array([text.startswith(LOADER) for text in trace.strings], np.bool_)[names]
    rows = waits.event[taken]
    if not len(rows):
        return None
    called = Counter(trace.strings[i].removeprefix(LOADER) for i in names[taken].tolist())
    inside = sum(count for name, count in called.items() if name.startswith(IN_PROCESS))
    return Loader(
        name=called.most_common(1)[0][0],
        batches=len(rows),
        mean_ns=float(trace.events.dur_ns[rows].mean()),
        in_process_ratio=inside / len(rows),
    )
