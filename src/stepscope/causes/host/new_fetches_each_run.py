"""Runs of a session that are the first of their fetches and feeds, again and again, and the time beyond a usual run."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from stepscope.derive.steps.calls import Calls
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import Name

USUAL_RUNS = 3
"""Runs of known fetches that show what one takes."""


class NewFetches(Struct, frozen=True, kw_only=True):
    """The line whose first runs cost most."""

    name: Name
    """The name of one of its runs."""
    first: int
    """Number of its first runs within the steady steps."""
    runs: int
    """Number of all of its runs there."""
    total_ns: int
    """Time of the first ones."""
    usual_ns: float | None
    """What a run takes whose fetches are known; None: no such run was seen."""
    measured: bool
    """Whether usual runs are those of the same line; else they are the others of as many samples."""

    @property
    def beyond_ns(self) -> float:
        """Time of the first runs beyond usual ones."""
        return max(0.0, self.total_ns - self.first * (self.usual_ns or 0.0))


def build(view: StepsView, min_first: int, min_share: float) -> NewFetches | None:
    """None if no line keeps running something new.

    Args:
        view: The session.
        min_first: First runs of a line within the steady steps.
        min_share: Share of its runs that they make.
    """
    runs = view.calls(Kind.SESSION_RUN)
    if not len(runs) or _makes_sessions(view):
        return None
    known = runs.where(~runs.flagged(Flag.FIRST))
    places = {number: (n.call_file, n.call_line) for number, n in view.names.items() if n.call_file}
    lines: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number in np.unique(runs.names).tolist():
        if number in places:
            lines[places[number]].append(number)
    found = []
    for numbers in lines.values():
        steady = runs.named(numbers).begun_in(view.steps.windows)
        first = steady.where(steady.flagged(Flag.FIRST))
        if len(first) < min_first or len(first) < min_share * len(steady):
            continue
        own = known.named(numbers)
        measured = len(own) >= USUAL_RUNS
        usual = _usual(own if measured else known.where(known.args >= np.median(first.args)))
        name = view.names[int(first.names[int(np.argmax(first.durations))])]
        total = int(first.durations.sum())
        found.append(
            NewFetches(name=name, first=len(first), runs=len(steady), total_ns=total, usual_ns=usual, measured=measured)
        )
    return max(found, key=lambda one: one.beyond_ns, default=None)


def _usual(runs: Calls) -> float | None:
    """Median duration of known runs; None if there are too few."""
    return float(np.median(runs.durations)) if len(runs) >= USUAL_RUNS else None


def _makes_sessions(view: StepsView) -> bool:
    """Whether sessions are made in the steady steps: whatever a new one runs is new."""
    made = view.calls(Kind.BUILD).named(n.id for n in view.names.values() if n.role == "session")
    return len(made.begun_in(view.steps.windows)) > 1
