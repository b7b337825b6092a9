"""Shared by the general detectors: a component of the step with its deepest known lines, and what a finding claims.

A general finding is information. It claims a saving only if steps of the same run without the component show one
(``causes.general.step_without``); without that, its cost is unknown, at most the component's share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import spent_lines, waits
from stepscope.derive.numeric import concentration
from stepscope.derive.steps import rare
from stepscope.detectors.base import Seen, cost_of, severity_of, step_ns
from stepscope.detectors.remedies import Fact
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.causes.general.spent_lines import SpentLine
    from stepscope.causes.general.step_without import Saving
    from stepscope.derive.numeric.concentration import Few
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.report.components import ComponentName
    from stepscope.tables.findings import Cost, Severity
    from stepscope.tables.place import Place
    from stepscope.wire.kinds import Kind

MIN_SAVING = 0.03
"""Least lower bound of a measured saving above info (the least that a report calls low)."""
MOST = 0.3
"""Part of a component's time from which a title states a line's share of it."""
CONFIDENCE = 0.9
"""The component's time is measured; what of it can be saved is not claimed."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Of steady wall time: the least share that a report must explain (docs/decisions/0042)."""
    max_waiting_ratio: Ratio = Ratio(0.5)
    """Of the component's time in waits that are known (GEN014), which say more than the component."""


class Loss(Struct, frozen=True, kw_only=True):
    """The time of one component in the steady steps."""

    component: ComponentName
    ratio: float
    """Share of the steady wall time."""
    ns_per_step: float
    spent: tuple[SpentLine, ...]
    few: Few | None = None
    """The steps that have most of it, if they are few."""
    saving: Saving | None = None

    @property
    def claimed(self) -> Saving | None:
        """The saving, if even its lower end is worth a finding above info."""
        return self.saving if self.saving is not None and self.saving.low >= MIN_SAVING else None

    @property
    def severity(self) -> Severity:
        """Info, unless a saving is claimed."""
        return severity_of(self.claimed.ratio) if self.claimed is not None else "info"

    @property
    def where(self) -> tuple[Place, ...]:
        """The lines, each followed by the line of the loop that reaches it."""
        found = [place for spent in self.spent for place in (spent.place, spent.caller) if place is not None]
        return tuple(dict.fromkeys(found))

    @property
    def share_text(self) -> str:
        """``62 % of the step time (5.1 ms a step)``, ``62 % of the step time (20 s in one of 23 steps)``."""
        if self.few is not None:
            return f"{format_ratio(self.ratio)} of the step time ({format_ns(self.few.each)} {self.few.said('steps')})"
        return f"{format_ratio(self.ratio)} of the step time ({format_ns(self.ns_per_step)} a step)"

    @property
    def top_text(self) -> str:
        """``, 80 % of it in augment (resize)``; empty where no line is known to hold it."""
        return top_text(self.spent)

    def cost(self, view: StepsView) -> Cost:
        """The claimed saving; else unknown, at most all of it."""
        if self.claimed is None:
            return cost_of(view, 0.0, high=self.ratio, basis="unknown")
        return cost_of(view, self.claimed.ratio, low=self.claimed.low, high=self.claimed.high)

    def evidence(self, params: Params) -> tuple[Evidence, ...]:
        """The component's share, that of its lines, and the steps that the saving rests on."""
        name = self.component.replace("-", "_")
        found = [
            Evidence(
                metric=f"{name}_ratio",
                value=self.ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=(f"component:{self.component}",),
            )
        ]
        found += of_lines(self.spent)
        if self.saving is not None:
            found += [
                Evidence(metric="saved_ratio", value=self.saving.ratio, unit="ratio", threshold=MIN_SAVING),
                Evidence(metric="steps_with", value=self.saving.steps_with, unit="steps"),
                Evidence(metric="steps_without", value=self.saving.steps_without, unit="steps"),
            ]
        return tuple(found)

    def seen(
        self,
        view: StepsView,
        params: Params,
        *,
        title: str,
        remedies: tuple[Remedy, ...],
        explanation: str,
        more: tuple[Evidence, ...] = (),
        clear_ratio: float = 0.0,
    ) -> Seen:
        """The finding about this time.

        Args:
            view: the session.
            params: the thresholds.
            title: what is said.
            remedies: what can be done.
            explanation: how it is known.
            more: evidence beyond the shares and the measured saving.
            clear_ratio: share of the steady wall time on one place that stands above information without a measured
                saving; 0: none.
        """
        clear = clear_ratio if self.claimed is None else 0.0
        return Seen(
            title=title,
            severity=severity_of(clear) if clear else self.severity,
            confidence=CONFIDENCE,
            where=self.where,
            evidence=(*self.evidence(params), *more),
            cost=cost_of(view, clear, low=0.0, high=self.ratio, basis="modelled") if clear else self.cost(view),
            remedies=(*remedies, LOOK),
            about=once(self.few),
            explanation=explanation,
        )


LOOK = Remedy(
    id="look-at-that-step",
    text="see what happened in that one step (stepscope report SESSION --step slowest): it is no cost of each",
)


def once(found: Few | None) -> frozenset[Fact]:
    """Whether something happened in few of many, or in one only."""
    if found is None:
        return frozenset()
    return frozenset({Fact.FEW, Fact.ONCE}) if found.count == 1 else frozenset({Fact.FEW})


def top_text(lines: Sequence[SpentLine]) -> str:
    """The line that holds most of some time, as the end of a title; "" where none is known to."""
    top = next((spent for spent in lines if spent.ratio), None)
    if top is None:
        return ""
    name = top.place.function if top.place.function not in {"", "<module>"} else f"line {top.place.line}"
    doing = f" ({top.what})" if top.what and top.what != name else ""
    part = f"{format_ratio(top.ratio)} of it" if top.ratio >= MOST else "often"
    return f", {part} in {name}{doing}"


def of_lines(lines: Sequence[SpentLine]) -> list[Evidence]:
    """The parts of some time that are known to fall on lines."""
    return [
        Evidence(metric=f"part at {spent.place.file}:{spent.place.line}", value=spent.ratio, unit="ratio")
        for spent in lines
        if spent.ratio
    ]


def find(view: StepsView, component: ComponentName, params: Params, saving: Saving | None = None) -> Loss | None:
    """A component's time; None if it is too little, or if it is known what the thread waits for in most of it."""
    anatomy = view.anatomy
    ratio = anatomy.ratio(component)
    if ratio < params.min_ratio or waits.part_of(view, component, waits.known(view)) >= params.max_waiting_ratio:
        return None
    return Loss(
        component=component,
        ratio=ratio,
        ns_per_step=ratio * step_ns(view),
        spent=spent_lines.of(view, component),
        few=concentration.few(anatomy.per_step_of(component)),
        saving=saving,
    )


def how_often(view: StepsView, kind: Kind) -> tuple[str, float]:
    """``every 40 steps``, ``about every 37 steps``, ``2.5 times a step``, and how many of some kind a step has; "" if
    none was seen to begin in the steps.
    """
    steps, records = view.steps, view.steps.worker.records
    each = len(view.calls(kind).begun_in(steps.windows)) / steps.steady_count
    if not each:
        return "", 0.0
    if each >= 1:
        return "in every step" if each == 1 else f"{each:.3g} times a step", each
    found = rare.of(steps, (records.kind == kind) & (records.thread == steps.thread))
    return (found.often("step", "steps"), 1 / max(1.0, found.every)) if found is not None else ("", each)
