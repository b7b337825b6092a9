"""Datasets whose first batches are held in memory and repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

FEW = 8
"""Batches that are held."""
LONG = 1_000
"""Steps of an epoch whose length is unknown: it must end."""
UNKNOWN, INFINITE = -2, -1
PASSING = frozenset(("_PrefetchDataset", "PrefetchDataset", "_OptionsDataset", "OptionsDataset", "_ModelDataset"))
"""Transformations that leave the number of elements as it is."""


def hold(dataset: Foreign, length: int) -> Foreign:
    """The first batches of ``dataset``, repeated to ``length`` batches (-1: endlessly); None if it has none.

    They are read here, so that no step waits for them, and in one call, so that they do not look like steps.
    """
    first = _unbuffered(dataset).take(FEW).cache()
    if not int(first.reduce(0, lambda count, _: count + 1)):
        return None
    return first.repeat() if length == INFINITE else first.repeat().take(length)


def _unbuffered(dataset: Foreign) -> Foreign:
    """The dataset without prefetching at its end, which would read more batches than are held."""
    while type(dataset).__name__.lstrip("_") == "PrefetchDataset" and hasattr(dataset, "_input_dataset"):
        dataset = dataset._input_dataset
    return dataset


def length(dataset: Foreign) -> int:
    """Batches of ``dataset``; -1: infinite; if they are unknown, as many as a ``take`` at its end leaves, else LONG."""
    known = int(dataset.cardinality())
    return known if known != UNKNOWN else _bound(dataset)


def _bound(dataset: Foreign) -> int:
    while type(dataset).__name__ in PASSING:
        dataset = dataset._input_dataset
    if type(dataset).__name__.lstrip("_") == "TakeDataset":
        return int(dataset._count)
    return LONG
