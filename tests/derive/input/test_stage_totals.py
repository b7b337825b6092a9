"""What the stages of a pipeline do for one batch, and which of them run one after the other."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US, Job, node

from stepscope.derive.input import pipeline
from stepscope.derive.input.pipeline import Pipeline
from stepscope.model.log.events import DatasetMade
from stepscope.readers.iterator_model import Node

PERIOD = 100 * MS


def pulled(job: Job, root: DatasetMade, nodes: list[Node]) -> Pipeline:
    """The pipeline of a loop that pulls from ``root``, by one read."""
    iterator = job.iterator(root)
    job.function().every(PERIOD, 50, dur=80 * MS, start=10 * MS)
    job.nexts().every(PERIOD, 50, dur=9 * MS, arg=iterator)
    job.model(iterator, 40 * PERIOD, nodes)
    return pipeline.build(job.steps())


def over_files(job: Job, reader: tuple[int, int, int], *, opened: int, passed: int, at: int) -> None:
    """A read in which one of several files is open: ``reader`` is its node, its records, and its time so far."""
    number, records, busy = reader
    nodes = [
        node(1, "Batch", 2, elements=passed // 8, busy=passed * US),
        node(2, "FlatMap", 3, number, elements=passed, busy=0, parameters={"cycle_length": 1.0}),
        node(3, "TensorSlice", elements=opened),
        node(number, "TFRecord", elements=records, busy=busy),
    ]
    job.model(1, at, nodes)


def test_files_that_were_closed_count_by_the_open_ones() -> None:
    """The model drops a file's stage with the file: its time per record stands for all records that were read."""
    job = Job()
    files = job.dataset("TensorSliceDataset", line=1)
    root = job.dataset("BatchDataset", job.dataset("TFRecordDatasetV2", files, line=2), line=3)
    job.iterator(root)
    job.function().every(PERIOD, 100, dur=80 * MS, start=10 * MS)
    job.nexts().every(PERIOD, 100, dur=9 * MS, arg=1)
    over_files(job, (4, 100, 100 * MS), opened=1, passed=160, at=20 * PERIOD)
    over_files(job, (5, 80, 80 * MS), opened=5, passed=400, at=50 * PERIOD)
    over_files(job, (6, 40, 40 * MS), opened=9, passed=800, at=99 * PERIOD)
    found = {s.name: s for s in pipeline.build(job.steps()).stages}
    assert found["TFRecord"].self_ns == pytest.approx(8 * MS)
    assert found["TFRecord"].elements == pytest.approx(8)
    assert [d.line for d in found["TFRecord"].datasets] == [2]
    assert found["FlatMap"].elements == pytest.approx(8)


def test_inputs_of_an_interleave_are_one_stage_on_its_threads() -> None:
    """However many files are open, the readers are one stage, which runs as often at a time as the interleave pulls."""
    job = Job()
    files = job.dataset("TensorSliceDataset", line=1)
    root = job.dataset("ParallelInterleaveDataset", files, line=2, parallel=4)
    nodes = [
        node(1, "ParallelInterleaveV4", 2, 3, 4, elements=100, busy=100 * MS, parameters={"parallelism": 4.0}),
        node(2, "TensorSlice", elements=2),
        node(3, "TFRecord", elements=50, busy=100 * MS),
        node(4, "TFRecord", elements=50, busy=300 * MS),
    ]
    found = {s.name: s for s in pulled(job, root, nodes).stages}
    lines = {name: tuple(d.line for d in s.datasets) for name, s in found.items()}
    assert lines == {"ParallelInterleaveV4": (2,), "TensorSlice": (1,), "TFRecord": (2,)}
    assert (found["TFRecord"].self_ns, found["TFRecord"].latency_ns) == (4 * MS, MS)
    assert found["TFRecord"].stretch == found["ParallelInterleaveV4"].stretch
    assert not found["TFRecord"].sequential


def test_stages_that_run_one_after_the_other_are_one_stretch() -> None:
    """Two stages on one thread limit the pipeline together, though a stage that has own threads takes longer."""
    job = Job()
    mapped = job.dataset("ParallelMapDataset", job.dataset("RangeDataset", line=1), line=2, parallel=2)
    root = job.dataset("BatchDataset", job.dataset("MapDataset", mapped, line=3), line=4)
    nodes = [
        node(1, "Batch", 2, elements=40, busy=40 * 20 * MS),
        node(2, "Map", 3, elements=40, busy=40 * 25 * MS),
        node(3, "ParallelMapV2", 4, elements=40, busy=40 * 60 * MS, parameters={"parallelism": 2.0}),
        node(4, "Range", elements=40),
    ]
    found = pulled(job, root, nodes)
    assert [s.stretch for s in found.stages] == [1, 1, 2, 3]
    assert found.slowest is not None
    assert found.slowest.name == "Map"


@pytest.mark.parametrize(("busy", "threads"), [(90 * MS, 1), (180 * MS, 1.8)])
def test_a_fused_map_ran_on_the_threads_that_its_time_takes(busy: int, threads: float) -> None:
    """The model's parallelism stays 1 where its calls took twice the time that passed."""
    job = Job()
    root = job.dataset("BatchDataset", job.dataset("MapDataset", job.dataset("RangeDataset"), line=2), line=3)
    nodes = [
        node(1, "MapAndBatch", 2, elements=40, busy=40 * busy, parameters={"parallelism": 1.0}),
        node(2, "Range", elements=320),
    ]
    (stage, *_) = pulled(job, root, nodes).stages
    assert stage.self_ns == busy
    assert stage.parallelism == pytest.approx(threads)
