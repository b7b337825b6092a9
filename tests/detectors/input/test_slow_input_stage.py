"""INP001 slow-input-stage: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, US, Job, node
from tests.detectors.asking import find
from tests.detectors.fit_jobs import filtered, on_batch, read_models
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import HANDOVER, MAIN_CALL, PERIOD, STEPS, keras_fit, nothing, pulled
from tests.detectors.resource_jobs import gpu_steps

from stepscope.causes.input import input_bound
from stepscope.derive import steps_view
from stepscope.detectors.base import run
from stepscope.detectors.input.slow_input_stage import DETECTOR
from stepscope.detectors.registry import ALL
from stepscope.model.log.events import ChildStarted, DatasetMade
from stepscope.model.log.program import Setting
from stepscope.wire.kinds import Flag


def handed_on(name: str, *, rows: int = 1, child: str = "", faster: int = 1) -> Job:
    """Steps wait for a stage that makes batches of so many rows.

    ``child``: another process that the job started; ``faster``: than steps of 100 ms.
    """
    period, wait = PERIOD // faster, 60 * MS // faster
    job = Job()
    iterator = job.iterator(job.dataset(f"{name}Dataset", line=70), batch=rows)
    job.function(**MAIN_CALL).every(period, STEPS, dur=20 * MS // faster, start=wait)
    job.nexts().every(period, STEPS, dur=wait, arg=iterator)
    for batches in (50, 90):
        stage = node(1, name, 2, elements=batches, busy=batches * wait)
        source = node(2, "TensorSlice", elements=batches * rows, busy=batches * rows * US)
        job.model(iterator, batches * period, [stage, source])
    if child:
        job.event(ChildStarted(pid=7, command=child))
    return job


FIXTURES = Fixtures(
    firing=lambda: pulled(60 * MS),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 71), ("train.py", 15)),
        metrics=("input_wait_ratio", "stage_ns_per_batch", "stage_ns_per_element", "stage_parallelism"),
        title=("map stage decode", "60 ms per batch", "train.py:71", "60 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="parallel-map",
    ),
    silent=lambda: pulled(2 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: pulled(15 * MS + HANDOVER - US),
    at=lambda: pulled(15 * MS + HANDOVER),
    edges={
        "min_rows": Edge(
            below=lambda: handed_on("Batch", rows=255, faster=25),
            at=lambda: handed_on("Batch", rows=256, faster=25),
            shows="batches-not-rows",
        ),
        "max_row_ns": Edge(
            below=lambda: handed_on("Batch", rows=6_000),
            at=lambda: handed_on("Batch", rows=6_001),
            shows="batches-not-rows",
        ),
        "max_left_ratio": Edge(below=lambda: filtered(45), at=lambda: filtered(44), shows="filter-first"),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_input_inside_of_a_compiled_step_is_found() -> None:
    """The same fit whose compiled step waits for its input is input-bound, by tf.data's own model."""
    job = read_models(keras_fit(90 * MS), wait=60 * MS)
    (found,) = find(job)
    assert (found.code, found.severity) == ("INP001", "high")
    assert found.cost.ratio == pytest.approx(0.6, abs=0.001)


def test_input_that_the_step_hides_is_undecided() -> None:
    """Keras' compiled step without a model of its input is neither clear nor found, and the reason is given."""
    _, checked, _ = run(ALL, keras_fit(90 * MS).view())
    outcomes = {c.detector: c for c in checked}
    assert outcomes["INP001"].outcome == "undecided"
    assert outcomes["INP001"].missing == ("measurement of the input wait inside the compiled step",)
    assert outcomes["INP001"].hint


def test_an_eager_step_hides_no_input() -> None:
    """With run_eagerly the input is pulled in Python, so nothing is undecided."""
    job = keras_fit(90 * MS)
    job.compiled(run_eagerly=True)
    _, checked, _ = run(ALL, job.view())
    assert {c.detector: c.outcome for c in checked}["INP001"] == "clear"


def test_input_of_train_on_batch_is_not_hidden() -> None:
    """The wait of a loop around train_on_batch is in its own next and is found."""
    assert [f.code for f in find(on_batch(60 * MS, 20 * MS))] == ["INP001"]


def outcome(job: Job, code: str) -> str:
    """What became of one detector."""
    _, checked, failures = run(ALL, job.view())
    assert failures == ()
    return {c.detector: c.outcome for c in checked}[code]


def test_a_busy_train_on_batch_is_clear() -> None:
    """train_on_batch has its arrays in hand: its compiled function cannot hide a wait for input."""
    assert outcome(on_batch(2 * MS, 90 * MS), "INP001") == "clear"


