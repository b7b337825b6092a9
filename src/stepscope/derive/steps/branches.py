"""Calls in every N-th turn of a loop: however well they cover its time, they are not its steps.

``if i % 50 == 0: session.run([train, summaries])`` with a plain run in the other branch, or a look at the loss before
every 50th step, is often the loop's first call, and such calls cover as much of the time as the steps do. Then a step
is a turn of the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.steps.candidate import Candidate

TURNS = 5
"""Minimum calls of the step per branch call: fewer are parts of one step (four small batches, then an update)."""
LONE_RATIO = 0.9
"""Minimum share of the branch's calls that stand alone: an evaluation makes many in a row, none of them alone."""
KINDS = frozenset(kinds_with(Trait.GRAPH))


def last(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates in their order, but those of a branch after all others of their rank."""
    return sorted(candidates, key=lambda one: (one.rank, any(_of_branch(one, other) for other in candidates)))


def _of_branch(one: Candidate, step: Candidate) -> bool:
    """Whether ``one`` is called alone between many calls of ``step``, and ``step`` takes more of the time."""
    if one.kind != step.kind or one.kind not in KINDS:
        return False
    if one.worker is not step.worker or one.thread != step.thread or len(step.index) < TURNS * len(one.index):
        return False
    records = one.worker.records
    gaps = np.searchsorted(records.start_ns[step.index], records.start_ns[one.index])
    alone = len(np.unique(gaps)) >= LONE_RATIO * len(one.index)
    return alone and int(records.dur_ns[step.index].sum()) > int(records.dur_ns[one.index].sum())
