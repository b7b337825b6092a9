"""The threads that run user Python for the input: whether they are ever idle, and how long the step would take without
them.

Python's interpreter lock and a scarce CPU make input and step slow each other down, so the wait for the input is the
least that better input saves. The rest of the job's computation gives the bounds: without the input's Python a step
takes no longer than that on one core, and no less than that spread over all cores.

Serves input_cause and detectors of Python in the pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.job import busy_span
from stepscope.causes.system import contention, gpu
from stepscope.derive.input import pipeline_python
from stepscope.derive.numeric import intervals
from stepscope.model.log.events import ThreadSeen
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView

MAX_LOST_RATIO = 0.15
"""If others take more of its CPUs, CPU time says little about the job."""
BETWEEN_FACTOR = 3
"""A pause between two calls of up to this many medians is the pipeline's own work around a call: a full buffer makes it
pause for a step."""
MAX_BETWEEN_NS = 1_000_000


class Producer(Struct, frozen=True, kw_only=True):
    """Shares of the steady wall time."""

    python_ratio: float
    """Share in which at least one function ran."""
    busy_ratio: float
    """The same, including pauses between two calls that are too short to be a wait for a full buffer."""
    cpu_ratio: float
    """CPU time of the threads that ran them, in cores."""
    own_ratio: float
    """CPU time of the rest of the job's process, in cores."""
    cores: float
    """CPUs that the job may use."""

    def step_ratio(self) -> tuple[float, float]:
        """Length of a step without the input's Python relative to now: least, most."""
        return min(1.0, self.own_ratio / max(1.0, self.cores)), min(1.0, self.own_ratio)


def build(view: StepsView, functions: Sequence[PythonFunction], *, crowded: bool = False) -> Producer | None:
    """None if CPU time was not sampled, others took too much of it, or a device also computes.

    ``crowded``: whatever others took; the CPU time is then no less true, but the shares say only what may be.
    """
    steps, others = view.steps, view.get(contention.build)
    if others is None or not functions or view.get(gpu.build):
        return None
    if others.lost_ratio >= MAX_LOST_RATIO and not crowded:
        return None
    cpu = cpu_ratio(view, threads(steps, functions), others.got)
    python = pipeline_python.python_ratio(steps, functions)
    return Producer(
        python_ratio=python,
        busy_ratio=max(python, _busy_ratio(steps, functions)),
        cpu_ratio=cpu,
        own_ratio=max(0.0, others.got - cpu),
        cores=others.available,
    )


def threads(steps: Steps, functions: Sequence[PythonFunction]) -> set[int]:
    """Native ids of the threads, other than the step's, that ran the functions."""
    records = steps.worker.records
    mine = (records.kind == Kind.PYFUNC) & np.isin(records.name, [f.name.id for f in functions])
    mine &= records.thread != steps.thread
    natives = {t.id: t.native for t in steps.worker.all(ThreadSeen)}
    return {natives.get(int(t), 0) for t in np.unique(records.thread[mine])} - {0}


def _busy_ratio(steps: Steps, functions: Sequence[PythonFunction]) -> float:
    """0 if calls are thinned: their pauses are then unknown."""
    records = steps.worker.records
    mine = (records.kind == Kind.PYFUNC) & np.isin(records.name, [f.name.id for f in functions])
    if (records.flags[mine] & Flag.THINNED).any() or steps.steady_ns == 0:
        return 0.0
    lo, hi = intervals.clip(intervals.merge(*pipeline_python.calls(steps, functions)), steps.windows)
    pauses = lo[1:] - hi[:-1]
    if not len(pauses):
        return 0.0
    inside = np.searchsorted(steps.windows[1], hi[:-1], side="left") == np.searchsorted(
        steps.windows[1], lo[1:], side="left"
    )
    longest = min(BETWEEN_FACTOR * float(np.median(pauses)), MAX_BETWEEN_NS)
    between = int(pauses[inside & (pauses <= longest)].sum())
    return min(1.0, (intervals.total((lo, hi)) + between) / steps.steady_ns)


def cpu_ratio(view: StepsView, natives: set[int], process_cores: float) -> float:
    """CPU time of some threads over wall time, within the steady steps.

    Keras and tf.data make new threads each epoch, and records may name those of some epochs only: if a requested thread
    ends before the steps do, or is too short-lived to be sampled twice, threads that begin after it count too, and the
    process's CPU time beyond all threads that were sampled twice.
    """
    steps = view.steps
    if not natives:
        return 0.0
    lo, hi = view.get(busy_span.build)
    every = view.session.threads
    every = every.take(every.pid == steps.worker.info.pid)
    table = every.take((every.at_ns >= lo) & (every.at_ns <= hi))
    span = int(table.at_ns[-1] - table.at_ns[0]) if len(table) else 0
    if span <= 0:
        return 0.0
    used: dict[int, float] = {}
    for native in np.unique(table.native):
        run = table.run_ns[table.native == native]
        if len(run) > 1:
            used[int(native)] = float(run[-1] - run[0]) / span
    met = {native: every.at_ns[every.native == native] for native in used.keys() | natives}
    ended = {n for n in natives if n not in used or int(met[n][-1]) < int(table.at_ns[-1])}
    since = min((int(met[n][-1]) for n in ended if len(met[n])), default=int(every.at_ns[-1]))
    heirs = {native for native in used if int(met[native][0]) > since}
    asked = sum(ratio for native, ratio in used.items() if native in natives | heirs)
    short_lived = max(0.0, process_cores - sum(used.values())) if ended else 0.0
    return asked + short_lived
