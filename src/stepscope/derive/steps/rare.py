"""How often something rare and long happens, such as an evaluation in a callback, and how long it usually takes.

In a job with gaps (``derive.steps.gaps``) few steps are timed, and which of them hold such a call is chance. But
what happens rarely and lasts long is recorded in gaps, too (``Trait.STAYS``), and steps are counted. So all calls and
all steps between the first and the last of them count; nothing is extrapolated from timed steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.records import F64, I64, Bool

_STAYS = frozenset(kinds_with(Trait.STAYS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rare:
    """Calls of the steps' thread while its steps were counted."""

    calls: int
    every: float
    """Steps from one call to the next; of a single call: all steps."""
    usual_ns: float
    """Median time of a call."""


def of(steps: Steps, chosen: Bool) -> Rare | None:
    """Of the records of the worker that ``chosen`` marks. None: there is none, or gaps do not hold records of its kind.

    Calls after the last step that was counted say nothing: a process that was killed lost the count of its last gap.
    """
    records = steps.worker.records
    until = max(int(steps.ends[-1]), steps.span[1] if steps.steady.any() else 0)
    mine = chosen & (records.start_ns >= steps.starts[0]) & (records.start_ns <= until)
    kinds = {Kind(kind) for kind in np.unique(records.kind[mine]).tolist()}
    if not mine.any() or (len(steps.worker.gaps) and not kinds <= _STAYS):
        return None
    calls = int(mine.sum())
    first, last = _passed(steps, records.start_ns[mine][[0, -1]]).tolist()
    every = (last - first) / (calls - 1) if calls > 1 else float(steps.count)
    return Rare(calls=calls, every=every, usual_ns=float(np.median(records.dur_ns[mine])))


def _passed(steps: Steps, times: I64) -> F64:
    """Number of steps before each time; those that were only counted as if evenly spread over where they were."""
    hidden = steps.durations * steps.unobserved
    each = 1.0 + steps.skipped * hidden / max(1, int(hidden.sum()))
    found: F64 = np.interp(times, np.append(steps.starts, steps.ends[-1]), np.concatenate(([0.0], np.cumsum(each))))
    return found
