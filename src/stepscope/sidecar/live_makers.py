"""The makers of steps of a running job: named by the analysis, counted at each moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.derive.steps import step_candidates, step_makers
from stepscope.model.api.status import LiveMaker
from stepscope.report.sections import step_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stepscope.derive.view import SessionView

    Calls = frozenset[tuple[str, int, int]]


def of(view: SessionView) -> list[tuple[LiveMaker, Calls]]:
    """All makers, the main one first; threads that train alike are one here, for calls are not counted by thread."""
    if view.steps is None:
        return []
    found: dict[Calls, LiveMaker] = {}
    makers = step_makers.build(view.steps)
    for shown, maker in zip(step_summary.makers(view, makers), makers, strict=False):
        candidate = maker.steps.candidate
        ids = step_candidates.alike(candidate.worker, candidate.kind, candidate.place) | {candidate.name.id}
        calls = frozenset((candidate.worker.info.key, int(candidate.kind), number) for number in ids)
        known = found.get(calls)
        place = shown.place
        found[calls] = LiveMaker(
            kind=shown.kind,
            title=shown.title,
            place=f"{place.file}:{place.line}" if place else "",
            pid=shown.pid,
            threads=shown.threads + (known.threads if known else 0),
            count=shown.count + (known.count if known else 0),
            rate=_sum(known.rate if known else 0.0, shown.rate),
            samples_per_s=_sum(known.samples_per_s if known else 0.0, shown.samples_per_s),
        )
    return [(maker, calls) for calls, maker in found.items()]


def counted(makers: Iterable[tuple[LiveMaker, Calls]], count: Callable[[Calls], int]) -> tuple[LiveMaker, ...]:
    """The makers with their counts of this moment."""
    return tuple(msgspec.structs.replace(maker, count=count(calls)) for maker, calls in makers)


def _sum(one: float | None, other: float | None) -> float | None:
    return one + other if one is not None and other is not None else None
