"""What the detectors of input say of a cache that is never read to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.input import cut_caches
from stepscope.derive.steps import epochs
from stepscope.model.report.finding import Place, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.causes.input.cut_caches import CutCache
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import DatasetMade

REPEATS = "RepeatDataset"
"""Makes more than one pass, by the class that tf.data makes."""
WHY = "cache is never read to its end, as take stands behind it: it is thrown away"
REMEDY = Remedy(
    id="take-first",
    text="take before the cache: a cache is kept only when a pass has read it to its end, so this one is filled anew "
    "in each pass",
    safety="review",
)


def above(view: StepsView, made: Iterable[DatasetMade]) -> CutCache | None:
    """The cache that should keep what one of these datasets makes, and does not; None where there is one pass only."""
    pipe, steps = view.pipeline, view.steps
    found = cut_caches.build(pipe.datasets)
    if found is None or found.below.isdisjoint(d.id for d in made):
        return None
    again = any(d.cls == REPEATS for d in pipe.datasets) or epochs.ended(steps)
    return found if again else None


def places(view: StepsView, found: CutCache) -> tuple[Place, ...]:
    """Of the cache and of what cuts it short."""
    return tuple(p for d in (found.cache, found.take) if (p := view.dataset_place(d)) is not None)
