"""What the input could reach, and by which edits, from jobs whose stages' times are known."""

from __future__ import annotations

import itertools

import pytest
from tests.derive.sessions import MS, SCRIPT, US, Job, node
from tests.detectors.jobs import PERIOD

from stepscope.causes.input import input_bound
from stepscope.causes.input.input_bound import InputBound
from stepscope.derive import steps_view
from stepscope.model.log.events import DatasetMade
from stepscope.model.session.session import HostInfo
from stepscope.readers.iterator_model import Node

ROWS = 32
"""Elements of a batch."""


def bound(job: Job) -> InputBound:
    """The job's bound."""
    view = steps_view.of(job.view())
    assert view is not None
    found = view.get(input_bound.build)
    assert found is not None
    return found


def job_of(job: Job, root: DatasetMade, *nodes: Node) -> Job:
    """Steps of 20 ms that wait 60 ms for a pipeline."""
    iterator = job.iterator(root, batch=ROWS)
    job.function().every(PERIOD, 100, dur=20 * MS, start=60 * MS)
    job.nexts().every(PERIOD, 100, dur=60 * MS, arg=iterator)
    job.model(iterator, 90 * PERIOD, nodes)
    return job


def mapped(
    *, again: bool = True, cardinality: int = 6400, shuffled: bool = False, line: int = 15, took: int = 60 * MS
) -> Job:
    """A map of 60 ms for a batch, over rows of 1,000 bytes, that is batched, prefetched and maybe repeated."""
    job = Job()
    made = job.dataset("TensorSliceDataset", line=70, cardinality=cardinality)
    if shuffled:
        made = job.dataset("ShuffleDataset", made, line=71, cardinality=cardinality)
    own = {"fn_file": SCRIPT, "fn_line": line, "fn_end_line": line + 1, "cardinality": cardinality}
    made = job.dataset("MapDataset", made, line=72, **own)
    made = job.dataset("BatchDataset", made, line=73, batch=ROWS)
    if again:
        made = job.dataset("RepeatDataset", made, line=74)
    made = job.dataset("PrefetchDataset", made, line=75)
    names = ["Prefetch", *(["ForeverRepeat"] if again else []), "BatchV2", "Map"]
    names += [*(["Shuffle"] if shuffled else []), "TensorSlice"]
    busy = {"Map": took, "BatchV2": 100 * US}
    nodes = [
        node(
            at,
            name,
            *([at + 1] if at < len(names) else []),
            elements=90 * (1 if name in {"Prefetch", "ForeverRepeat", "BatchV2"} else ROWS),
            busy=90 * busy.get(name, 1 * US),
            produced=90 * ROWS * 1000,
        )
        for at, name in enumerate(names, 1)
    ]
    return job_of(job, made, *nodes)


def filtered(kept: int, *, before: bool = False) -> Job:
    """A map of 60 ms for 64 elements of a batch, of which a filter leaves ``kept``; or the filter stands before it."""
    job = Job()
    source = job.dataset("RangeDataset", line=70)
    names = ("Map", "Filter") if before else ("Filter", "Map")
    lower = job.dataset(f"{names[1]}Dataset", source, line=71)
    root = job.dataset("BatchDataset", job.dataset(f"{names[0]}Dataset", lower, line=72), line=73, batch=kept)
    given = {"Filter": kept, "Map": kept if before else 64}
    busy = {"Filter": 1 * MS, "Map": 60 * MS}
    stages = [
        node(at, name, at + 1, elements=90 * given[name], busy=90 * busy[name]) for at, name in enumerate(names, 2)
    ]
    return job_of(
        job, root, node(1, "BatchV2", 2, elements=90, busy=90 * MS), *stages, node(4, "Range", elements=90 * 64)
    )


def test_a_filter_comes_before_the_map_whose_elements_it_discards() -> None:
    """The map's time shrinks with what is left, and the edit names both lines."""
    found = bound(filtered(16))
    edit = next(e for e in found.edits if e.kind == "earlier")
    assert (edit.text, edit.note) == ("filter before map", "if filter does not need what map makes")
    change = edit.changes[0]
    assert change.other is not None
    assert (change.kind, change.made.line, change.other.line) == ("move", 72, 71)
    assert found.best.ns < 0.6 * found.now_ns


