"""User Python inside the input pipeline: how long it ran, and where its time goes."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.python import line_weights, stack_samples
from stepscope.derive.steps.steps import names_of
from stepscope.model.log.events import PyFunctionMade
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.log.events import Name


_PARTS = re.compile(r"(\.<locals>)?\.<(listcomp|genexpr|dictcomp|setcomp)>")
"""What is a part of a function by its name alone."""


class InsideFunction(Struct, frozen=True, kw_only=True):
    """The user's innermost function with most samples of some threads."""

    file: str
    function: str
    lines: tuple[int, ...]
    """The fewest lines that have most of its time, the costliest first."""
    samples: int
    ratio: float
    """Share of the sampled time of the user's code on these threads."""
    called: str
    """What its lines were calling most often, see ``HotSpot.called``."""
    called_ratio: float
    """Share of its sampled time in ``called``."""
    tensorflow_ratio: float = 0.0
    """Share of its sampled time inside TensorFlow or Keras."""


class PythonFunction(Struct, frozen=True, kw_only=True):
    """A Python function of the user's that runs inside the input pipeline."""

    name: Name
    calls: int
    total_ns: int
    """Time summed over threads, within the steady steps."""
    recorded_ns: int
    """The part of ``total_ns`` with a record for each call; the rest was only counted."""
    made: PyFunctionMade | None
    step_thread: bool
    """Whether it runs on the step's own thread."""
    inside: InsideFunction | None = None
    """Where its time goes, from the stack samples of its threads."""

    @property
    def role(self) -> str:
        """py_function, numpy_function, generator or pydataset."""
        return self.name.role

    @property
    def wraps(self) -> InsideFunction | None:
        """The user's function that does the work, if this one is a library's wrapper around it."""
        return None if self.name.own else self.inside

    @property
    def users(self) -> str:
        """The name of the user's function that does the work."""
        if self.wraps is None:
            return self.name.text
        return _PARTS.sub("", self.wraps.function) or self.wraps.function


def build(steps: Steps) -> tuple[PythonFunction, ...]:
    """User Python that ran for the input during the steady steps, longest first."""
    records = steps.worker.records
    lo, hi = steps.windows
    if len(lo) == 0:
        return ()
    names = names_of(steps.worker)
    made = {m.name: m for m in steps.worker.all(PyFunctionMade)}
    starts, durs = records.start_ns, records.dur_ns
    mine = (records.kind == Kind.PYFUNC) & (starts >= lo[0]) & (starts < hi[-1])
    found = []
    counted = (records.kind == Kind.COUNTS) & (records.flags >> 8 == Kind.PYFUNC)
    counted &= (starts >= lo[0]) & (starts < hi[-1])
    for name in np.unique(records.name[mine]):
        if int(name) not in names:
            continue
        rows = mine & (records.name == name)
        short = counted & (records.name == name)
        found.append(
            PythonFunction(
                name=names[int(name)],
                calls=int(rows.sum() + records.arg[short].sum()),
                total_ns=int(durs[rows].sum() + durs[short].sum()),
                recorded_ns=int(durs[rows].sum()),
                made=made.get(int(name)),
                step_thread=bool((records.thread[rows] == steps.thread).all()),
                inside=_inside(steps, [int(t) for t in np.unique(records.thread[rows]) if t != steps.thread]),
            )
        )
    return tuple(sorted(found, key=lambda f: -f.total_ns))


MIN_SAMPLES = 5
"""Fewer samples do not support statements about lines."""


def samples(steps: Steps, function: PythonFunction) -> list[Sample]:
    """Of the threads that run a function, during the steady steps."""
    records, (lo, hi) = steps.worker.records, steps.windows
    mine = (records.kind == Kind.PYFUNC) & (records.name == function.name.id)
    threads = np.unique(records.thread[mine]).tolist()
    return [s for s in stack_samples.thread_samples(steps.worker, threads) if lo[0] <= s.at < hi[-1]]


def _inside(steps: Steps, threads: Sequence[int]) -> InsideFunction | None:
    """Where the user's code on these threads spends its time during the steady steps."""
    lo, hi = steps.windows
    weights: Counter[tuple[str, str]] = Counter()
    lines: dict[tuple[str, str], list[tuple[int, int]]] = {}
    below: dict[tuple[str, str], Counter[str]] = {}
    tensorflow: Counter[tuple[str, str]] = Counter()
    for sample in stack_samples.thread_samples(steps.worker, threads):
        culprit = sample.culprit
        if culprit is None or culprit.line <= 0 or not lo[0] <= sample.at < hi[-1]:
            continue
        key = (culprit.file, culprit.function)
        weights[key] += sample.weight_ns
        tensorflow[key] += sample.weight_ns if sample.in_tensorflow else 0
        lines.setdefault(key, []).append((culprit.line, sample.weight_ns))
        below.setdefault(key, Counter())[stack_samples.called(sample)] += sample.weight_ns
    if not weights:
        return None
    key = weights.most_common(1)[0][0]
    count = len(lines[key])
    if count < MIN_SAMPLES:
        return None
    below[key].pop("", None)
    called, inside = below[key].most_common(1)[0] if below[key] else ("", 0)
    return InsideFunction(
        file=key[0],
        function=key[1],
        lines=line_weights.most(line_weights.ranked(lines[key])),
        samples=count,
        ratio=weights[key] / max(1, weights.total()),
        called=called,
        called_ratio=inside / max(1, weights[key]),
        tensorflow_ratio=tensorflow[key] / max(1, weights[key]),
    )


def python_ratio(steps: Steps, functions: Sequence[PythonFunction]) -> float:
    """Share of the steady wall time in which at least one of the functions ran."""
    if not functions or steps.steady_ns == 0:
        return 0.0
    seen = intervals.total(intervals.clip(intervals.merge(*calls(steps, functions)), steps.windows)) / steps.steady_ns
    recorded = sum(f.recorded_ns for f in functions)
    scale = sum(f.total_ns for f in functions) / recorded if recorded else 1.0
    return min(1.0, seen * scale)


def calls(steps: Steps, functions: Sequence[PythonFunction]) -> intervals.Intervals:
    """When the functions ran: starts and ends, in ns."""
    records = steps.worker.records
    mine = (records.kind == Kind.PYFUNC) & np.isin(records.name, [f.name.id for f in functions])
    return records.start_ns[mine], records.start_ns[mine] + records.dur_ns[mine]
