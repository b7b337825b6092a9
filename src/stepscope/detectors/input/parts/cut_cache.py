"""Shared by the input detectors: a cache that is never read to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.input import cut_caches
from stepscope.derive.steps import epochs
from stepscope.tables.findings import Remedy
from stepscope.tables.place import Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.causes.input.cut_caches import CutCache
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import DatasetMade

REPEATS = "RepeatDataset"
"""The dataset class that makes more than one pass."""
WHY = "cache is discarded after each pass: take() follows it, so it is never read to its end"
REMEDY = Remedy(
    id="take-first",
    text="call take() before cache(): a cache is kept only after a pass has read it to its end, so this one is "
    "refilled in each pass",
    safety="review",
)


def above(view: StepsView, made: Iterable[DatasetMade]) -> CutCache | None:
    """The cache that should keep the output of one of these datasets but does not; None if there is only one pass."""
    pipe, steps = view.pipeline, view.steps
    found = cut_caches.build(pipe.datasets)
    if found is None or found.below.isdisjoint(d.id for d in made):
        return None
    again = any(d.cls == REPEATS for d in pipe.datasets) or epochs.ended(steps)
    return found if again else None


def places(view: StepsView, found: CutCache) -> tuple[Place, ...]:
    """Places of the cache and of the take that cuts it short."""
    return tuple(p for d in (found.cache, found.take) if (p := view.dataset_place(d)) is not None)
