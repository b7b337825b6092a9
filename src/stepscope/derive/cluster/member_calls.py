"""The calls in which a member's steps may wait for the other members, by the member's own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.steps.steps import names_of
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.steps.steps import Steps
    from stepscope.tables.records import F64, I64, Bool

MIN_COVERED = 0.8
"""Share of the steps that a call must be part of to hold what every step waits in."""
MIN_STEPS = 8
NONE = -1
"""Entry and exit of a step without the call."""


class MemberCalls(Struct, frozen=True, kw_only=True):
    """One call of each step of a member. Shapes: [step]; ns of the member's own monotonic clock."""

    name: str
    entries: I64
    exits: I64
    usable: Bool
    """Whether the step has the call, is steady and holds nothing else that is rare, and was observed, as was the one
    before."""

    @property
    def own_ns(self) -> F64:
        """From the end of the call before to this one: what the member did alone. NaN where it is not known."""
        own = np.full(len(self.entries), np.nan)
        good = self.usable[1:] & (self.exits[:-1] != NONE)
        own[1:][good] = (self.entries[1:] - self.exits[:-1])[good]
        return own

    @property
    def call_ns(self) -> F64:
        """Duration of the call; NaN where it is not known."""
        return np.where(self.usable, (self.exits - self.entries).astype(np.float64), np.nan)

    @property
    def period_ns(self) -> float:
        """Median time from exit to exit."""
        there = self.exits[self.exits != NONE]
        return float(np.median(np.diff(there))) if len(there) > 1 else 0.0


def of(steps: Steps, origin_ns: int) -> tuple[MemberCalls, ...]:
    """The calls that nearly every step has, the longest in total first; the user's spans if no call is recorded (JAX),
    or only moments: nothing waits in the end of an optimizer's step of PyTorch, and all waits lie before it.

    ``origin_ns``: clock at session start.
    """
    if len(steps) < MIN_STEPS:
        return ()
    usable = steps.recurring & ~steps.unobserved
    usable[1:] &= ~steps.unobserved[:-1]  # what was not observed lies between the call before and this one
    found = []
    main = steps.kind in kinds_with(Trait.COMPUTES)
    if main:
        found.append(_made(steps, steps.title, steps.starts, steps.call_ends, usable, origin_ns))
    found += _calls(steps, [int(kind) for kind in kinds_with(Trait.COMPUTES) if kind != Kind.LOOP], usable, origin_ns)
    found = [calls for calls in found if np.nansum(calls.call_ns) > 0]
    if not found:
        found = _calls(steps, [int(Kind.SPAN)], usable, origin_ns)
    return tuple(sorted(found, key=lambda calls: -np.nansum(calls.call_ns)))


def _calls(steps: Steps, kinds: Sequence[int], usable: Bool, origin_ns: int) -> list[MemberCalls]:
    """Calls of these kinds that nearly every step has."""
    records, found = steps.worker.records, []
    main = steps.kind in kinds_with(Trait.COMPUTES)
    names = names_of(steps.worker)
    mine = (records.thread == steps.thread) & np.isin(records.kind, kinds)
    for kind, name in np.unique(np.stack([records.kind[mine], records.name[mine]]), axis=1).T.tolist():
        calls = mine & (records.kind == kind) & (records.name == name)
        if calls.sum() < MIN_COVERED * len(steps):
            continue
        starts = records.start_ns[calls]
        at = np.searchsorted(steps.starts, starts, side="right") - 1
        inside = (at >= 0) & ((starts >= steps.call_ends[at]) | (not main))
        entries, exits = np.full(len(steps), NONE, np.int64), np.full(len(steps), NONE, np.int64)
        entries[at[inside]] = starts[inside]
        exits[at[inside]] = (starts + records.dur_ns[calls])[inside]
        if (entries != NONE).sum() >= MIN_COVERED * len(steps):
            text = names[name].text if name in names else ""
            found.append(_made(steps, f"{Kind(kind).name.lower()} {text}", entries, exits, usable, origin_ns))
    return found


def _made(steps: Steps, name: str, entries: I64, exits: I64, usable: Bool, origin_ns: int) -> MemberCalls:
    there = entries != NONE
    del steps
    return MemberCalls(
        name=name,
        entries=np.where(there, entries + origin_ns, NONE),
        exits=np.where(there, exits + origin_ns, NONE),
        usable=usable & there,
    )
