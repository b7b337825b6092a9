"""The input wait inside of compiled steps, and which line of the user's made the stage that is slow."""

from __future__ import annotations

import base64

import pytest
from tests.derive.sessions import MS, POOL, SCRIPT, US, Job, S, node
from tests.detectors.jobs import keras_fit

from stepscope.derive.input import pipeline
from stepscope.derive.input.pipeline import Pipeline
from stepscope.model.log.events import DatasetMade, IteratorModel
from stepscope.readers.iterator_model import Node

PERIOD = 100 * MS
WAIT = 30 * MS


def build(job: Job) -> Pipeline:
    """The pipeline of the job's steps."""
    return pipeline.build(job.steps())


def gaps_us(count: int, gap: int = PERIOD - WAIT) -> list[int]:
    """So many gaps, at most the last hundred: tf.data keeps no more."""
    return [gap // US] * min(100, count)


def fit(job: Job, executions: int, *, start: int = 0, batches: int = 1) -> None:
    """One fit of Keras' whose executions wait at their beginning."""
    job.loop("fit").at(start, executions * PERIOD)
    job.execution("train").every(PERIOD, executions, dur=90 * MS, start=start, arg=batches)


def read(job: Job, iterator: int, execution: int, *, start: int = 0, first: int = 0, gap: int = PERIOD - WAIT) -> None:
    """Read the model in the middle of an execution of one batch, the iterator being used since ``first``."""
    taken = execution - first + 1
    nodes = [node(1, "Map", 2, elements=taken, busy=taken * WAIT), node(2, "Range", elements=taken)]
    job.model(iterator, start + execution * PERIOD + PERIOD // 2, nodes, gaps_us(taken - 1, gap))


# ---- the wait ----------------------------------------------------------------------------------------------------


def test_contiguous_reads_cover_each_execution_once() -> None:
    """Windows of reads that follow each other do not overlap, and each says the wait exactly."""
    job = Job()
    fit(job, 100)
    iterator = job.iterator()
    for execution in (30, 60, 90):
        read(job, iterator, execution)
    windows = build(job).windows
    assert [(w.start_ns // PERIOD, w.end_ns // PERIOD, w.executions) for w in windows] == [
        (1, 30, 29),
        (30, 60, 30),
        (60, 90, 30),
    ]
    assert [w.wait_ns for w in windows] == [29 * WAIT, 30 * WAIT, 30 * WAIT]
    assert build(job).wait_ns_per_execution == WAIT
    assert build(job).wait_error_ns() == 0


def test_a_read_in_the_middle_of_a_wait_says_the_same() -> None:
    """While an execution waits for its batch, that batch is not counted yet but the gap before it is."""
    job = Job()
    fit(job, 60)
    iterator = job.iterator()
    nodes = [node(1, "Map", elements=50)]
    job.model(iterator, 50 * PERIOD + WAIT // 2, nodes, gaps_us(50))
    assert build(job).wait_ns_per_execution == WAIT


def test_more_executions_than_gaps_between_two_reads() -> None:
    """Of more than a hundred executions since the last read, the last hundred are covered."""
    job = Job()
    fit(job, 400)
    iterator = job.iterator()
    read(job, iterator, 100)
    read(job, iterator, 350)
    windows = build(job).windows
    assert [w.executions for w in windows] == [99, 100]
    assert windows[1].start_ns == 250 * PERIOD
    assert build(job).wait_ns_per_execution == WAIT


def test_each_epoch_has_its_own_iterator() -> None:
    """Reads of one epoch's iterator reach back to that epoch's first batch, not further."""
    job = Job()
    fit(job, 90)
    for epoch in range(3):
        read(job, job.iterator(), 30 * epoch + 29, first=30 * epoch)
    windows = build(job).windows
    assert [(w.start_ns // PERIOD, w.end_ns // PERIOD) for w in windows] == [(1, 29), (30, 59), (60, 89)]
    assert build(job).wait_ns_per_execution == WAIT


def test_several_batches_per_execution() -> None:
    """With steps_per_execution of four, an execution's wait is that of its four batches."""
    job = Job()
    fit(job, 50, batches=4)
    iterator = job.iterator()
    inner, outer = 10 * MS, 20 * MS  # gaps within an execution, and between two
    each = [inner // US] * 3 + [outer // US]
    job.model(iterator, 21 * PERIOD - MS, [node(1, "Map", elements=84)], (each * 21)[:83])
    (window,) = build(job).windows
    assert (window.executions, window.end_ns) == (19, 20 * PERIOD)
    assert window.wait_ns == 19 * (PERIOD - 3 * inner - outer)


def test_a_read_within_an_execution_of_several_batches() -> None:
    """With steps_per_execution of four, a read after two of an execution's batches says the wait exactly."""
    job = Job()
    job.loop("fit").at(0, 50 * PERIOD)
    job.execution("train").every(PERIOD, 50, dur=90 * MS, arg=4)
    inner, outer = 10 * MS, 20 * MS
    each = [inner // US] * 3 + [outer // US]
    job.model(job.iterator(), 20 * PERIOD + 50 * MS, [node(1, "Map", elements=82)], (each * 21)[:81])
    assert build(job).wait_ns_per_execution == PERIOD - 3 * inner - outer


def test_warm_up_is_left_out() -> None:
    """A window begins with the first steady execution."""
    job = Job()
    execution = job.execution("train")
    execution.at(0, 5 * S, arg=1)
    execution.every(PERIOD, 50, dur=90 * MS, start=5 * S, arg=1)
    iterator = job.iterator()
    job.model(iterator, 5 * S + 40 * PERIOD, [node(1, "Map", elements=42)], [4_990_000, *gaps_us(40)])
    (window,) = build(job).windows
    assert window.start_ns == 5 * S
    assert window.wait_ns == window.executions * WAIT


def test_gaps_longer_than_the_time_are_no_negative_wait() -> None:
    """Where the gaps add up to more than the wall time, the wait is zero."""
    job = Job()
    fit(job, 50)
    read(job, job.iterator(), 40, gap=2 * PERIOD)
    assert build(job).wait_ns_per_execution == 0


def test_no_read_says_nothing() -> None:
    """Without a read the wait is unknown, not zero; the reason is kept."""
    job = Job()
    fit(job, 50)
    job.event(IteratorModel(at=S, iterator=1, error="no-op"))
    assert build(job).wait_ns_per_execution is None
    assert build(job).error == "no-op"


@pytest.mark.parametrize("proto", ["not base64!", base64.b64encode(b"\x0a\x7f").decode()])
def test_a_damaged_read_is_told(proto: str) -> None:
    """A read that cannot be used is one line of the diagnostics, and the others count."""
    job = Job()
    fit(job, 50)
    iterator = job.iterator()
    job.event(IteratorModel(at=S, iterator=iterator, proto=proto))
    read(job, iterator, 40)
    found = build(job)
    assert len(found.diagnostics) == 1
    assert found.wait_ns_per_execution == WAIT


def test_the_error_is_the_scatter_of_the_windows() -> None:
    """Windows that differ give a standard error; fewer than three say nothing of it."""
    job = Job()
    fit(job, 100)
    iterator = job.iterator()
    for execution, gap in ((21, 60 * MS), (41, 70 * MS), (61, 80 * MS)):
        read(job, iterator, execution, gap=gap)
    found = build(job)
    assert found.wait_ns_per_execution == 30 * MS
    assert found.wait_error_ns() == pytest.approx(10 * MS * (2 / 3) ** 0.5 / 2**0.5)


def test_gaps_that_python_stretches_are_disturbed() -> None:
    """What the mean gap is longer than the undisturbed one is told per execution."""
    job = Job()
    fit(job, 50)
    gaps = [50_000 if i % 2 else 60_000 for i in range(40)]
    job.model(job.iterator(), 40 * PERIOD + MS, [node(1, "Map", elements=41)], gaps)
    assert build(job).disturbed_ns() == pytest.approx(5 * MS, rel=0.03)


# ---- the stages --------------------------------------------------------------------------------------------------


def stages(job: Job, root: DatasetMade, nodes: list[Node]) -> dict[str, tuple[int, ...]]:
    """Stage to the lines that it was made at, for a model of a loop that pulls from ``root``."""
    iterator = job.iterator(root)
    job.function().every(PERIOD, 50, dur=80 * MS, start=10 * MS)
    job.nexts().every(PERIOD, 50, dur=9 * MS, arg=iterator)
    job.model(iterator, 40 * PERIOD, nodes)
    return {s.name: tuple(d.line for d in s.datasets) for s in build(job).stages}


def test_a_plain_pipeline_is_aligned() -> None:
    """Each stage is found at the line of its construction, whatever version of it tf.data runs."""
    job = Job()
    files = job.dataset("TFRecordDatasetV2", line=1)
    shuffled = job.dataset("ShuffleDataset", files, line=2)
    mapped = job.dataset("ParallelMapDataset", shuffled, line=3)
    batched = job.dataset("BatchDataset", mapped, line=4)
    root = job.dataset("PrefetchDataset", batched, line=5)
    nodes = [
        node(1, "Prefetch", 2),
        node(2, "ParallelBatch", 3),
        node(3, "ParallelMapV2", 4),
        node(4, "Shuffle", 5),
        node(5, "TFRecord"),
    ]
    assert stages(job, root, nodes) == {
        "Prefetch": (5,),
        "ParallelBatch": (4,),
        "ParallelMapV2": (3,),
        "Shuffle": (2,),
        "TFRecord": (1,),
    }


def test_a_fused_stage_has_both_lines() -> None:
    """Map and batch that tf.data fused came from two constructions."""
    job = Job()
    source = job.dataset("RangeDataset", line=1)
    root = job.dataset("BatchDataset", job.dataset("ParallelMapDataset", source, line=2), line=3)
    assert stages(job, root, [node(1, "MapAndBatch", 2), node(2, "Range")]) == {"MapAndBatch": (3, 2), "Range": (1,)}


def test_what_tf_data_puts_in_has_no_line() -> None:
    """An injected prefetch is nobody's line, and what is below it is aligned all the same."""
    job = Job()
    root = job.dataset("MapDataset", job.dataset("RangeDataset", line=1), line=2)
    nodes = [
        node(1, "Root", 2),
        node(2, "Model", 3),
        node(3, "Prefetch", 4),
        node(4, "Map", 5),
        node(5, "Range"),
    ]
    assert stages(job, root, nodes) == {"Prefetch": (), "Map": (2,), "Range": (1,)}


def test_what_tf_data_drops_is_passed_over() -> None:
    """Constructions that do not run any more (options, a no-op take) do not stop the search."""
    job = Job()
    mapped = job.dataset("MapDataset", job.dataset("RangeDataset", line=1), line=2)
    root = job.dataset("_OptionsDataset", job.dataset("TakeDataset", mapped, line=3), line=4)
    assert stages(job, root, [node(1, "Map", 2), node(2, "Range")]) == {"Map": (2,), "Range": (1,)}


def test_a_repeat_without_end_is_a_repeat() -> None:
    """ForeverRepeat is the user's repeat."""
    job = Job()
    root = job.dataset("RepeatDataset", job.dataset("RangeDataset", line=1), line=2)
    assert stages(job, root, [node(1, "ForeverRepeat", 2), node(2, "Range")]) == {"ForeverRepeat": (2,), "Range": (1,)}


def test_both_inputs_of_a_zip_are_aligned() -> None:
    """The two sides of a zip keep their order."""
    job = Job()
    left = job.dataset("MapDataset", job.dataset("RangeDataset", line=1), line=2)
    right = job.dataset("ShuffleDataset", job.dataset("TensorSliceDataset", line=3), line=4)
    root = job.dataset("ZipDataset", left, right, line=5)
    nodes = [
        node(1, "Zip", 2, 4),
        node(2, "Map", 3),
        node(3, "Range"),
        node(4, "Shuffle", 5),
        node(5, "TensorSlice"),
    ]
    assert stages(job, root, nodes) == {
        "Zip": (5,),
        "Map": (2,),
        "Range": (1,),
        "Shuffle": (4,),
        "TensorSlice": (3,),
    }


def test_two_maps_of_one_kind_keep_their_order() -> None:
    """Of two maps the consumer's is the later construction."""
    job = Job()
    first = job.dataset("MapDataset", job.dataset("RangeDataset", line=1), line=2)
    root = job.dataset("MapDataset", first, line=3)
    iterator = job.iterator(root)
    job.function().every(PERIOD, 50, dur=80 * MS, start=10 * MS)
    job.nexts().every(PERIOD, 50, dur=9 * MS, arg=iterator)
    nodes = [node(1, "Map", 2, elements=40), node(2, "Map", 3, elements=40, busy=S), node(3, "Range")]
    job.model(iterator, 40 * PERIOD, nodes)
    found = build(job)
    assert [tuple(d.line for d in s.datasets) for s in found.stages] == [(3,), (2,), (1,)]
    assert found.slowest == found.stages[1]


def test_a_generator_is_its_flat_map() -> None:
    """from_generator makes a flat map over a generator; both are the user's line."""
    job = Job()
    ids = job.dataset("TensorSliceDataset", line=1)
    root = job.dataset("FlatMapDataset", ids, line=1, fn_name="make", fn_file=SCRIPT, fn_line=20)
    nodes = [node(1, "FlatMap", 2, 3), node(2, "TensorSlice"), node(3, "Generator")]
    found = stages(job, root, nodes)
    assert found["FlatMap"] == (1,)
    assert found["TensorSlice"] == (1,)


def test_stage_times_are_per_batch_and_by_parallelism() -> None:
    """Between two reads: self time per batch, elements per batch, latency by the number of threads."""
    job = Job()
    source = job.dataset("RangeDataset", line=1)
    root = job.dataset("BatchDataset", job.dataset("ParallelMapDataset", source, line=2, parallel=4), line=3)
    iterator = job.iterator(root)
    job.function().every(PERIOD, 100, dur=80 * MS, start=10 * MS)
    job.nexts().every(PERIOD, 100, dur=9 * MS, arg=iterator)
    for batches in (20, 80):
        slow_start = 7 * S  # before the first read: must not count
        nodes = [
            node(1, "Batch", 2, elements=batches, busy=batches * MS),
            node(
                2,
                "ParallelMapV2",
                3,
                elements=8 * batches,
                busy=slow_start + batches * 200 * MS,
                parameters={"parallelism": 4.0},
            ),
            node(3, "Range", elements=8 * batches),
        ]
        job.model(iterator, batches * PERIOD, nodes)
    slowest = build(job).slowest
    assert slowest is not None
    assert (slowest.name, slowest.self_ns, slowest.elements) == ("ParallelMapV2", 200 * MS, 8)
    assert (slowest.latency_ns, slowest.element_ns, slowest.sequential) == (50 * MS, 25 * MS, False)


def test_epochs_of_one_shape_add_up() -> None:
    """Iterators of the same pipeline, one an epoch, count together."""
    job = Job()
    fit(job, 90)
    for epoch in range(3):
        read(job, job.iterator(), 30 * epoch + 29, first=30 * epoch)
    slowest = build(job).slowest
    assert slowest is not None
    assert (slowest.name, slowest.self_ns) == ("Map", WAIT)


def test_a_model_that_runs_in_circles_ends() -> None:
    """Nodes that name each other as inputs, or none that exists, are walked once."""
    job = Job()
    root = job.dataset("MapDataset", job.dataset("RangeDataset", line=1), line=2)
    assert set(stages(job, root, [node(1, "Map", 2, 99), node(2, "Range")])) == {"Map", "Range"}


# ---- user Python -------------------------------------------------------------------------------------------------


def test_python_of_the_pipeline_is_summed_with_its_short_calls() -> None:
    """Calls that were counted instead of recorded belong to the function's time."""
    job = Job()
    job.function().every(PERIOD, 50, dur=80 * MS)
    decode = job.python("numpy_function", "decode")
    decode.every(PERIOD, 50, dur=20 * MS, thread=POOL)
    decode.counted(10 * PERIOD + MS, calls=1000, total=10 * MS, thread=POOL)
    (function,) = build(job).functions
    assert function.calls == 1048
    assert function.recorded_ns == 48 * 20 * MS
    assert function.total_ns == 48 * 20 * MS + 10 * MS
    assert (function.role, function.step_thread) == ("numpy_function", False)


def test_python_on_the_steps_thread_is_told() -> None:
    """A PyDataset without workers runs on the thread of the steps."""
    job = Job()
    job.function().every(PERIOD, 50, dur=80 * MS)
    job.python("pydataset", "Data.__getitem__").every(PERIOD, 50, dur=10 * MS, start=85 * MS)
    (function,) = build(job).functions
    assert function.step_thread


def test_only_iterators_that_fed_the_steps_count() -> None:
    """A validation set's iterator and its datasets are no part of the steps' pipeline."""
    job = Job()
    train = job.iterator(job.dataset("MapDataset", job.dataset("RangeDataset", line=1), line=2))
    other = job.iterator(job.dataset("BatchDataset", line=9))
    job.function().every(PERIOD, 50, dur=80 * MS, start=10 * MS)
    nexts = job.nexts()
    nexts.every(PERIOD, 50, dur=9 * MS, arg=train)
    nexts.every(MS, 5, dur=US, start=50 * PERIOD, arg=other)
    found = build(job)
    assert [i.id for i in found.iterators] == [train]
    assert [d.line for d in found.datasets] == [2, 1]


def test_a_read_with_other_letters_is_told() -> None:
    """A read whose text is not even ASCII is a diagnostic as any damaged one."""
    job = keras_fit(50 * MS)
    job.event(IteratorModel(at=S, iterator=1, proto="é"))
    assert len(pipeline.build(job.steps()).diagnostics) == 1
