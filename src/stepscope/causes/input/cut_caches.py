"""Caches that are never read to their end: tf.data discards such a cache, and each pass fills it again.

Source: tensorflow/core/kernels/data/cache_dataset_ops.cc ("the partially cached contents of the dataset will be
discarded").

Serves slow_start_of_pass, and the advice of several detectors (``detectors.input.parts.cut_cache``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.model.log.events import DatasetMade

CACHES, TAKES = "CacheDataset", "TakeDataset"
"""Class names of the transformations in tf.data."""
SHUFFLES = "ShuffleDataset"
"""Class name of the transformation that reads its buffer ahead of what it makes."""
ONE_BY_ONE = ("Map", "Batch", "Prefetch", "Options", "Zip", "Enumerate")
"""Parts of class names of transformations that request one element of their input for each element of their own."""


class CutCache(Struct, frozen=True, kw_only=True):
    """A cache, and the transformation that ends each pass before its last element."""

    cache: DatasetMade
    take: DatasetMade
    below: frozenset[int]
    """Ids of the datasets that feed the cache."""


def build(datasets: Sequence[DatasetMade]) -> CutCache | None:
    """The first such cache among an iterator's datasets."""
    by_id = {d.id: d for d in datasets}
    for take in datasets:
        below = [by_id[i] for i in take.inputs if i in by_id]
        if take.cls != TAKES or not below or not 0 <= take.cardinality < below[0].cardinality:
            continue
        one, read = below[0], take.cardinality
        while one.cls != CACHES and _hands_on(one) and one.inputs and one.inputs[0] in by_id:
            read = read * max(1, one.batch) + (one.buffer if SHUFFLES in one.cls else 0)
            one = by_id[one.inputs[0]]
        if one.cls == CACHES and not 0 <= one.cardinality <= read:
            return CutCache(cache=one, take=take, below=_below(one, by_id))
    return None


def _hands_on(dataset: DatasetMade) -> bool:
    """Whether it asks for no more elements than it makes, or, a shuffle, for known more."""
    return any(part in dataset.cls for part in ONE_BY_ONE) or (SHUFFLES in dataset.cls and dataset.buffer > 0)


def _below(dataset: DatasetMade, by_id: Mapping[int, DatasetMade]) -> frozenset[int]:
    left, seen = list(dataset.inputs), set[int]()
    while left:
        one = left.pop()
        if one in by_id and one not in seen:
            seen.add(one)
            left += by_id[one].inputs
    return frozenset(seen)
