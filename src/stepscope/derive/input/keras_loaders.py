"""The DataLoaders that Keras makes on PyTorch around whatever ``fit`` is given: none of them is the program's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.frameworks import KERAS
from stepscope.model.log.events import Framework
from stepscope.model.log.program import DataLoaderMade

if TYPE_CHECKING:
    from stepscope.model.session.session import Worker

DATASETS = frozenset({"ConverterIterableDataset", "ArrayDataset"})
"""Classes that Keras defines around a generator, a PyDataset or a tf.data dataset, and around arrays. Source: Keras
3.15.1, trainers/data_adapters."""


def ids(worker: Worker) -> frozenset[int]:
    """The loaders of a process that Keras made; a DataLoader that the program gives to ``fit`` is none of them."""
    if not any(line.name == KERAS and line.detail == "torch" for line in worker.all(Framework)):
        return frozenset()
    return frozenset(made.id for made in worker.all(DataLoaderMade) if made.dataset in DATASETS and not made.fn_name)
