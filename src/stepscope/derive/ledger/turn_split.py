"""How the mean turn divides: the parts of a ledger between its first mark and its last (``derive.ledger.turns``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.ledger import outside, unobserved
from stepscope.derive.numeric import intervals
from stepscope.model.report.components import Trait, components_with
from stepscope.model.report.ledger import PHASES
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.derive.ledger.own_steps import OwnSteps
    from stepscope.derive.ledger.part import Ledger, LedgerPart
    from stepscope.derive.ledger.turns import ThreadTurns
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.model.report.ledger import Phase

APART: Mapping[str, Phase] = {name: name for name in PHASES if name in components_with(Trait.PHASE)}
"""Phases of a turn that are also components of its steps: they are not what a step is for."""
WAIT = "input-wait"
OUTSIDE: frozenset[Phase] = frozenset({"start", "imports", "not-seen"})


class TurnPart(Struct, frozen=True, kw_only=True):
    """A part of the mean turn."""

    phase: Phase
    component: str = ""
    """"input-wait" for that part of the steps, which a turn has apart; else ""."""
    ns: float
    spans: Intervals
    """When it was observed, in all whole turns."""


def split(ledger: Ledger, turns: ThreadTurns, own: OwnSteps) -> tuple[TurnPart, ...]:
    """The parts of the mean turn, the largest first; what no record covers is one of them. They add up to its time."""
    hidden = _hidden(turns, own)
    pieces = [piece for part in ledger.parts if part.phase not in OUTSIDE for piece in _pieces(ledger, part)]
    found: dict[tuple[Phase, str], TurnPart] = {}
    for phase, part in pieces:
        key = phase, WAIT if part.component == WAIT else ""
        inside = intervals.clip(part.spans, turns.window)
        before = found.get(key)
        found[key] = TurnPart(
            phase=phase,
            component=key[1],
            ns=_ns(part, turns, hidden) + (before.ns if before is not None else 0.0),
            spans=intervals.union(inside, before.spans if before is not None else intervals.empty()),
        )
    rest = mean_ns(turns) - sum(part.ns for part in found.values())
    if rest > 0:
        found["not-seen", ""] = TurnPart(phase="not-seen", ns=rest, spans=intervals.empty())
    return tuple(sorted((part for part in found.values() if part.ns > 0), key=lambda part: -part.ns))


def _hidden(turns: ThreadTurns, own: OwnSteps) -> float:
    """Share of the time without observed steps that lies in the whole turns."""
    hidden = unobserved.spans_of(own)
    return intervals.total(intervals.clip(hidden, turns.window)) / max(1, intervals.total(hidden))


def _ns(part: LedgerPart, turns: ThreadTurns, hidden: float) -> float:
    """A part's time in the mean turn."""
    inside = intervals.clip(part.spans, turns.window)
    seen = intervals.total(inside) / max(1, intervals.total(part.spans)) * (part.ns - part.unobserved_ns)
    return (seen + hidden * part.unobserved_ns) / turns.whole


def mean_ns(turns: ThreadTurns) -> float:
    """Time of the mean whole turn."""
    return intervals.total(turns.window) / turns.whole


def _pieces(ledger: Ledger, part: LedgerPart) -> Sequence[tuple[Phase, LedgerPart]]:
    """A part under the name that it has in a turn; the traces of first steps are tracing."""
    if part.phase == "steps":
        return [(APART.get(part.component, "steps"), part)]
    if part.phase == "end":
        return [("between-steps", part)]
    if part.phase != "first-steps":
        return [(part.phase, part)]
    records = outside.on_threads(ledger.worker, ledger.threads)
    traced = intervals.clip(outside.spans_of(records.take(records.kind == Kind.TRACE)), part.spans)
    rest = intervals.without(part.spans, traced)
    return [("tracing", _of(part, traced)), ("steps", _of(part, rest))]


def _of(part: LedgerPart, spans: Intervals) -> LedgerPart:
    """A piece of a part."""
    return type(part)(phase=part.phase, ns=intervals.total(spans), spans=spans)


def steady_ratio(ledger: Ledger, turns: ThreadTurns, own: OwnSteps) -> float:
    """Share of the mean turn for which the steady steps stand: costs are shares of these.

    Steady steps last until the next one begins. So they contain pauses that recur, but not those that a gap hides, nor
    those that are too few: what their own time is of them, it is of their share of the turn.
    """
    steady = intervals.merge(*own.steps.windows)
    later = intervals.merge(own.steps.starts[own.later], own.ends[own.later])
    mine = intervals.total(intervals.clip(later, steady)) / max(1, intervals.total(steady))
    hidden = _hidden(turns, own)
    made = sum(_ns(part, turns, hidden) for part in ledger.parts if part.phase == "steps")
    return min(1.0, made / mean_ns(turns) / mine) if mine else 1.0
