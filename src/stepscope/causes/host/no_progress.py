"""Whether a job that did not end normally had stopped making progress, and where its threads were then.

Progress is any record of work: a step, a batch, a save, a call. A job that computes after its last step (long
evaluation by other means, statistics, a last file) uses CPU time, and so does a child that it waits for. A job that
waits uses none, and its thread stays in one function.

Ctrl-C unwinds the calls that wait, and their records then end: that is no progress. A job that is killed leaves none.
"""

from __future__ import annotations

import signal
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.machine.rivals import is_child
from stepscope.derive.numeric import intervals
from stepscope.derive.python import framework_files, stack_samples
from stepscope.model.log.events import ThreadSeen
from stepscope.model.log.program import ThreadDied
from stepscope.tables.units import format_ns
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import Session, Worker
    from stepscope.tables.hang import Hang
    from stepscope.tables.records import I64

_NO_WORK = kinds_with(Trait.IDLE)
INTERRUPTED = frozenset({-signal.SIGINT, 128 + signal.SIGINT})
"""Exit codes of a job that Ctrl-C ended, itself or its shell."""
UNWINDING_NS = 1_000_000_000
"""Time in which an interrupted job leaves its calls, one after the other."""
ENDING_NS = 30_000_000_000
"""Time that it then takes to end: exit handlers, a last save."""


class ThreadAt(Struct, frozen=True, kw_only=True):
    """Where a thread was at the end."""

    name: str
    main: bool
    """Whether it is the thread that makes the steps, or the main thread."""
    spot: Spot | None
    """The innermost line of user code."""
    inside: str
    """The function that this line called, "" for a call in C that leaves no frame."""
    module: str
    """The file of that function, without folders."""
    framework: str
    """The framework that the user's line was inside of; "" for none."""
    waits_for_cluster: bool
    same_ratio: float
    """Share of its samples in the same function of user code."""
    samples: int
    last_ns: int


class Standstill(Struct, frozen=True, kw_only=True):
    """From the last record of work to the end."""

    since_ns: int
    until_ns: int
    longest_before_ns: int
    """The longest earlier time without work, since the first step; 0 without steps."""
    work_ns: int
    """From the first step, or the start, to the end."""
    cores: float
    """CPUs that the process used meanwhile; -1 if no sample shows it."""
    children_cores: float
    moved_bytes: int
    """Bytes that the process read or wrote meanwhile."""
    threads: tuple[ThreadAt, ...]
    """The step's thread first. A thread that was not seen any more has the place where it was seen last. Empty if none
    was ever sampled: a short job, or one that waits from its start on."""
    died: tuple[ThreadDied, ...] = ()
    """Threads that an uncaught exception ended, the first one first."""

    @property
    def length_ns(self) -> int:
        """Length of the time without work."""
        return self.until_ns - self.since_ns


def build(view: SessionView) -> Standstill | None:
    """None if no thread was ever sampled, and no hang was recognised while it lasted."""
    session, steps = view.session, view.steps
    worker = steps.worker if steps is not None else _without_steps(view)
    if worker is None or not (_sampled(worker) or session.manifest.hangs):
        return None
    records, counted = worker.records, worker.gaps
    ends = records.start_ns + records.dur_ns
    if session.manifest.exit_code in INTERRUPTED:
        ends = _without_unwinding(records.start_ns, ends)
    until = session.manifest.ended_ns or int(max(ends.max(initial=0), counted.end_ns.max(initial=0)))
    if worker.info.clean_exit and worker.info.ended_ns:  # what comes after exit handlers is the runtime's, no program's
        until = min(until, worker.info.ended_ns)
    work = ~np.isin(records.kind, _NO_WORK)
    begun = np.concatenate([records.start_ns[work], counted.start_ns])
    spans = intervals.merge(begun, np.maximum(np.concatenate([ends[work], counted.end_ns]), begun + 1))
    since = int(spans[1][-1]) if len(spans[0]) else 0
    first = int(steps.starts[0]) if steps is not None else until
    gaps = (spans[0][1:] - spans[1][:-1])[spans[1][:-1] >= first]
    return Standstill(
        since_ns=min(since, until),
        until_ns=until,
        longest_before_ns=int(gaps.max()) if len(gaps) else 0,
        work_ns=until - (first if steps is not None else 0),
        cores=_cores(session, worker.info.pid, since, until),
        children_cores=_children(session, since, until),
        moved_bytes=_moved(session, worker.info.pid, since, until),
        threads=_threads(worker, steps, since),
        died=tuple(worker.all(ThreadDied)),
    )


def lasting(view: SessionView) -> Hang | None:
    """The recognised hang that lasted until the job was ended; None without one, or if the job ended by itself."""
    manifest = view.session.manifest
    if manifest.exit_code == 0:
        return None
    return next((hang for hang in manifest.hangs if not hang.until_ns or _ends_with(view, hang)), None)


