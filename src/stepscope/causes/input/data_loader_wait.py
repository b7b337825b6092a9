"""How long steps wait for PyTorch's DataLoaders, and what of that a device computed through.

A program that never waits for its device runs ahead of it: then the time in ``next`` is lost only where the device is
idle. Without a device the calls compute on the host, and the wait is lost whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.cluster import members
from stepscope.causes.input import restarted_loader_workers
from stepscope.causes.system import contention, gpu
from stepscope.derive import steps_view
from stepscope.derive.input import keras_loaders, loader_processes, loader_samples
from stepscope.derive.numeric import intervals
from stepscope.derive.python import stack_samples
from stepscope.derive.steps import calls, step_makers
from stepscope.derive.view import SessionView
from stepscope.model.log.program import DataLoaderMade
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.python.costly import Function
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.steps.calls import Calls
    from stepscope.derive.steps_view import StepsView


class LoaderWait(Struct, frozen=True, kw_only=True):
    """The waits for one loader, in the steady steps."""

    made: DataLoaderMade
    ratio: float
    """Share of the steps in its ``next``."""
    lost_ratio: float
    """Share in which no device computed meanwhile."""
    next_ns: float
    """Mean time of a ``next`` that returned a batch."""
    batches: int
    idle: int = 0
    """Workers that have hardly any work, while others have: an iterable dataset gives each its own part of the data."""
    crowded: bool = False
    """Whether the workers take all CPUs that the process that trains leaves them."""
    threads: float = -1.0
    """Threads of a worker that could run at a moment, on average; -1: not known."""
    work: Function | None = None
    """What of the user's code most of a batch's time is in, if samples show it."""

    @property
    def makes_rows(self) -> bool:
        """Whether that may be the dataset's method that makes a row: not the collate function."""
        if self.work is None:
            return True
        method = self.work.entry.function.rpartition(".")[2]
        return (self.work.entry.file, method) == (self.made.fn_file, self.made.fn_name.rpartition(".")[2])

    @property
    def row_ns(self) -> float:
        """Time of one sample, where the process that trains makes them; 0: others do, or their number is not known."""
        return self.next_ns / self.made.batch if self.made.batch and not self.made.workers else 0.0


class ProcessWait(Struct, frozen=True, kw_only=True):
    """The wait in one of the processes that make the same steps."""

    view: StepsView
    wait: LoaderWait
    task: str = ""
    """Its name, if it is a task of a cluster."""


def everywhere(view: StepsView) -> tuple[ProcessWait, ...]:
    """The waits of all processes of the session that make these steps, the longest first: one of them may hold up the
    others.
    """
    worker = view.worker
    seen = [(worker.info.member.name if worker.info.member is not None else "", view)]
    tasks = [member for member in view.get(members.build) if not member.folder and member.pid != worker.info.pid]
    alone = {maker.steps.worker.info.key: maker.steps.worker for maker in step_makers.build(view.steps) if maker.main}
    alone.pop(worker.info.key, None)
    views = [(member.name, member.open()) for member in tasks]
    views += [("", SessionView(replace(view.session, workers=(one,)))) for one in alone.values()]
    seen += [(name, own) for name, other in views if (own := steps_view.of(other)) is not None]
    found = [ProcessWait(view=own, wait=wait, task=name) for name, own in seen if (wait := build(own)) is not None]
    return tuple(sorted(found, key=lambda one: -one.wait.lost_ratio))


def build(view: StepsView) -> LoaderWait | None:
    """The loader of the program's that the steps wait for most; None without one."""
    inner = keras_loaders.ids(view.worker)
    loaders = {made.id: made for made in view.worker.all(DataLoaderMade) if made.id not in inner}
    steps = view.steps
    taken = calls.of(steps, Kind.NEXT)
    taken = taken.where(np.isin(taken.args, np.array(list(loaders), np.int64)))
    spent = intervals.clipped_sum(taken.starts, taken.ends, restarted_loader_workers.outside(view))
    if not spent.any():
        return None
    by_loader = {number: float(spent[taken.args == number].sum()) for number in loaders}
    most = max(by_loader, key=lambda number: by_loader[number])
    inside = (taken.args == most) & (spent > 0)
    ratio = by_loader[most] / steps.steady_ns
    return LoaderWait(
        made=loaders[most],
        ratio=ratio,
        lost_ratio=min(ratio, _idle_ratio(view)),
        next_ns=float(spent[inside].mean()),
        batches=int(inside.sum()),
        idle=loader_processes.idle(view.session, view.worker, loaders[most]) if _streams(loaders[most]) else 0,
        crowded=bool(loaders[most].workers) and _crowded(view),
        threads=loader_processes.threads(view.session, *steps.span) if loaders[most].workers else -1.0,
        work=loader_samples.costliest(_samples(view, loaders[most], taken.where(inside))),
    )


def _samples(view: StepsView, made: DataLoaderMade, taken: Calls) -> Iterator[Sample]:
    """The stack samples of those that make its batches: its workers, or the thread of the steps in ``next``."""
    if not made.workers:
        at = np.array([sample.at for sample in view.samples], np.int64)
        during = intervals.overlapping(taken.spans, at, at + 1)
        yield from (sample for sample, inside in zip(view.samples, during.tolist(), strict=True) if inside)
        return
    mine = {child.pid for child in loader_processes.started(view.worker, [made])}
    for worker in view.session.workers:
        if worker.info.pid in mine:
            yield from stack_samples.thread_samples(worker, np.unique(worker.records.thread).tolist())


def _streams(made: DataLoaderMade) -> bool:
    """Whether its dataset may be one that each worker reads a part of; of another one all workers get as many rows."""
    return made.workers > 1 and not made.fn_name.endswith(".__getitem__")


MIN_CROWD, MAX_LEFT = 0.25, 0.1
"""Share of the CPUs below which the workers are not what fills them, and that is idle in full ones: what no job reaches
on a shared host."""


def _crowded(view: StepsView) -> bool:
    """Whether the workers of the job's loaders take all CPUs that the others leave."""
    used = view.get(contention.build)
    if used is None or used.fed < MIN_CROWD * used.available:
        return False
    return used.available - used.got - used.withheld - used.fed < MAX_LEFT * used.available


def _idle_ratio(view: StepsView) -> float:
    """Share of the time in which the busiest device of the job is idle; 1 without a device."""
    found = view.get(gpu.build)
    own = [one for one in found if one.job_reserved_bytes > 0] or found
    return 1.0 - max((one.busy_ratio for one in own), default=0.0)
