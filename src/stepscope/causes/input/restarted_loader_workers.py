"""Workers of PyTorch's DataLoaders that are started again for each pass over the data.

Without ``persistent_workers`` the ``next`` that finds the end of a pass waits for the workers' ends, and the next pass
starts new ones in the loader's ``__iter__``: by ``fork`` in milliseconds, by ``spawn`` as whole interpreters, which
import the program's modules and read the pickled dataset. Where the dataset is larger than a pipe's buffer the process
that trains waits in ``__iter__`` for one worker after the other, else in its first ``next``.

A worker makes no batch before it has imported its framework. What the first ``next`` waits beyond that may be the
making of the first batch, for which workers that stay are waited for as well.

Serves restarted_loader_workers, and the causes that count waits for batches.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.general import phase_lines
from stepscope.derive.input import keras_loaders, loader_processes
from stepscope.derive.numeric import intervals
from stepscope.derive.python import stack_samples
from stepscope.model.log.events import Framework, ProcessStarted
from stepscope.model.log.program import DataLoaderMade
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.steps.calls import Calls
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import ChildStarted
    from stepscope.model.session.session import Worker

Span = tuple[int, int]

_LIBRARY, _STARTS = "/utils/data/dataloader.py", "__iter__"
"""PyTorch's file and function that start the workers of a pass. Source: torch 2.13.0."""
_ANEW = "exec"
"""Origin of a process that is a new interpreter."""


class Restart(Struct, frozen=True, kw_only=True):
    """The end of one pass over a loader, and the start of the next. Times in nanoseconds since session start."""

    made: DataLoaderMade
    at: int
    """The first ``next`` of the new pass."""
    least: tuple[Span, ...]
    """When the process that trains surely waited for workers to end and to start."""
    likely: tuple[Span, ...]
    most: tuple[Span, ...]
    """With what lies between two stack samples, and with all that the first ``next`` waits longer than others."""
    pass_ns: int
    """Time of the new pass after that."""
    spawned: bool
    """Whether the new workers are new interpreters, not forks."""


class Restarts(Struct, frozen=True, kw_only=True):
    """All of them that lie in the steady steps."""

    every: tuple[Restart, ...]
    ratio: float
    """Share of the steady time that is spent in them."""
    low: float
    high: float
    each_ns: float
    pass_ns: float
    """Mean time of a pass without the start of its workers."""
    spans: Intervals
    """When that time is spent."""

    @property
    def loaders(self) -> tuple[DataLoaderMade, ...]:
        """The loaders whose workers are restarted."""
        return tuple({one.made.id: one.made for one in self.every}.values())


def build(view: StepsView) -> Restarts | None:
    """The restarts; None where no workers were started for a second pass."""
    low, high = view.steps.span
    every = tuple(one for one in _find(view) if low <= one.at < high and _inside(view, _union([one.likely])))
    if not every:
        return None
    likely, whole = _union(one.likely for one in every), view.steps.steady_ns
    spent = _inside(view, likely)
    return Restarts(
        every=every,
        ratio=spent / whole,
        low=_inside(view, _union(one.least for one in every)) / whole,
        high=_inside(view, _union(one.most for one in every)) / whole,
        each_ns=spent / len(every),
        pass_ns=sum(one.pass_ns for one in every) / len(every),
        spans=likely,
    )


def outside(view: StepsView) -> Intervals:
    """The steady steps without the restarts: what waits for batches last elsewhere is no wait for workers to start."""
    found = view.get(build)
    return intervals.without(view.steps.windows, found.spans) if found is not None else view.steps.windows


def between_steps(view: StepsView, found: Restarts) -> float:
    """The part of what lies between the steps that restarts take; 0 where nothing lies there."""
    ledger = view.get(phase_lines.job)
    parts = [part for part in ledger.parts if part.phase == "between-steps"] if ledger is not None else []
    whole = sum(part.ns for part in parts)
    inside = sum(intervals.total(intervals.clip(found.spans, part.spans)) for part in parts)
    return inside / whole if whole else 0.0


def _inside(view: StepsView, spans: Intervals) -> int:
    return intervals.total(intervals.clip(spans, view.steps.windows))


def _union(every: Iterable[tuple[Span, ...]]) -> Intervals:
    ends = np.array([span for spans in every for span in spans], np.int64).reshape(-1, 2)
    return intervals.merge(ends[:, 0], ends[:, 1])


def _find(view: StepsView) -> list[Restart]:
    """The restarts of all loaders of the program's that have workers."""
    inner = keras_loaders.ids(view.worker)
    loaders = [made for made in view.worker.all(DataLoaderMade) if made.workers and made.id not in inner]
    taken = view.calls(Kind.NEXT)
    born = _births(view, taken, loaders)
    if not born:
        return []
    samples = tuple(stack_samples.thread_samples(view.worker, [view.steps.thread], gaps=True))
    return [one for made in loaders for one in _of_loader(view, made, taken, born, samples)]


