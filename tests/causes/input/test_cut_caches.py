"""Caches that no pass reads to their end."""

from __future__ import annotations

import pytest
from tests.derive.sessions import Job

from stepscope.causes.input import cut_caches
from stepscope.model.log.events import DatasetMade


def chain(*classes: tuple[str, int]) -> list[DatasetMade]:
    """Datasets of these classes and counts, the source first; as a session lists them, the output first."""
    job = Job()
    made: list[DatasetMade] = []
    for cls, count in classes:
        made.append(job.dataset(cls, *made[-1:], cardinality=count))
    return made[::-1]


SOURCE = (("TensorSliceDataset", 100), ("ParallelMapDataset", 100), ("CacheDataset", 100))


@pytest.mark.parametrize(
    "behind",
    [
        (("TakeDataset", 90), ("ShuffleDataset", 90)),
        (("BatchDataset", 10), ("PrefetchDataset", 10), ("TakeDataset", 5)),
    ],
    ids=["take", "take-of-batches"],
)
def test_a_cache_that_is_cut_short(behind: tuple[tuple[str, int], ...]) -> None:
    """Whatever hands on as much as it is asked for may stand between."""
    made = chain(*SOURCE, *behind)
    found = cut_caches.build(made)
    assert found is not None
    assert (found.cache.cls, found.take.cls) == ("CacheDataset", "TakeDataset")
    assert found.below == {d.id for d in made if d.cls in {"TensorSliceDataset", "ParallelMapDataset"}}


@pytest.mark.parametrize(
    "made",
    [
        chain(*SOURCE, ("TakeDataset", 100)),
        chain(*SOURCE, ("ShuffleDataset", 100), ("TakeDataset", 90)),
        chain(*SOURCE, ("RepeatDataset", -1), ("TakeDataset", 90)),
        chain(("TensorSliceDataset", 100), ("TakeDataset", 90), ("CacheDataset", 90)),
        chain(("TFRecordDatasetV2", -2), ("CacheDataset", -2), ("TakeDataset", -2)),
        chain(*SOURCE),
    ],
    ids=["all", "buffer-reads-on", "repeat-reads-on", "take-first", "unknown", "none"],
)
def test_a_cache_that_may_be_complete(made: list[DatasetMade]) -> None:
    """Nothing ends a pass before the cache's last element, or it is not known."""
    assert cut_caches.build(made) is None


@pytest.mark.parametrize(("buffer", "batches", "cut"), [(18, 8, True), (20, 8, False), (0, 8, False), (5, 10, False)])
def test_a_shuffle_reads_its_buffer_ahead(buffer: int, batches: int, *, cut: bool) -> None:
    """Eight batches of ten and a buffer of 18 leave two of a hundred elements unread."""
    job = Job()
    made = [job.dataset("CacheDataset", cardinality=100)]
    made.append(job.dataset("ShuffleDataset", made[-1], cardinality=100, buffer=buffer))
    made.append(job.dataset("BatchDataset", made[-1], cardinality=10, batch=10))
    made.append(job.dataset("TakeDataset", made[-1], cardinality=batches))
    assert (cut_caches.build(made) is not None) == cut
