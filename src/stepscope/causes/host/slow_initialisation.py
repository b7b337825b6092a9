"""The time before a job's first steady step: import, own code, model building, tracing and first calls, first batch.

One-off time: it is compared with the time from the end of the imports to the last step. Records show tracing, first
calls and the first batch; stack samples divide the rest by its code.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.python import stack_samples
from stepscope.model.log.events import Framework
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import I64

_CALLS = kinds_with(Trait.STARTED)
_BUILDING = ("/keras/src/layers/", "/keras/src/models/", "/keras/src/ops/", "/keras/src/initializers/")
"""Frames below the user's line that make layers and models."""


class Startup(Struct, frozen=True, kw_only=True):
    """Nanoseconds before the first steady step, by part; parts add up to ``length_ns``."""

    import_ns: int
    """From the start to the last framework's import; not part of ``span_ns``."""
    length_ns: int
    """From that import to the first steady step."""
    span_ns: int
    """From that import to the last step."""
    calls_ns: int
    """Time of tracing, first calls, warm-up steps."""
    first_batch_ns: int
    """Time waiting for batches outside calls."""
    building_ns: int
    """Time for making layers and models, by samples."""
    own_ns: int
    """Time of the user's own code, including what it called in C and in TensorFlow."""
    cluster_ns: int
    """Time waiting for other tasks of the cluster: neither the user's code nor an input."""
    spot: Spot | None
    """The line of the function with the largest part of ``own_ns``."""
    caller: Spot | None
    """The user's line from which that function was called."""
    spot_ns: int
    spot_cpu_ns: int
    """CPU time within the function, which a busy machine does not stretch."""
    samples: int
    making_ns: int
    """Part of ``spot_ns`` within calls that make a session, or load a model or a graph."""
    making: str
    """Name of these calls: ``InferenceSession``, ``load_model``; "" if there are none."""


def build(view: StepsView) -> Startup | None:
    """None without steps or samples of their thread."""
    steps = view.steps
    if not stack_samples.sampled(steps):
        return None
    began = max((e.at for e in steps.worker.all(Framework) if e.name != "numpy"), default=0)  # whose import is not seen
    first, last = int(steps.windows[0][0]), int(steps.windows[1][-1])
    window = np.array([began], np.int64), np.array([max(first, began)], np.int64)

    def spans(*kinds: Kind) -> tuple[I64, I64]:
        return intervals.clip(view.calls(*kinds).spans, window)

    calls, pulls, builds = spans(*_CALLS), spans(*_CALLS, Kind.NEXT), spans(Kind.BUILD)
    cpu = _cpu_starts(view)
    taken = [s for s in stack_samples.all_samples(steps) if began <= s.at < first and not _covered(s.at, pulls)]
    waiting = stack_samples.weight_of(s for s in taken if s.waits_for_cluster)
    own = [s for s in taken if s.culprit is not None and not s.waits_for_cluster and not _builds(s)]
    weights: Counter[tuple[str, str]] = Counter()
    for sample in own:
        if sample.culprit is not None:
            weights[sample.culprit.file, sample.culprit.function] += sample.weight_ns
    key, spot_ns = weights.most_common(1)[0] if weights else (("", ""), 0)
    mine = [s for s in own if s.culprit is not None and (s.culprit.file, s.culprit.function) == key]
    spot, caller = _spots(mine)
    return Startup(
        import_ns=began,
        length_ns=max(0, first - began),
        span_ns=max(0, last - began),
        calls_ns=intervals.total(calls),
        first_batch_ns=intervals.total(pulls) - intervals.total(calls),
        building_ns=stack_samples.weight_of(s for s in taken if _builds(s)),
        own_ns=stack_samples.weight_of(own),
        cluster_ns=waiting,
        spot=spot,
        caller=caller,
        spot_ns=spot_ns,
        spot_cpu_ns=stack_samples.weight_of(s for s in mine if (s.at, s.weight_ns) in cpu),
        samples=len(mine),
        making_ns=min(intervals.total(builds), stack_samples.weight_of(s for s in mine if _covered(s.at, builds))),
        making=_longest(view),
    )


def _longest(view: StepsView) -> str:
    """The building call that took the longest."""
    builds = view.calls(Kind.BUILD)
    if not len(builds):
        return ""
    name = view.names.get(int(builds.names[np.argmax(builds.durations)]))
    return name.text if name is not None else ""


def _cpu_starts(view: StepsView) -> set[tuple[int, int]]:
    """(time, weight) of the samples that stand for CPU time."""
    samples = view.calls(Kind.SAMPLE)
    samples = samples.where(samples.flagged(Flag.CPU))
    return set(zip(samples.starts.tolist(), samples.durations.tolist(), strict=True))


def _covered(at: int, spans: tuple[I64, I64]) -> bool:
    index = int(np.searchsorted(spans[0], at, side="right")) - 1
    return index >= 0 and at < int(spans[1][index])


def _builds(sample: Sample) -> bool:
    return any(part in frame.file for frame in sample.below_user() for part in _BUILDING)


def _spots(mine: list[Sample]) -> tuple[Spot | None, Spot | None]:
    """The function's line most often seen, and the user's line above it that most often called it."""
    lines = Counter(s.culprit for s in mine if s.culprit is not None)
    if not lines:
        return None, None
    spot = lines.most_common(1)[0][0]
    callers: Counter[Spot] = Counter()
    for sample in mine:
        above = [f for f in sample.frames if f.own and (f.file, f.function) != (spot.file, spot.function)]
        if above:
            callers[above[-1]] += 1
    return spot, callers.most_common(1)[0][0] if callers else None
