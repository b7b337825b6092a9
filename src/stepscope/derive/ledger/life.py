"""The life of a process as its log and the launcher know it: start, imports of frameworks, end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.model.log.events import Framework, ProcessEnded, ThreadSeen
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.model.session.session import Manifest, Worker


class Life(Struct, frozen=True, kw_only=True):
    """The marks of one process. Nanoseconds since session start."""

    begin_ns: int
    """Start of the ledger: that of the job."""
    armed_ns: int
    """When it began to import its first framework."""
    imports: Intervals
    """Imports of frameworks, those of the modules that they need included."""
    exit_ns: int
    """When the interpreter began to end; ``end_ns`` if it did not, or not in an orderly way."""
    end_ns: int
    """End of the ledger: that of the job; of a job that was killed, the end of its records."""

    @property
    def window(self) -> Intervals:
        """The whole life."""
        return between(self.begin_ns, self.end_ns)


def of(worker: Worker, manifest: Manifest) -> Life:
    """The life of a process of the job."""
    ended = [event.at for event in worker.all(ProcessEnded)]
    last = last_record_ns(worker)
    end = max(manifest.ended_ns, last, *ended) if ended else last
    logged = worker.info.started_ns
    imports = intervals.clip(_imports(worker), between(0, end))
    return Life(
        begin_ns=0,
        armed_ns=min([end, *imports[0][:1].tolist(), *([logged] if logged > 0 else [])]),
        imports=imports,
        exit_ns=min(ended[-1], end) if ended else end,
        end_ns=end,
    )


def _imports(worker: Worker) -> Intervals:
    """Imports of frameworks. Older sessions do not say how long each took: from the first to the end of the last.

    When NumPy was imported is not seen: its line is written when the process begins to be sampled.
    """
    found = [event for event in worker.all(Framework) if event.name != "numpy"]
    if not found:
        return intervals.empty()
    ends = np.array([event.at for event in found], np.int64)
    lasted = np.array([event.dur for event in found], np.int64)
    if not lasted.any():
        return between(worker.info.started_ns, int(ends.max()))
    return intervals.merge(ends - lasted, ends)


def last_record_ns(worker: Worker) -> int:
    """End of the last record: the latest moment at which the process is known to have lived."""
    records = worker.with_gaps()
    ends = records.start_ns + np.where(np.isin(records.kind, _INSTANTS), 0, records.dur_ns)
    latest = max(int(ends.max(initial=0)), int(worker.gaps.end_ns.max(initial=0)))
    return max(latest, worker.info.started_ns, *(event.at for event in worker.all(Framework)), 0)


def main_thread(worker: Worker) -> int | None:
    """The main thread's id, if it wrote a record or was sampled."""
    return next((seen.id for seen in worker.all(ThreadSeen) if seen.main), None)


def between(start: int, end: int) -> Intervals:
    """One interval."""
    return np.array([start], np.int64), np.array([max(start, end)], np.int64)


_INSTANTS = (*(kind for kind in kinds_with(Trait.OURS) if kind != Kind.REST), Kind.METRIC)
"""Kinds whose records' durations are no time from their start on."""