def test_no_filter_moves_that_stands_before_the_map() -> None:
    """There is nothing to gain by order."""
    assert not [e for e in bound(filtered(16, before=True)).edits if e.kind == "earlier"]


def test_a_map_is_cached_if_its_data_come_again() -> None:
    """A pass of 6,400 rows of 1,000 bytes fits into memory; nothing is shuffled, so the batches are kept."""
    found = bound(mapped())
    edit = next(e for e in found.edits if e.kind == "cache")
    assert edit.text == "cache() after batch"
    assert edit.bytes == pytest.approx(6400 * 1000)
    assert [(c.kind, c.made.line, c.text) for c in edit.changes] == [("insert", 73, "cache()")]
    assert found.best.ns < found.without_cache.ns


def test_a_shuffle_stays_after_the_cache() -> None:
    """Else each pass would come in the order of the first."""
    edit = next(e for e in bound(mapped(shuffled=True)).edits if e.kind == "cache")
    assert edit.text == "cache() after map, shuffle after it"
    assert [(c.kind, c.made.line, c.other.line if c.other else 0) for c in edit.changes] == [
        ("move", 72, 71),
        ("insert", 72, 0),
    ]


def chained(*names: str, busy: str = "Map") -> Job:
    """A chain of stages from the source on, one a line from 71 on, whose ``busy`` one takes 60 ms for a batch."""
    job = Job()
    made = job.dataset("TFRecordDatasetV2", line=70, cardinality=640)
    for at, name in enumerate(names, 71):
        made = job.dataset(f"{name}Dataset", made, line=at, cardinality=640, batch=ROWS if name == "Batch" else 0)
    batched = names.index("Batch")
    order = [*reversed(names), "TFRecord"]
    nodes = [
        node(
            at,
            name,
            *([at + 1] if at < len(order) else []),
            elements=90 * (1 if at <= len(names) - batched else ROWS),
            busy=90 * (60 * MS if name == busy else 1 * US),
            produced=90 * ROWS * 1000,
        )
        for at, name in enumerate(order, 1)
    ]
    return job_of(job, made, *nodes)


def moves(job: Job) -> list[tuple[str, int, int]]:
    """The changes of the text for a cache, with the lines of both calls; [] if no cache is proposed."""
    edits = [e for e in bound(job).edits if e.kind == "cache"]
    return [(c.kind, c.made.line, c.other.line if c.other else 0) for e in edits for c in e.changes]


def test_all_calls_since_the_shuffle_come_before_it() -> None:
    """A map below the cached one would else work on what that one gives; the repeat comes later as well."""
    assert moves(chained("Shuffle", "Repeat", "Filter", "Map", "Batch")) == [
        ("move", 73, 71),
        ("move", 74, 71),
        ("insert", 74, 0),
    ]


def test_a_cache_behind_a_repeat_is_never_full() -> None:
    """It is put where a pass ends."""
    assert moves(chained("Repeat", "Map", "Cache", "Batch")) == [("move", 72, 71), ("remove", 73, 0), ("insert", 72, 0)]
    assert not moves(chained("Map", "Cache", "Repeat", "Batch"))


def test_no_shuffle_of_rows_becomes_one_of_batches() -> None:
    """The map over batches stays where it is."""
    assert not moves(chained("Shuffle", "Batch", "Map", "Repeat"))


def test_one_pass_needs_no_cache() -> None:
    """What is read once is not kept."""
    assert not [e for e in bound(mapped(again=False)).edits if e.kind == "cache"]


def test_a_cache_that_does_not_fit_is_said_and_not_advised() -> None:
    """Its size remains as the reason."""
    job = mapped()
    job.host = HostInfo(memory_bytes=10_000_000)
    found = bound(job)
    assert not [e for e in found.edits if e.kind == "cache"]
    assert found.too_large == pytest.approx(6_400_000)


def test_a_sequential_map_is_given_threads_where_cores_are_free() -> None:
    """The edit is a keyword of the map, and what-if can try it."""
    job = mapped(again=False, took=80 * MS)
    job.machine(10, cpus=4, got=1.25)
    found = bound(job)
    edit = next(e for e in found.edits if e.kind == "parallel")
    assert (edit.trial, edit.changes[0].kind, edit.changes[0].made.line) == ("parallel-map", "keyword", 72)
    assert found.best.ns < found.now_ns / 2
    job.machine(10, cpus=1, got=1.0)
    assert not [e for e in bound(job).edits if e.kind == "parallel"]


