"""What the steps would take without one component: measured by those steps of the same run that had none of it.

The steps with and without it are compared as wholes, so that work which only moves elsewhere is not counted as saved.
The saving is also at most the component's own time.

Serves the general detectors: it is the ceiling that a finding above info rests on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.report.components import ComponentName
    from stepscope.tables.records import F64

MIN_WITH = 10
"""Steps that have some of the component; fewer do not say what it takes."""
MIN_WITHOUT = 20
"""Steps that have none; fewer do not say what is usual."""
NONE = 0.01
"""Share of the median step up to which a component counts as absent."""
Z = 2.26
"""Of a 95 % interval of a mean of ten values (Student's t); a little wide for more."""


class Saving(Struct, frozen=True, kw_only=True):
    """Share of the steady wall time that steps without a component do not take, with its 95 % interval."""

    ratio: float
    low: float
    high: float
    steps_with: int
    steps_without: int


def build(view: StepsView, component: ComponentName) -> Saving | None:
    """The saving; None where too few steps had none of the component, or too few had some."""
    part = view.anatomy.per_step_of(component)
    whole: F64 = view.anatomy.per_step.sum(1)
    if len(whole) < MIN_WITH + MIN_WITHOUT:
        return None
    absent = part <= NONE * float(np.median(whole))
    held, free = whole[~absent], whole[absent]
    if len(held) < MIN_WITH or len(free) < MIN_WITHOUT:
        return None
    weight = len(held) / float(whole.sum())
    excess = weight * (float(held.mean()) - float(free.mean()))
    error = weight * Z * float(np.sqrt(held.var() / len(held) + free.var() / len(free)))
    own = float(part[~absent].sum() / whole.sum())
    ratio = min(max(0.0, excess), own)
    return Saving(
        ratio=ratio,
        low=min(ratio, max(0.0, excess - error)),
        high=own,
        steps_with=len(held),
        steps_without=len(free),
    )
