"""Steps: when each began and ended, and which of them are steady."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.steps import gaps
from stepscope.model.log.events import Name
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.candidate import Candidate
    from stepscope.derive.steps.choice import DroppedCandidates
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import I64, Bool


class Steps(Struct, frozen=True, kw_only=True):
    """The steps of one thread of one worker. Shapes: [step]; times ns since session start."""

    worker: Worker
    thread: int
    kind: Kind
    title: str
    """What a step is: "Keras fit", "tf.function train_step", "Session.run" ..."""
    call: Name | None
    starts: I64
    ends: I64
    call_ends: I64
    samples: I64
    """0 where unknown."""
    steady: Bool
    recurring: Bool
    """False for steps that hold an epoch's end or another rare, long interruption; only for step-time statistics."""
    unobserved: Bool
    """Whether a gap (``derive.steps.gaps``), a loss of records or steps without a record (``derive.steps.thinned``) lie
    in it: it then stands for many steps, and is not steady."""
    candidate: Candidate
    """The calls that make them."""
    skipped: int = 0
    """Steps that were only counted."""
    thinned_ns: int = 0
    """End of the last step that stands for others because there were too many records."""
    candidates: tuple[Candidate, ...] = ()
    """All calls of the job that may have been steps."""
    why: tuple[DroppedCandidates, ...] = ()
    """What each rule left out before this was the step (``choice.RULES``)."""

    def __len__(self) -> int:
        """All steps, warm-up included."""
        return len(self.starts)

    @property
    def count(self) -> int:
        """All steps, those included that were only counted."""
        return len(self.starts) + self.skipped

    @property
    def windows(self) -> Intervals:
        """The steady steps as disjoint sorted intervals."""
        return self.starts[self.steady], self.ends[self.steady]

    @property
    def whole_windows(self) -> Intervals:
        """The steady steps and, between them, those of which only a part was observed, as disjoint sorted intervals.

        For what is recorded all the time, such as traces: a long step seldom lies between two gaps.
        """
        index = np.flatnonzero(self.steady)
        taken = self.steady.copy()
        if len(index):
            taken[index[0] : index[-1]] |= self.unobserved[index[0] : index[-1]]
        return self.starts[taken], self.ends[taken]

    @property
    def span(self) -> tuple[int, int]:
        """From the first steady step to the end of the last, counted ones included: for what is sampled by time."""
        lo, hi = self.windows
        last = gaps.counted_until(self.worker.gaps, self.kind) if self.unobserved.any() or self.skipped else 0
        return int(lo[0]), max(int(hi[-1]), last, self.thinned_ns)

    @property
    def steady_ns(self) -> int:
        """Wall time of the steady steps."""
        return intervals.total(self.windows)

    @property
    def steady_count(self) -> int:
        """Number of steady steps."""
        return int(self.steady.sum())

    @property
    def durations(self) -> I64:
        """Duration of every step."""
        return self.ends - self.starts


def names_of(worker: Worker) -> dict[int, Name]:
    """Name lines by id."""
    return {n.id: n for n in worker.all(Name)}