def ended(view: SessionView) -> list[str]:
    """In words: the hangs after which the job went on, or ended by itself."""
    found = []
    for hang in view.session.manifest.hangs:
        if hang.until_ns and hang.state == "hang" and hang is not lasting(view):
            place = view.place(hang.file, hang.line)
            lasted = format_ns(hang.until_ns - hang.since_ns)
            after = "the job ended" if _ends_with(view, hang) else "there was work again"
            found.append(
                f"no progress for {lasted}, {format_ns(hang.since_ns)} after the start: {hang.text}, in "
                f"{hang.function} ({place.file}:{place.line}); then {after}"
            )
    return found


def _ends_with(view: SessionView, hang: Hang) -> bool:
    """Whether nothing began after a hang, and the job soon ended; what an interrupted one does last is no step."""
    manifest = view.session.manifest
    ends = [w.info.ended_ns for w in view.workers if w.info.clean_exit and w.info.ended_ns]
    if max(ends, default=manifest.ended_ns) - hang.until_ns > ENDING_NS:
        return False
    if manifest.exit_code in INTERRUPTED and view.steps is not None:
        return not (view.steps.starts > hang.told_ns).any()
    return not any((_begun(worker) > hang.told_ns).any() for worker in view.workers)


def _begun(worker: Worker) -> I64:
    """When each record of work began, and each second in which calls were counted."""
    records, counted = worker.records, worker.gaps
    work = ~np.isin(records.kind, _NO_WORK)
    return np.concatenate([records.start_ns[work], counted.start_ns[counted.calls > 0]])


def _without_unwinding(starts: I64, ends: I64) -> I64:
    """Ends of records; those that were open when the job was interrupted end where they began."""
    return np.where(ends >= ends.max(initial=0) - UNWINDING_NS, starts, ends)


def _without_steps(view: SessionView) -> Worker | None:
    """The process to look at: one that was sampled, else that of a recognised hang."""
    hung = {hang.pid for hang in view.session.manifest.hangs}
    sampled = (worker for worker in view.workers if _sampled(worker))
    return next(sampled, next((worker for worker in view.workers if worker.info.pid in hung), None))


def _sampled(worker: Worker) -> bool:
    return bool((worker.records.kind == Kind.SAMPLE).any())


def _cores(session: Session, pid: int, since: int, until: int) -> float:
    table = session.process.take(session.process.pid == pid)
    table = table.take((table.at_ns >= since) & (table.at_ns <= until))
    if len(table) <= 1:
        return -1.0
    used = table.cpu_user_ns + table.cpu_system_ns
    return float(used[-1] - used[0]) / max(1, int(table.at_ns[-1] - table.at_ns[0]))


def _children(session: Session, since: int, until: int) -> float:
    rivals = session.rivals
    mine = is_child(rivals) & (rivals.at_ns > since) & (rivals.at_ns <= until)
    return float(rivals.cpu_ns[mine].sum()) / max(1, until - since)


def _moved(session: Session, pid: int, since: int, until: int) -> int:
    table = session.process.take(session.process.pid == pid)
    table = table.take((table.at_ns >= since) & (table.at_ns <= until))
    if len(table) == 0:
        return 0
    moved = 0
    for column in (table.read_bytes, table.write_bytes, table.tcp_rx_bytes, table.tcp_tx_bytes):
        known = column[column >= 0]
        moved += int(known[-1] - known[0]) if len(known) else 0
    return moved


def _threads(worker: Worker, steps: Steps | None, since: int) -> tuple[ThreadAt, ...]:
    seen = {t.id: t for t in worker.all(ThreadSeen)}
    first = steps.thread if steps is not None else next((t.id for t in seen.values() if t.main), 0)
    records = worker.records
    numbers = [int(t) for t in np.unique(records.thread[records.kind == Kind.SAMPLE])]
    found = []
    for number in sorted(numbers, key=lambda n: (n != first, n)):
        taken = list(stack_samples.thread_samples(worker, [number]))
        if taken:
            name = seen[number].name if number in seen else ""
            found.append(_thread_at(taken, since, name or f"thread {number}", main=number == first))
    return tuple(found)


def _thread_at(taken: Sequence[Sample], since: int, name: str, *, main: bool) -> ThreadAt:
    late = [s for s in taken if s.at > since]
    shown = late or taken[-1:]
    spots = Counter((s.culprit.file, s.culprit.function) for s in shown if s.culprit is not None)
    key, count = spots.most_common(1)[0] if spots else (("", ""), 0)
    same = [s for s in shown if s.culprit is not None and (s.culprit.file, s.culprit.function) == key]
    last = same[-1] if same else shown[-1]
    below = last.below_user()
    return ThreadAt(
        name=name,
        main=main,
        spot=last.culprit,
        waits_for_cluster=last.waits_for_cluster,
        inside=below[0].function if below and last.culprit is not None else "",
        module=below[0].file.rpartition("/")[2] if below and last.culprit is not None else "",
        framework=next((title for frame in below if (title := framework_files.framework_of(frame.file))), ""),
        same_ratio=count / len(shown),
        samples=len(late),
        last_ns=int(shown[-1].at),
    )
