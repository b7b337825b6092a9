"""Candidates: repeating calls that may make a step, each of one kind, one meaning and one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.model.log.events import Name
    from stepscope.model.report.step_summary import MakerKind
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import I64
    from stepscope.wire.kinds import Kind

TRAIN_ROLES = frozenset({"train", "fit", "train_on_batch"})
EVALUATIONS = frozenset({"test", "evaluate", "test_on_batch"})
ENQUEUE = "enqueue"
"""Role of a Session.run that only fills queues (``agent.probes.tensorflow.session``)."""

Place = tuple[str, str, int, str]
"""(text, file, line, role): identifies calls of one kind as the same, whatever thread makes them."""


class Candidate(Struct, frozen=True, kw_only=True):
    """A repeating call that may make a step."""

    rank: int
    worker: Worker
    thread: int
    kind: Kind
    name: Name
    index: I64
    """Positions in the worker's records."""
    cover_ns: float
    purpose: MakerKind
    place: Place

    @property
    def starts(self) -> I64:
        """Start of each call. int64[call]."""
        return self.worker.records.start_ns[self.index]

    @property
    def ends(self) -> I64:
        """End of each call. int64[call]."""
        starts: I64 = self.starts + self.worker.records.dur_ns[self.index]
        return starts