@pytest.mark.parametrize("by", ["Filter", "Skip", "Shard"])
def test_what_is_thrown_away_should_not_be_made(by: str) -> None:
    """56 of 64 elements are thrown away behind the map: do that first, and it is a place."""
    (found,) = find(filtered(8, by=by))
    assert found.code == "INP001"
    assert found.remedies[0].id == f"{by.lower()}-first"
    assert f"{by.lower()} (line 72) drops 88 % of the elements" in found.title
    assert ("train.py", 72) in [(p.file, p.line) for p in found.where]


@pytest.mark.parametrize(("left", "drops"), [(8, False), (2, True)])
def test_a_filter_of_batches_drops_what_it_drops_of_these(left: int, *, drops: bool) -> None:
    """64 elements become 8 batches, of which it leaves all, or a quarter: the batch drops none."""
    job = Job()
    mapped = job.dataset("MapDataset", job.dataset("RangeDataset", line=70), line=71, fn_name="decode")
    iterator = job.iterator(job.dataset("FilterDataset", job.dataset("BatchDataset", mapped, line=72), line=73))
    job.function(**MAIN_CALL).every(PERIOD, STEPS, dur=20 * MS, start=60 * MS)
    job.nexts().every(PERIOD, STEPS, dur=60 * MS, arg=iterator)
    for batches in (50, 90):
        nodes = [
            node(1, "Filter", 2, elements=batches, busy=batches * MS),
            node(2, "Batch", 3, elements=batches * 8 // left, busy=batches * MS),
            node(3, "Map", 4, elements=batches * 64 // left, busy=batches * 60 * MS),
            node(4, "Range", elements=batches * 64 // left, busy=batches),
        ]
        job.model(iterator, batches * PERIOD, nodes)
    (found,) = find(job)
    assert found.code == "INP001"
    assert ("drops" in found.title) == drops
    assert ("filter-first" in [remedy.id for remedy in found.remedies]) == drops


def test_a_filter_of_another_input_drops_nothing_of_this_one() -> None:
    """Of two that are zipped, the one with the slow map has no filter behind it."""
    job = Job()
    slow = job.dataset("MapDataset", job.dataset("RangeDataset", line=70), line=71, fn_name="decode")
    other = job.dataset("FilterDataset", job.dataset("RangeDataset", line=74), line=75)
    iterator = job.iterator(job.dataset("ZipDataset", other, slow, line=76))
    job.function(**MAIN_CALL).every(PERIOD, STEPS, dur=20 * MS, start=60 * MS)
    job.nexts().every(PERIOD, STEPS, dur=60 * MS, arg=iterator)
    for batches in (50, 90):
        nodes = [
            node(1, "Zip", 2, 4, elements=batches, busy=batches * MS),
            node(2, "Filter", 3, elements=batches, busy=batches * MS),
            node(3, "Range", elements=batches * 8, busy=batches),
            node(4, "Map", 5, elements=batches, busy=batches * 60 * MS),
            node(5, "Range", elements=batches, busy=batches),
        ]
        job.model(iterator, batches * PERIOD, nodes)
    (found,) = find(job)
    assert found.code == "INP001"
    assert "drops" not in found.title


def test_a_filter_that_takes_what_the_map_makes_cannot_come_first() -> None:
    """It gets three values where the map gets one: the map is to be split, and no edit moves the filter."""
    job = filtered(8)
    parts = {"RangeDataset": 1, "MapDataset": 3, "FilterDataset": 3}
    job.events = [replace(e, parts=parts.get(e.cls, 0)) if isinstance(e, DatasetMade) else e for e in job.events]
    (found,) = find(job)
    assert found.remedies[0].id == "filter-between"
    assert "make first what the filter's condition needs" in found.remedies[0].text


@pytest.mark.parametrize("job", [filtered(60), filtered(8, before=True)], ids=["leaves-most", "before-the-map"])
def test_a_filter_that_saves_nothing_is_no_remedy(job: Job) -> None:
    """A filter that leaves nearly all, or that stands before the map already."""
    (found,) = find(job)
    assert "filter-first" not in [r.id for r in found.remedies]


@pytest.mark.parametrize(
    ("job", "remedy"),
    [
        (handed_on("Generator", child="ForkProcess ForkPoolWorker-1"), "smaller-batches-between-processes"),
        (handed_on("Generator", child="uname -p"), "prefetch"),
        (handed_on("Batch", rows=20_000), "batches-not-rows"),
        (handed_on("Batch", rows=64), "prefetch"),
    ],
    ids=["other-processes", "no-other-process", "many-rows", "few-rows"],
)
def test_a_stage_that_only_hands_on(job: Job, remedy: str) -> None:
    """Batches of other processes, and rows by the thousand, are told; nothing else is known of such a stage."""
    (found,) = find(job)
    assert (found.code, found.remedies[0].id) == ("INP001", remedy)


def test_a_service_makes_the_batches() -> None:
    """What hands them over takes no edit of this job's pipeline: more workers do, or less work for them."""
    job = handed_on("DataServiceDatasetV4")
    (found,) = find(job)
    assert "the tf.data service hands over a batch every 60 ms" in found.title
    assert [remedy.id for remedy in found.remedies] == ["more-service-workers", "mend-the-service"]
    view = steps_view.of(job.view())
    assert view is not None
    assert view.get(input_bound.build) is None


def one_thread(runs_as: str, made_as: str = "ParallelMapDataset") -> Job:
    """Op determinism is on, and steps wait for a map."""
    job = Job()
    job.event(Setting(name="op_determinism", value=True, file=SCRIPT, line=3, function="main"))
    mapped = job.dataset(made_as, line=71, fn_name="augment", fn_file=SCRIPT, fn_line=15, fn_end_line=18)
    iterator = job.iterator(job.dataset("BatchDataset", mapped, line=73, batch=8), batch=8)
    job.function(**MAIN_CALL).every(PERIOD, STEPS, dur=20 * MS, start=60 * MS)
    job.nexts().every(PERIOD, STEPS, dur=60 * MS, arg=iterator)
    for batches in (50, 90):
        batched = node(1, "Batch", 2, elements=batches, busy=batches * MS)
        job.model(iterator, batches * PERIOD, [batched, node(2, runs_as, elements=batches * 8, busy=batches * 60 * MS)])
    return job


@pytest.mark.parametrize(("passes", "told"), [("one", False), ("repeat", True), ("ended", True)])
def test_a_cache_that_take_cuts_short(passes: str, told: bool) -> None:
    """It would have helped where there is another pass: by repeat, or by another iterator."""
    job = Job()
    mapped = job.dataset("MapDataset", line=71, fn_name="augment", fn_file=SCRIPT, fn_line=15, cardinality=1000)
    taken = job.dataset("TakeDataset", job.dataset("CacheDataset", mapped, line=72, cardinality=1000), cardinality=900)
    if passes == "repeat":
        taken = job.dataset("RepeatDataset", taken, line=73)
    iterator = job.iterator(taken)
    job.function(**MAIN_CALL).every(PERIOD, STEPS, dur=20 * MS, start=60 * MS)
    nexts = job.nexts()
    nexts.every(PERIOD, STEPS, dur=60 * MS, arg=iterator)
    if passes == "ended":
        nexts.at(STEPS // 2 * PERIOD - MS, US, arg=iterator, flags=Flag.END)
    for batches in (50, 90):
        job.model(iterator, batches * PERIOD, [node(1, "Map", elements=batches, busy=batches * 60 * MS)])
    (found,) = find(job)
    assert (found.code, "never read to its end" in found.title) == ("INP001", told)


def test_a_map_that_op_determinism_takes_its_threads() -> None:
    """It was asked to run in parallel and does not: more of the same is no remedy, the setting is a place."""
    (found,) = find(one_thread("Map"))
    assert found.code == "INP001"
    assert "op determinism (train.py:3) makes it run one element at a time" in found.title
    assert [r.id for r in found.remedies][:2] == ["stateless-random", "batch-before-map"]
    assert ("train.py", 3) in [(p.file, p.line) for p in found.where]


@pytest.mark.parametrize("job", [one_thread("ParallelMapV2"), one_thread("Map", "MapDataset")], ids=["runs", "unasked"])
def test_op_determinism_is_not_why(job: Job) -> None:
    """The map runs in parallel all the same, for its function draws nothing, or nobody asked it to."""
    (found,) = find(job)
    assert found.code == "INP001"
    assert "determinism" not in found.title


def remedies(job: Job) -> list[str]:
    """What INP001 advises."""
    (found,) = (found for found in find(job) if found.code == "INP001")
    return [remedy.id for remedy in found.remedies]


@pytest.mark.parametrize(
    ("rates", "bound"),
    [({"got": 1.7}, False), ({"got": 1.8}, True), ({"got": 1.0, "quota": 1.0, "throttled": 0.8, "waiting": 1.0}, True)],
)
def test_cores_are_advised_where_they_are_the_bound(rates: dict[str, float], *, bound: bool) -> None:
    """A job that uses all of its CPUs gains nothing from threads; one that leaves some gains from them."""
    job = pulled(60 * MS)
    job.machine(10, cpus=2, **rates)
    advised = remedies(job)
    assert ("more-cores" in advised) is bound
    assert ("parallel-map" in advised) is not bound
    assert "on-the-device" not in advised


@pytest.mark.parametrize(("busy", "advised"), [(30, True), (95, False)])
def test_a_gpu_that_waits_can_do_the_maps_work(busy: int, *, advised: bool) -> None:
    """Moving a map into the model helps where a GPU is there and waits for it; replayed readings."""
    job = pulled(60 * MS)
    waiting = gpu_steps([busy] * 11)
    job.host, job.resources = waiting.host, waiting.resources
    assert ("on-the-device" in remedies(job)) is advised