def _births(view: StepsView, taken: Calls, loaders: Sequence[DataLoaderMade]) -> dict[int, list[ChildStarted]]:
    """Workers by the start of the ``next`` that follows their start: several loaders may be taken at one line."""
    found: dict[int, list[ChildStarted]] = defaultdict(list)
    for line in {(made.file, made.line) for made in loaders}:
        mine = [made for made in loaders if (made.file, made.line) == line]
        starts = taken.starts[np.isin(taken.args, [made.id for made in mine])]
        for child in loader_processes.started(view.worker, mine):
            at = int(np.searchsorted(starts, child.at))
            if at < len(starts):
                found[int(starts[at])].append(child)
    return found


def _of_loader(
    view: StepsView,
    made: DataLoaderMade,
    taken: Calls,
    born: dict[int, list[ChildStarted]],
    samples: Sequence[Sample],
) -> list[Restart]:
    mine = taken.where(taken.args == made.id)
    ended = mine.flagged(Flag.END)
    firsts = [i for i, at in enumerate(mine.starts.tolist()) if at in born]
    others = ~ended
    others[firsts] = False
    usual = int(np.median(mine.durations[others])) if others.any() else 0
    found = []
    for i, until in zip(firsts, [*firsts[1:], len(mine)], strict=True):
        if i == 0:
            continue
        begin, end = int(mine.starts[i]), int(mine.ends[i])
        before = int(taken.ends[np.searchsorted(taken.starts, begin) - 1])
        stop = ((int(mine.starts[i - 1]) + usual, int(mine.ends[i - 1])),) if ended[i - 1] else ()
        least, likely, most = _starting(samples, _known(view, born[begin], before), before, begin)
        ready = min(_ready(view, born[begin][0], end), end - usual)
        waits, longest = ((begin, ready),), ((begin, end - usual),)
        last = until - 1
        found.append(
            Restart(
                made=made,
                at=begin,
                least=_long((*stop, *least, *waits)),
                likely=_long((*stop, *likely, *waits)),
                most=_long((*stop, *most, *longest)),
                pass_ns=int(mine.starts[last] if ended[last] else mine.ends[last]) - max(begin, ready),
                spawned=any(_is_new(view, child) for child in born[begin]),
            )
        )
    return found


def _long(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    return tuple(span for span in spans if span[0] < span[1])


def _starting(
    samples: Sequence[Sample], known: Sequence[int], before: int, begin: int
) -> tuple[tuple[Span, ...], tuple[Span, ...], tuple[Span, ...]]:
    """(least, likely, most) time in the loader's ``__iter__``: samples show it, and what is known of its workers.

    Args:
        samples: of the thread, in order of time.
        known: when workers began to run, and when their starts had ended.
        before: the end of the last ``next`` of any loader.
        begin: the start of the pass's first ``next``.
    """
    here = [sample for sample in samples if before < sample.at <= begin]
    inside = [sample.at for sample in here if _starts(sample)]
    first, last = min([*inside, *known]), max([*inside, *known])
    least = ((first, last),)
    if not inside:
        return least, least, least
    earlier = max([before, *(sample.at for sample in here if sample.at < first)])
    later = min([begin, *(sample.at for sample in here if sample.at > last)])
    return least, (((earlier + first) // 2, (last + later) // 2),), ((earlier, later),)


def _known(view: StepsView, children: Sequence[ChildStarted], before: int) -> list[int]:
    """When new workers began to run, where they are measured, and when the calls that started them ended."""
    began = [(child.at, worker.info.started_ns) for child in children for worker in _processes(view, child)]
    return [*(child.at for child in children), *(first for at, first in began if before < first <= at)]


def _starts(sample: Sample) -> bool:
    """Whether the thread starts workers."""
    return any(f.file.endswith(_LIBRARY) and f.function.rpartition(".")[2] == _STARTS for f in sample.frames)


def _ready(view: StepsView, child: ChildStarted, end: int) -> int:
    """Until when a worker surely made no batch: it began to run, or had imported a framework; 0 if not measured."""
    lives = [worker for worker in _processes(view, child) if worker.info.started_ns <= end]
    imported = [event.at for worker in lives for event in worker.all(Framework) if event.at <= end]
    return max([0, *imported, *(worker.info.started_ns for worker in lives)])


def _processes(view: StepsView, child: ChildStarted) -> list[Worker]:
    return [worker for worker in view.workers if worker.info.pid == child.pid]


def _is_new(view: StepsView, child: ChildStarted) -> bool:
    """Whether a worker is a new interpreter, not a fork: by its class, or by what it says of itself."""
    began = [event for worker in _processes(view, child) for event in worker.all(ProcessStarted)]
    return child.command.startswith("Spawn") or any(event.origin == _ANEW for event in began)
