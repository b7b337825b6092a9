"""Places in the user's code that the time of a part belongs to."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.ledger import outside
from stepscope.derive.numeric import intervals
from stepscope.derive.python import stack_samples
from stepscope.derive.steps.steps import names_of
from stepscope.model.log.events import Framework, Traced
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.ledger.part import Ledger, LedgerPart
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.model.log.events import Name
    from stepscope.model.session.session import Worker

MAX_SPOTS = 2
MIN_RATIO = 0.1
"""Minimum share of a part's time for a place to be named: a tenth of what is at least 5 % is below noise."""
NO_CODE = frozenset({"start", "not-seen"})
"""Phases that belong to no line of the user's code, or to none that was seen."""
NOT_SAMPLED = frozenset({"imports", "end"})
"""Phases in which no stack is taken for long: imports of frameworks, and the interpreter's end."""


class SpotTime(Struct, frozen=True):
    """A place, and its time."""

    file: str
    line: int
    end_line: int
    function: str
    ns: int


class Spots:
    """The places of the parts of one ledger; samples are read once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._samples = tuple(_weighted(ledger.worker, ledger.threads))
        self._at = np.array([sample.at for sample, _ in self._samples], np.int64)

    def of(self, part: LedgerPart) -> tuple[SpotTime, ...]:
        """The costliest places of a part: those that its records name, else the user's lines that were sampled."""
        if part.phase in NO_CODE or not len(part.spans[0]):
            return ()
        found = _of_records(self._ledger, part) or self._of_samples(part)
        whole = part.ns if part.phase in NOT_SAMPLED else 0
        least = MIN_RATIO * max(whole, sum(spot.ns for spot in found))
        return tuple(sorted((spot for spot in found if spot.ns >= least), key=lambda spot: -spot.ns)[:MAX_SPOTS])

    def _of_samples(self, part: LedgerPart) -> list[SpotTime]:
        """Functions as a whole with the line that has most, but each line of imports."""
        inside = np.flatnonzero(intervals.overlapping(part.spans, self._at - 1, self._at))
        lines: dict[tuple[str, str, int], Counter[int]] = {}
        for sample, weight in (self._samples[i] for i in inside):
            spot = sample.culprit
            if spot is not None and spot.line > 0:
                apart = spot.line if part.phase == "imports" else 0
                lines.setdefault((spot.file, spot.function, apart), Counter())[spot.line] += weight
        return [
            SpotTime(file, seen.most_common(1)[0][0], 0, function, seen.total())
            for (file, function, _), seen in lines.items()
        ]


def _weighted(worker: Worker, threads: Sequence[int]) -> list[tuple[Sample, int]]:
    """The samples of the threads in order of time, each with the time since the one before.

    A first sample stands for itself, or within an import of a framework for all of that since it began.
    """
    found = []
    for thread in threads:
        samples = list(stack_samples.thread_samples(worker, [thread]))
        later = [(one, min(one.at - last.at, _LONGEST_NS)) for last, one in itertools.pairwise(samples)]
        found += [*((one, max(one.weight_ns, _imported_ns(worker, one.at))) for one in samples[:1]), *later]
    return sorted(found, key=lambda pair: pair[0].at)


def _imported_ns(worker: Worker, at: int) -> int:
    """For how long a framework had been imported by then; 0: none was."""
    begun = [event.at - event.dur for event in worker.all(Framework) if event.at - event.dur <= at < event.at]
    return at - min(begun, default=at)


_LONGEST_NS = 5_000_000_000
"""Longest time that one sample stands for: longer ones span a gap."""


def _kinds_of(part: LedgerPart) -> tuple[Kind, ...]:
    """Kinds whose records name the place of a part. Building is also Python: samples show more of it."""
    match part.component or part.phase:
        case "evaluation":
            return (Kind.LOOP,)
        case "building":
            return ()
        case name:
            return next((kinds for phase, kinds in outside.SHOWN if phase == name), ())


def _of_records(ledger: Ledger, part: LedgerPart) -> list[SpotTime]:
    """Places that the records of a phase name."""
    kinds = _kinds_of(part)
    records = outside.on_threads(ledger.worker, ledger.threads)
    mine = records.take(np.isin(records.kind, kinds))
    mine = mine.take(intervals.overlapping(part.spans, mine.start_ns, mine.start_ns + np.maximum(mine.dur_ns, 1)))
    names, traces = names_of(ledger.worker), {trace.id: trace for trace in ledger.worker.all(Traced)}
    times: Counter[tuple[str, int, int, str]] = Counter()
    for name, arg, lasted in zip(mine.name.tolist(), mine.arg.tolist(), mine.dur_ns.tolist(), strict=True):
        place = _traced(traces.get(arg)) if kinds == (Kind.TRACE,) else _called(names.get(name))
        if place is not None:
            times[place] += lasted
    return [SpotTime(*place, ns) for place, ns in times.items()]


def _called(name: Name | None) -> tuple[str, int, int, str] | None:
    if name is None or not (name.call_file or name.file):
        return None
    if name.call_file:
        return name.call_file, name.call_line, 0, name.call_function
    return name.file, name.line, name.end_line, name.text


def _traced(trace: Traced | None) -> tuple[str, int, int, str] | None:
    """The traced function, if it is the user's, else the user's line that led to the trace."""
    if trace is None:
        return None
    if trace.owner == "user" and trace.file:
        return trace.file, trace.line, trace.end_line, trace.function
    if not trace.stack:
        return None
    file, function, line = trace.stack[-1]
    return file, line, 0, function
