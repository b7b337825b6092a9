"""tf.data iterators that Python makes for each batch or two, and their share of the steady time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.python import stack_samples
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.view import SessionView
    from stepscope.model.records import I64

_MAKES = "/data/ops/iterator_ops.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshIterators:
    """Iterators of the steady steps, each made for one batch."""

    iterators: int
    pulls: int
    wait_ratio: float
    """Share of the steady wall time spent in ``next``."""
    making_ratio: float
    """Share of the steady wall time spent making the iterators, by samples."""
    samples: int
    file: str
    line: int
    function: str
    """Function from which most of them are pulled."""

    @property
    def ratio(self) -> float:
        """Sum of both shares."""
        return min(1.0, self.wait_ratio + self.making_ratio)


def build(view: SessionView, min_iterators: int, max_pulls: int) -> FreshIterators | None:
    """Fresh iterators; None if the step's thread makes fewer of them, or pulls more than ``max_pulls`` from each."""
    steps = view.steps
    if steps is None or len(steps.windows[0]) == 0 or view.anatomy is None:
        return None
    records, (lo, hi) = steps.worker.records, steps.windows
    mine = (records.kind == Kind.NEXT) & (records.thread == steps.thread) & ((records.flags & Flag.END) == 0)
    mine &= (records.start_ns >= lo[0]) & (records.start_ns < hi[-1])
    fresh = mine & np.isin(records.arg, _short(records.arg[mine], max_pulls))
    iterators = len(np.unique(records.arg[fresh]))
    if iterators < min_iterators:
        return None
    names, counts = np.unique(records.name[fresh], return_counts=True)
    name = view.names.get(int(names[counts.argmax()]))
    waits = int(records.dur_ns[mine].sum())
    part = int(records.dur_ns[fresh].sum()) / waits if waits else 0.0
    python = [s for s in view.samples if s.component == "other-python"]
    making = [s for s in python if _makes(s)]
    whole = stack_samples.weight_of(python)
    return FreshIterators(
        iterators=iterators,
        pulls=int(fresh.sum()),
        wait_ratio=view.anatomy.ratio("input-wait") * part,
        making_ratio=view.anatomy.ratio("other-python") * stack_samples.weight_of(making) / whole if whole else 0.0,
        samples=len(making),
        file=name.call_file if name is not None else "",
        line=name.call_line if name is not None else 0,
        function=name.call_function if name is not None else "",
    )


def _short(iterators: I64, max_pulls: int) -> I64:
    """Iterators from which hardly a batch was taken."""
    known, pulls = np.unique(iterators, return_counts=True)
    short: I64 = known[pulls <= max_pulls]
    return short


def _makes(sample: Sample) -> bool:
    return any(spot.file.endswith(_MAKES) for spot in sample.frames)
