"""tf.data iterators that Python makes for each batch or two, and their share of the steady time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.python import stack_samples
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import I64

_MAKES = "/data/ops/iterator_ops.py"


class FreshIterators(Struct, frozen=True, kw_only=True):
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


def build(view: StepsView, min_iterators: int, max_pulls: int) -> FreshIterators | None:
    """Fresh iterators; None if the step's thread makes fewer of them, or pulls more than ``max_pulls`` from each."""
    steps = view.steps
    if len(steps.windows[0]) == 0:
        return None
    pulls = view.calls(Kind.NEXT).begun_in(steps.windows)
    pulls = pulls.where(~pulls.flagged(Flag.END))
    fresh = pulls.where(np.isin(pulls.args, _short(pulls.args, max_pulls)))
    iterators = len(np.unique(fresh.args))
    if iterators < min_iterators:
        return None
    names, counts = np.unique(fresh.names, return_counts=True)
    name = view.names.get(int(names[counts.argmax()]))
    waits = int(pulls.durations.sum())
    part = int(fresh.durations.sum()) / waits if waits else 0.0
    python = [s for s in view.samples if s.component == "other-python"]
    making = [s for s in python if _makes(s)]
    whole = stack_samples.weight_of(python)
    return FreshIterators(
        iterators=iterators,
        pulls=len(fresh),
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
