"""Elements that a stage makes and a later one drops: with the dropping first, their work is not done at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import source_change
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from stepscope.derive.input.stages import Stage
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place

METHODS = ("filter", "skip", "shard")
"""Dataset methods that drop elements."""
MAKERS = ("Map", "Generator", "Interleave")
"""In the names of stages that run the user's code for each element."""
REMEDIES = frozenset({*(f"{method}-first" for method in METHODS), "filter-between", "make-what-is-used"})
"""Ids of the remedies by which work is not done at all: they stand before those that make it cheaper."""
MAX_LEFT_RATIO = Ratio(0.7)
"""Of the elements of a stage: a later one is named only if it leaves less."""
TENTHS = 10
NEAR = 0.02
"""Shares this near to a number of tenths are said as "9 of 10"."""


class Dropped(Struct, frozen=True, kw_only=True):
    """A stage that drops much of an earlier one's output."""

    by: Stage
    method: str
    """Name of the Dataset method."""
    ratio: Ratio
    """Of the elements that the earlier stage makes."""

    @property
    def share(self) -> str:
        """``9 of 10``, or ``84 % of the`` where tenths would round it."""
        tenths = round(self.ratio * TENTHS)
        near = abs(self.ratio * TENTHS - tenths) <= NEAR * TENTHS and 0 < tenths < TENTHS
        return f"{tenths} of {TENTHS}" if near else f"{format_ratio(self.ratio)} of the"

    def places(self, view: StepsView) -> tuple[Place, ...]:
        """The line that drops."""
        return tuple(p for d in self.by.datasets if (p := view.dataset_place(d)) is not None)

    def said(self, view: StepsView) -> str:
        """``; filter (line 23) drops 9 of 10 elements``: to append to what the earlier stage takes."""
        line = next((f" (line {place.line})" for place in self.places(view)), "")
        return f"; {self.method}{line} drops {self.share} elements"

    def evidence(self) -> Evidence:
        """The share that is dropped."""
        return Evidence(metric="dropped_ratio", value=self.ratio, unit="ratio")

    def remedy(self, view: StepsView, stage: Stage) -> Remedy:
        """The dropping first, where the earlier stage allows it."""
        drops = f"it drops {self.share} elements"
        if "Generator" in stage.name:
            text = f"make only what {self.method} leaves: {drops} of the generator"
            return Remedy(id="make-what-is-used", text=text, safety="review")
        made = "map" if "Map" in stage.name else "interleave"
        if self.method != "filter":
            text = f"{self.method} before the {made}: {drops}"
            return Remedy(id=f"{self.method}-first", text=text, safety="review")
        if source_change.changes_arguments(stage, view.pipeline.datasets):
            text = f"make first what the filter's condition needs, then filter, then the rest of the {made}: {drops}"
            return Remedy(id="filter-between", text=text, safety="review")
        text = f"filter before the {made} if its condition does not need what the {made} makes: {drops}"
        return Remedy(id="filter-first", text=text, safety="review")


def after(view: StepsView, stage: Stage | None, max_left_ratio: float = MAX_LEFT_RATIO) -> Dropped | None:
    """The nearest stage behind ``stage``, which runs the user's code, that leaves less than a share of what it takes.

    The share is of the stage's own input: a batch in between makes fewer elements of as many rows, and drops none.
    """
    stages = view.pipeline.stages
    if stage is None or stage not in stages or not any(part in stage.name for part in MAKERS):
        return None
    depth = stage.depth
    for at in reversed(range(stages.index(stage))):
        behind, taken = stages[at], stages[at + 1]
        if behind.depth >= depth:  # of another input of a zip
            continue
        depth = behind.depth
        method = next((word for word in METHODS if word.capitalize() in behind.name), "")
        if method and taken.elements:
            left = behind.elements / taken.elements
            kept = left >= max_left_ratio
            return None if kept else Dropped(by=behind, method=method, ratio=Ratio(1.0 - left))
    return None
