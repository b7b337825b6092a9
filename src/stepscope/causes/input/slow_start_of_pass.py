"""The wait for the first batch of each pass over the data: what the pipeline does before its first output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.input import cut_caches, restarted_loader_workers
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import epochs
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import DatasetMade
    from stepscope.tables.records import I64

SKIPS, FILLS = "SkipDataset", "ShuffleDataset"
"""Class names of transformations that take many elements before their first output."""


class PassStarts(Struct, frozen=True, kw_only=True):
    """First batches of the passes that began within the steady steps."""

    passes: int
    wait_ns: float
    """Mean wait beyond that of the other steps of a pass."""
    ratio: float
    """Sum of these waits, as a share of the steady time."""
    causes: tuple[DatasetMade, ...]
    """Transformations after a map with a function that take many of its elements before their first output."""
    maps: tuple[DatasetMade, ...]
    """The maps in front of ``causes``."""
    cached: bool
    """Whether the elements are kept by a cache, which the first pass over a dataset fills."""


def build(view: StepsView, min_skipped: float) -> PassStarts | None:
    """Starts of passes; None without passes, or if steps are known not to wait that long for input.

    ``min_skipped`` is the share of a dataset's elements from which skipping them counts as a cause.
    """
    steps, anatomy, pipe = view.steps, view.anatomy, view.pipeline
    if not steps.steady_count:
        return None
    waits = _fitted(steps) if steps.kind == Kind.EXECUTION else _pulled(view)
    if not len(waits):
        return None
    ratio = float(waits.sum()) / steps.steady_ns
    if anatomy.ratio("input-wait") < ratio / 2:
        return None
    by_id = {d.id: d for d in pipe.datasets}
    cut = cut_caches.build(pipe.datasets)
    kept = {d.id for d in pipe.datasets if d.cls == cut_caches.CACHES and (cut is None or d.id != cut.cache.id)}
    maps = {
        d.id: _maps_below(d, by_id, kept) for d in pipe.datasets if d.cls == FILLS or _skips_many(d, by_id, min_skipped)
    }
    causes = tuple(d for d in pipe.datasets if maps.get(d.id))
    return PassStarts(
        passes=len(waits),
        wait_ns=float(np.mean(waits)),
        ratio=min(ratio, anatomy.ratio("input-wait")),
        causes=causes,
        maps=tuple({one.id: one for d in causes for one in maps[d.id]}.values()),
        cached=bool(kept),
    )


def _fitted(steps: Steps) -> I64:
    """For Keras' steps, whose call contains the wait: the extra time of the first step of each pass."""
    calls = steps.call_ends - steps.starts
    first = np.searchsorted(steps.starts, epochs.ends_of(steps))
    first = np.unique(first[first < len(steps)])
    first = first[steps.steady[first]]
    waits: I64 = np.maximum(calls[first] - int(np.median(calls)), 0)
    return waits


def _pulled(view: StepsView) -> I64:
    """For loops: the extra time of the first pull after one that found the end."""
    pulls = view.calls(Kind.NEXT)
    ended = pulls.flagged(Flag.END)
    begins = np.append(False, ended[:-1])[: len(pulls)] & ~ended
    took = intervals.clipped_sum(pulls.starts, pulls.ends, restarted_loader_workers.outside(view))
    others = took[~begins & ~ended & (took > 0)]
    if not len(others):
        return took[:0]
    waits: I64 = np.maximum(took[begins & (took > 0)] - int(np.median(others)), 0)
    return waits


def _skips_many(dataset: DatasetMade, by_id: Mapping[int, DatasetMade], min_skipped: float) -> bool:
    if dataset.cls != SKIPS:
        return False
    below = max((by_id[i].cardinality for i in dataset.inputs if i in by_id), default=0)
    known = dataset.cardinality >= 0 and below > 0
    return not known or below - dataset.cardinality >= min_skipped * below


def _maps_below(dataset: DatasetMade, by_id: Mapping[int, DatasetMade], kept: Collection[int]) -> list[DatasetMade]:
    """The maps with a function whose elements feed a dataset, except those whose elements are ``kept``."""
    left, seen, found = list(dataset.inputs), set(), []
    while left:
        one = by_id.get(left.pop())
        if one is None or one.id in seen or one.id in kept:
            continue
        seen.add(one.id)
        left += one.inputs
        if "Map" in one.cls and one.fn_name:
            found.append(one)
    return found
