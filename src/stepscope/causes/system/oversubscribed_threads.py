"""How many threads of the job share its CPUs, and their cost in context switches.

The number of threads runnable at once distinguishes oversubscription from a large pool that sleeps; the number of
threads that share the work evenly distinguishes it from one busy thread among many small ones. Neighbours make each
thread wait longer but make no more threads runnable, so both hold on a busy machine.

Serves oversubscribed_threads and spinning_session_threads; detectors of the loop's Python leave out what that waits.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.job import busy_span
from stepscope.causes.system import contention
from stepscope.derive.python import stack_samples
from stepscope.model.log.events import InferenceSession, ThreadSeen
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.python.stack_samples import Spot
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import I64

SETTINGS = re.compile(
    r"set_int(?:ra|er)_op_parallelism_threads|int(?:ra|er)_op_parallelism_threads\s*=|private_threadpool_size"
    r"|int(?:ra|er)_op_num_threads\s*=|max_intra_op_parallelism|ThreadPool(?:Executor)?\(|Thread\(|set_num_threads|OMP_NUM_THREADS|MKL_NUM_THREADS"
)
"""Python code that sets a number of threads."""
MIN_SPINNING_CORES = 0.25
"""CPUs taken between the runs from which threads spin: those that sleep soon after a run take less."""


class Oversubscription(Struct, frozen=True, kw_only=True):
    """Threads of the process that makes the steps, over the steady steps."""

    available: float
    """CPUs that it may use: affinity and quota."""
    runnable: float
    """Threads that ran or wanted to, on average."""
    sharing: float
    """Threads that share the CPU time evenly: its squared sum over the sum of squares."""
    switches: float
    """Context switches per second of CPU time."""
    python_ratio: float
    """Share of the threads' CPU time in threads of the job's own Python, without the step's thread."""
    spot: Spot | None
    """Where these threads run."""
    settings: tuple[tuple[str, int], ...]
    """(file, line) of user code that sets numbers of threads."""


class Spinning(Struct, frozen=True, kw_only=True):
    """Threads of ONNX Runtime that wait actively between its runs, while the steps' thread wants a CPU."""

    sessions: tuple[InferenceSession, ...]
    """Whose threads do so."""
    cores: float
    """CPUs that they take while no run is under way, at least."""
    wait: float
    """Share of the wall time in which the steps' thread waits for a CPU because of them."""
    outside: float
    """Share of the wall time that is in no run."""
    available: float
    """CPUs that the job may use."""

    @property
    def spins(self) -> bool:
        """Whether they take CPUs between the runs."""
        return self.cores >= MIN_SPINNING_CORES

    @property
    def most_threads(self) -> int:
        """Threads of the largest session."""
        return max(one.intra_op_threads for one in self.sessions)

    @property
    def is_crowd(self) -> bool:
        """Whether a session has more threads than the job has CPUs, so that they take turns within a run."""
        return self.most_threads > self.available

    @property
    def least(self) -> float:
        """What of the wait is outside of runs, if all of a run were such a wait."""
        return max(0.0, self.wait - (1.0 - self.outside))


def spinning(view: StepsView) -> Spinning | None:
    """None if no session's threads may, or if threads were not sampled.

    Threads run while no run is under way: beyond what a run could use at most, all CPUs. Those of the job's own Python
    work, so they are none of them. What these and other processes take of the CPUs is not their doing.
    """
    steps, used, anatomy = view.steps, view.get(contention.build), view.anatomy
    sessions = tuple(one for one in steps.worker.all(InferenceSession) if one.spins and one.intra_op_threads != 1)
    if not sessions or used is None or used.thread is None or anatomy is None:
        return None
    lo, hi = view.get(busy_span.build)
    table = view.session.threads
    table = table.take((table.pid == steps.worker.info.pid) & (table.at_ns >= lo) & (table.at_ns <= hi))
    if len(table) == 0:
        return None
    cpu = _used(table.native, table.run_ns)
    span = max(1, int(table.at_ns.max() - table.at_ns.min()))
    python, _ = _python_threads(view, cpu)
    own = python / span
    theirs = float(sum(cpu.values())) / span - own - used.thread.run
    running = anatomy.ratio("call")
    return Spinning(
        sessions=sessions,
        cores=theirs - running * used.available,
        wait=used.thread.wait * theirs / (theirs + own + used.others) if theirs > 0 else 0.0,
        outside=1.0 - running,
        available=used.available,
    )


def waits_for_spinning(view: StepsView) -> float:
    """Share of the wall time, outside of runs too, in which the steps' thread waits for CPUs that these have. Of
    threads that sleep between the runs the wait lies in these.
    """
    found = view.get(spinning)
    return found.wait if found is not None and found.spins else 0.0


def build(view: StepsView) -> Oversubscription | None:
    """None if the samples of threads do not cover the steady steps."""
    steps, others = view.steps, view.get(contention.build)
    if others is None:
        return None
    lo, hi = view.get(busy_span.build)
    pid = steps.worker.info.pid
    process = view.session.process.take(view.session.process.pid == pid)
    process = process.take((process.at_ns >= lo) & (process.at_ns <= hi))
    table = view.session.threads
    table = table.take((table.pid == pid) & (table.at_ns >= lo) & (table.at_ns <= hi))
    if len(process) <= 1 or len(table) == 0:
        return None
    span = int(process.at_ns[-1] - process.at_ns[0])
    used = _used(table.native, table.run_ns)
    total = float(sum(used.values()))
    squares = float(sum(u * u for u in used.values()))
    if total <= 0 or span <= 0:
        return None
    cpu = process.cpu_user_ns + process.cpu_system_ns
    switches = process.voluntary_switches + process.involuntary_switches
    python, spot = _python_threads(view, used)
    quota = float(view.session.host.quota_milli_cpus[-1]) / 1000
    return Oversubscription(
        available=min(others.available, quota) if quota > 0 else others.available,
        runnable=others.wanted,
        sharing=total * total / squares,
        switches=max(0, int(switches[-1] - switches[0])) / max(1e-9, int(cpu[-1] - cpu[0]) / 1e9),
        python_ratio=python / total,
        spot=spot,
        settings=_settings(view),
    )


def _used(native: I64, run_ns: I64) -> dict[int, int]:
    """CPU time of each thread within the window."""
    found = {}
    for number in np.unique(native):
        mine = run_ns[native == number]
        found[int(number)] = int(mine[-1] - mine[0])
    return found


def _python_threads(view: StepsView, used: dict[int, int]) -> tuple[float, Spot | None]:
    """CPU time of threads, other than the step's, that run the user's Python, and the line most sampled there."""
    steps = view.steps
    records = steps.worker.records
    numbers = [int(t) for t in np.unique(records.thread[records.kind == Kind.SAMPLE]) if t != steps.thread]
    spots: Counter[Spot] = Counter(
        s.culprit for s in stack_samples.thread_samples(steps.worker, numbers) if s.culprit is not None and s.weight_ns
    )
    natives = {t.id: t.native for t in steps.worker.all(ThreadSeen)}
    mine = sum(used.get(natives.get(n, 0), 0) for n in numbers)
    return float(mine), spots.most_common(1)[0][0] if spots else None


def _settings(view: StepsView) -> tuple[tuple[str, int], ...]:
    found = []
    for file, text in sorted(view.session.sources.items()):
        for number, line in enumerate(text.split("\n"), 1):
            if SETTINGS.search(line.partition("#")[0]):
                found.append((file, number))
    return tuple(found[:6])
