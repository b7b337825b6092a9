"""Calls of every N-th turn of a loop: however well they cover its time, they are not its steps.

``if i % 50 == 0: session.run([train, summaries])`` with a plain run in the other branch, or a look at the loss before
every 50th step, is often the loop's first call, and from one such call to the next lies as much of the time as from one
step to the next. Then a step is a turn of the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.steps.candidate import Candidate

TURNS = 5
"""Calls of the step for one of the branch: fewer are parts of one step (four small batches, then an update)."""
LONE_RATIO = 0.9
"""Calls of the branch without another one beside them: an evaluation makes many in a row, of which none is alone."""
KINDS = frozenset(kinds_with(Trait.GRAPH))


def last(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates in their order, those of a branch behind all others of their rank."""
    return sorted(candidates, key=lambda one: (one.rank, any(_of_branch(one, other) for other in candidates)))


def _of_branch(one: Candidate, step: Candidate) -> bool:
    """Whether ``one`` is called alone between many calls of ``step``, on which more of the time goes."""
    if one.kind != step.kind or one.kind not in KINDS:
        return False
    if one.worker is not step.worker or one.thread != step.thread or len(step.index) < TURNS * len(one.index):
        return False
    records = one.worker.records
    gaps = np.searchsorted(records.start_ns[step.index], records.start_ns[one.index])
    alone = len(np.unique(gaps)) >= LONE_RATIO * len(one.index)
    return alone and int(records.dur_ns[step.index].sum()) > int(records.dur_ns[one.index].sum())