def test_what_is_drawn_anew_is_not_cached() -> None:
    """A cache would freeze it."""
    job = mapped(line=3)
    text = "import tensorflow as tf\n\ndef augment(x):\n    return x + tf.random.uniform(())\n"
    job.sources[SCRIPT] = placed(text, MAKING)
    assert not [e for e in bound(job).edits if e.kind == "cache"]


def test_edits_never_make_the_model_slower() -> None:
    """Each edit is there because it gains."""
    for job in (mapped(), mapped(shuffled=True), filtered(8)):
        found = bound(job)
        paces = [found.now_ns, *(e.after.ns for e in found.edits)]
        assert all(later < earlier for earlier, later in itertools.pairwise(paces))


def placed(text: str, lines: dict[int, str]) -> str:
    """A text with further lines, each at its number."""
    found = text.split("\n")
    for number, line in lines.items():
        found += [""] * (number - len(found))
        found[number - 1] = line
    return "\n".join(found)


MAKING = {70: "d = D.from_tensor_slices(x)", 72: "d = d.map(f)", 73: "d = d.batch(32)", 74: "d = d.repeat()"}
"""The lines of ``mapped``."""


@pytest.mark.parametrize(
    ("lines", "edits"),
    [
        (MAKING | {75: "d = d.prefetch(1)"}, ["cache() after batch"]),
        (MAKING | {72: "d = d.apply(mapped(f))"}, ["cache() after batch"]),
        (MAKING | {73: "model.fit(d, epochs=3)", 74: "d"}, []),
        ({70: "model.fit(", 71: "    x,", 72: "    y)"}, None),
        ({70: "d = images_of('folder')", 72: "run(model)", 73: "model.predict(rows)", 75: "# map, batch"}, None),
        ({}, None),
    ],
    ids=["own", "applied", "batched by fit", "made by fit", "made by a library", "no call"],
)
def test_an_edit_is_of_a_call_in_the_users_text(lines: dict[int, str], edits: list[str] | None) -> None:
    """A dataset of Keras has the line of ``fit``, which no edit changes; where all are such, nothing is said."""
    job = mapped()
    job.sources[SCRIPT] = placed("import tensorflow as tf", lines)
    view = steps_view.of(job.view())
    assert view is not None
    found = view.get(input_bound.build)
    assert (None if found is None else [one.text for one in found.edits]) == edits


@pytest.mark.parametrize(("waited", "took"), [(12, 60), (30, 60), (60, 300)])
def test_no_edit_gains_more_than_the_wait(waited: int, took: int) -> None:
    """The rest of the steps stays on a machine with a free CPU, also where some are much shorter than most."""
    job = mapped(took=took * MS)
    job.records = []
    job.function().every(PERIOD, 80, dur=(80 - waited) * MS, start=waited * MS)
    job.nexts().every(PERIOD, 80, dur=waited * MS, arg=1)
    short = (waited + 2) * MS
    job.function().every(short, 20, dur=1 * MS, start=80 * PERIOD + waited * MS)
    job.nexts().every(short, 20, dur=waited * MS, start=80 * PERIOD, arg=1)
    job.machine(12, cpus=2, got=0.8)
    found = bound(job)
    rest = found.work.wall_ns - waited * MS
    assert found.work.layout.consumer.step_ns == pytest.approx(rest, rel=0.01)
    assert found.best.ns >= 0.99 * rest


@pytest.mark.parametrize("took", [1 * MS, 20 * MS, 400 * MS])
def test_a_model_that_misses_the_run_proposes_nothing(took: int) -> None:
    """Stages of 1 ms do not explain a wait of 60 ms on a machine with free CPUs, nor do stages of 400 ms."""
    job = mapped(took=took)
    job.machine(10, cpus=4, got=0.3 if took < 100 * MS else 4.0)
    found = bound(job)
    assert (found.fits, found.edits) == (False, ())
    job = mapped(took=80 * MS)
    job.machine(10, cpus=4, got=1.25)
    assert bound(job).fits
