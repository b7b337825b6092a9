"""The turns of the report, and what findings cost of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.causes.general import turn_times
from stepscope.model.report.turns import TurnPart, Turns

if TYPE_CHECKING:
    from stepscope.causes.general.turn_times import TurnTime
    from stepscope.derive.view import SessionView
    from stepscope.tables.findings import Finding
    from stepscope.tables.place import Place


def build(view: SessionView) -> Turns | None:
    """The mean turn; None if the job has none."""
    found = view.get(turn_times.build)
    if found is None:
        return None
    turns = found.turns
    return Turns(
        count=turns.count,
        exact=turns.exact,
        call=turns.call,
        where=view.place(turns.file, turns.line, function=turns.function),
        mean_ns=round(found.mean_ns),
        job_ratio=found.job_ratio,
        steady_ratio=found.steady_ratio,
        parts=tuple(_part(part) for part in found.parts),
    )


def _part(part: TurnTime) -> TurnPart:
    where: list[Place] = [p for spent in part.lines for p in (spent.place, spent.caller) if p is not None]
    return TurnPart(
        phase=part.phase,
        component=part.component,
        ns=round(part.ns),
        ratio=part.ratio,
        where=tuple(dict.fromkeys(where)),
    )


def weighed(view: SessionView, finding: Finding) -> Finding:
    """A finding about the steps with its share of the mean turn, where steps are only a part of one."""
    found = view.get(turn_times.build)
    once = finding.exposed_stage == "initialization"
    known = once or not finding.cost.ratio or finding.cost.turn_ratio is not None
    if found is None or known or found.steady_ratio >= turn_times.MOST_STEADY:
        return finding
    return replace(finding, cost=replace(finding.cost, turn_ratio=finding.cost.ratio * found.steady_ratio))
