"""Parts of the ledger that are steps: the first ones, and the later ones by component."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.ledger import pauses, unobserved
from stepscope.derive.ledger.part import LedgerPart
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import anatomy
from stepscope.model.report.components import COMPONENTS, PAINTED, REST, Trait, components_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.ledger.own_steps import OwnSteps
    from stepscope.derive.ledger.unobserved import UnobservedSteps
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.model.report.ledger import Phase

_RECORDED = components_with(Trait.RECORDED_IN_GAPS)


class InSteps(Struct, frozen=True, kw_only=True):
    """The steps of one thread as parts of a ledger."""

    own: OwnSteps
    later: Intervals
    """Own time of the observed steps after the first ones."""
    observed: Mapping[str, float]
    """Time of each component in these, ns."""
    spans: Mapping[str, Intervals]
    """When each component was observed in them."""
    broken: Intervals
    """When steps were not observed."""

    @property
    def first(self) -> LedgerPart:
        """The first steps."""
        spans = self.own.warm_up
        early = int(self.own.seen[: self.own.first].sum())
        return LedgerPart(phase="first-steps", ns=intervals.total(spans), count=early, spans=spans)

    def parts(self, gaps: UnobservedSteps, recorded: Mapping[str, int]) -> list[LedgerPart]:
        """The later steps, the largest component first.

        Args:
            gaps: the steps that were only counted.
            recorded: time in gaps that records show, by component.
        """
        count = self.own.steps.count - int(self.own.seen[: self.own.first].sum())
        found = []
        for name in COMPONENTS:
            counted = gaps.parts.get(name, 0)
            whole = round(self.observed.get(name, 0.0)) + counted + recorded.get(name, 0)
            if whole > 0:
                spans = self.spans.get(name, intervals.empty())
                part = LedgerPart(
                    phase="steps", component=name, ns=whole, unobserved_ns=counted, count=count, spans=spans
                )
                found.append(part)
        return sorted(found, key=lambda part: -part.ns)


def build(own: OwnSteps, compiled_wait_ns: float) -> InSteps:
    """The steps of a thread. ``compiled_wait_ns``: input wait inside the compiled call of the mean step."""
    later = own.later
    kept = replace(own.steps, ends=own.ends, steady=later)
    split = anatomy.build(kept, compiled_wait_ns) if later.any() else None
    observed = {name: float(split.per_step_of(name).sum()) for name in COMPONENTS} if split is not None else {}
    spans = _spans(split.painting) if split is not None else {}
    if split is not None and split.compiled_wait_ns and "call" in spans:
        spans.setdefault("input-wait", spans["call"])
    return InSteps(
        own=own,
        later=intervals.merge(own.steps.starts[later], own.ends[later]),
        observed={name: ns for name, ns in observed.items() if ns > 0},
        spans=spans,
        broken=unobserved.spans_of(own),
    )


def _spans(painting: intervals.Painting) -> dict[str, Intervals]:
    """When each component shows."""
    found: dict[str, Intervals] = {}
    for layer, name in enumerate((*(name for name, _ in PAINTED), REST)):
        pieces = np.flatnonzero(painting.layer == layer)
        if len(pieces):
            spans = intervals.merge(painting.edges[pieces], painting.edges[pieces + 1])
            found[name] = intervals.union(found[name], spans) if name in found else spans
    return found


def counted(steps: InSteps, spans: Intervals, between: Intervals, others: Mapping[Phase, float]) -> UnobservedSteps:
    """The steps in gaps.

    Args:
        steps: the steps.
        spans: when steps were not observed, without what records show of that time.
        between: observed time between steps of which nothing would be seen in a gap. It stands for that in gaps if it
            recurs.
        others: observed time of other makers' calls, if gaps do not record them.
    """
    observed = {name: ns for name, ns in steps.observed.items() if name not in _RECORDED}
    own = steps.own
    if pauses.recur(own):
        observed[""] = float(intervals.total(between))
    return unobserved.build(own, spans, observed, others)
