"""INP015 data-loader-wait: its fixtures, and what a device hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, Job, S
from tests.detectors.asking import find
from tests.detectors.data_loader_jobs import STEP, STEPS, torch_job
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.framework_jobs import pytorch
from tests.detectors.jobs import nothing
from tests.detectors.member_jobs import member

from stepscope.causes.input import data_loader_wait
from stepscope.causes.system import contention
from stepscope.derive import steps_view, unmeasured
from stepscope.derive.view import SessionView
from stepscope.detectors.base import run
from stepscope.detectors.input.data_loader_wait import DETECTOR
from stepscope.detectors.registry import ALL
from stepscope.diagnosis.analyze import report_of
from stepscope.model.log.program import DataLoaderMade
from stepscope.model.session.member import MemberInfo
from stepscope.model.session.session import HostInfo
from stepscope.tables.records import CHILD
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable


INP015 = next(one for one in ALL if one.code == DETECTOR.code)


def view(wait: int, *, workers: int = 0, busy: int | None = None, second: int = 0) -> SessionView:
    """The same, as a detector sees it."""
    return torch_job(wait, workers=workers, busy=busy, second=second).view()


FIXTURES = Fixtures(
    firing=lambda: torch_job(60 * MS),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 12), ("train.py", 30)),
        metrics=("wait_ratio", "lost_ratio", "next_ns", "workers"),
        title=("makes each batch in the training process", "60 ms", "60 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="loader-workers",
    ),
    silent=lambda: torch_job(2 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: torch_job(14_900_000),
    at=lambda: torch_job(15_100_000),
    edges={
        "max_cheap_row": Edge(
            below=lambda: torch_job(60_100_000, batch=1200),
            at=lambda: torch_job(59_900_000, batch=1200),
            shows="batched-rows",
        )
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_workers_have_another_remedy() -> None:
    """A loader that has workers is not told to get some."""
    (found,) = look(DETECTOR, torch_job(60 * MS, workers=3))[0]
    assert "too few or too slow workers (3 processes)" in found.title
    assert [one.id for one in found.remedies] == ["more-loader-workers", "less-work-per-sample"]


@pytest.mark.parametrize(("busy", "lost"), [(None, 0.6), (0, 0.6), (30, 0.6), (80, 0.2), (100, 0.0)])
def test_what_a_device_computes_through_is_not_lost(busy: int | None, lost: float) -> None:
    """The program may run ahead of its device: a wait that the device hides costs nothing."""
    with_steps = steps_view.of(view(60 * MS, busy=busy))
    assert with_steps is not None
    found = data_loader_wait.build(with_steps)
    assert found is not None
    assert found.ratio == pytest.approx(0.6, abs=0.01)
    assert found.lost_ratio == pytest.approx(lost, abs=0.01)


def test_a_step_is_a_step_of_one_optimizer() -> None:
    """Another optimizer at another line makes no further steps; samples are the loader's batches."""
    steps = torch_job(10 * MS, second=STEPS).steps()
    assert len(steps) == STEPS
    assert float(np.median(steps.durations)) == STEP
    assert set(steps.samples[steps.steady].tolist()) == {32}


def test_nothing_is_concluded_from_calls_that_are_not_measured() -> None:
    """The rest of such a step is PyTorch's work and Python: no share of it is said to be Python's."""
    found = view(60 * MS)
    assert unmeasured.framework(found) == "PyTorch"
    assert found.anatomy is not None
    assert found.anatomy.ratio("input-wait") == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize(("busy", "codes"), [(0, ["INP015"]), (95, [])])
def test_the_wait_for_a_loader_is_told_once_and_only_where_it_is_lost(busy: int, codes: list[str]) -> None:
    """INP001 tells of TensorFlow's pipelines: its remedies are none here, and a device may hide the wait."""
    job = torch_job(60 * MS, busy=busy)
    assert [one.code for one in find(job) if one.severity != "info"] == codes


@pytest.mark.parametrize(
    ("batch", "workers", "first"),
    [
        (1024, 0, "loader-workers"),  # 59 us a row
        (1500, 0, "batched-rows"),  # 40 us
        (8192, 0, "batched-rows"),
        (8192, 2, "more-loader-workers"),  # others make them: the time of a row is not known
    ],
)
@pytest.mark.parametrize("own", [False, True])
def test_rows_that_cost_only_their_python_get_no_workers(*, batch: int, workers: int, first: str, own: bool) -> None:
    """Each worker would run the same Python; the dataset is to give whole batches."""
    (found,) = look(DETECTOR, torch_job(60 * MS, batch=batch, workers=workers, own=own))[0]
    ids = [one.id for one in found.remedies]
    assert ids[0] == first
    assert ("loader-workers" in ids) == (first == "loader-workers")
    assert (found.where[0].line, len(found.where)) == ((12, 2) if own else (30, 1))


@pytest.mark.parametrize(("cpus", "others", "told"), [(8, 0.5, "=4"), (3, 0.5, "=2"), (2, 0.2, "=1"), (2, 0.9, "")])
def test_workers_are_proposed_where_cpus_are_for_them(*, cpus: int, others: float, told: str) -> None:
    """One for each CPU but that of the process that trains, at most four; none where no CPU is idle."""
    job = torch_job(60 * MS)
    job.host = HostInfo(cpus=cpus)
    job.machine(STEPS // 10, cpus=cpus, got=1.0, others=others)
    (found,) = look(DETECTOR, job)[0]
    said = [one.text for one in found.remedies if one.id == "loader-workers"]
    assert [f"num_workers{told}," in text for text in said] == ([True] if told else [])


def fed(
    *,
    workers: int = 2,
    cores: float = 0.9,
    idle: int = 0,
    code: str = "np.linalg.qr(x)",
    fn: str = "Set.__iter__",
    runnable: int = -1,
    others: float = 0.0,
) -> Job:
    """Steps on four CPUs that wait for a loader whose workers use ``cores`` each, but for ``idle`` of them.

    ``others``: CPUs that other programs use.
    """
    job = torch_job(60 * MS, workers=workers)
    job.events = [replace(e, fn_name=fn) if isinstance(e, DataLoaderMade) else e for e in job.events]
    job.host = HostInfo(cpus=4)
    seconds, busy = STEPS // 10, workers - idle
    job.machine(seconds, cpus=4, got=0.1, others=busy * cores + others)
    for number in range(workers):
        job.child(500 + number, f"Process Process-{number + 1}", line=30)
        if number < busy:
            about = {"pid": 500 + number, "child": CHILD, "runnable": runnable}
            job.rival("python train.py", cores=cores, seconds=seconds, **about)
    job.ended_ns = seconds * S
    job.sources[SCRIPT] = code
    return job


@pytest.mark.parametrize(
    ("cores", "code", "first"),
    [
        (1.9, "np.linalg.qr(x)", "one-thread-per-worker"),
        (1.9, "cv2.resize(x)", "one-thread-per-worker"),
        (1.9, "Image.open(x)", "less-work-per-sample"),  # no library that starts threads
        (0.6, "np.linalg.qr(x)", "more-loader-workers"),  # CPUs are idle
    ],
)
def test_workers_that_take_all_cpus_are_not_to_be_more(cores: float, code: str, first: str) -> None:
    """One thread for each, where their library starts more; none of this job's remedies is for its workers to go."""
    (found,) = look(DETECTOR, fed(cores=cores, code=code))[0]
    assert found.remedies[0].id == first
    assert ("take all CPUs" in found.title) == (cores > 1)
    assert (found.cost.low == 0) == (cores > 1)


def test_workers_that_others_leave_few_cpus_do_not_take_all() -> None:
    """They get what other programs leave them: none is idle, and more workers gain as little."""
    (found,) = look(DETECTOR, fed(cores=0.75, others=2.3))[0]
    assert "waits for 2 workers that get 1.5 of 4 CPUs: none is idle" in found.title


def test_the_wait_settles_no_other_part_of_the_step() -> None:
    """What the steps compute is not explained by the loader."""
    ledger = report_of(fed().session()).ledger
    settled = {entry.component: entry.code for entry in ledger if entry.component in {"input-wait", "other-python"}}
    assert settled["input-wait"] == "INP015"
    assert settled["other-python"] != "INP015"


@pytest.mark.parametrize(
    ("code", "runnable", "first"),
    [
        ("prepare(x)", 2, "one-thread-per-worker"),  # whose library it is, the source need not say
        ("prepare(x)", 4, "one-thread-per-worker"),
        ("np.linalg.qr(x)", 1, "less-work-per-sample"),  # each has one thread already
        ("prepare(x)", -1, "less-work-per-sample"),
    ],
)
def test_threads_that_were_seen_say_more_than_the_source(code: str, runnable: int, first: str) -> None:
    """Where workers take all CPUs, each with several threads that could run, one thread for each is the remedy."""
    (found,) = look(DETECTOR, fed(cores=1.9, code=code, runnable=runnable))[0]
    assert found.remedies[0].id == first
    seen = [one.value for one in found.evidence if one.metric == "worker_threads"]
    assert seen == ([runnable] if runnable >= 0 else [])


@pytest.mark.parametrize("cores", [0.6, 0.9, 1.9])
def test_workers_are_no_companions(cores: float) -> None:
    """CFG001 is about others: training needs the processes that make its batches."""
    job = fed(cores=cores)
    with_steps = steps_view.of(job.view())
    assert with_steps is not None
    used = with_steps.get(contention.build)
    assert used is not None
    assert used.rivals == ()
    assert used.others == pytest.approx(0, abs=0.01)
    assert used.fed == pytest.approx(2 * cores)
    assert "CFG001" not in [one.code for one in find(job)]


@pytest.mark.parametrize(
    ("workers", "idle", "fn", "title"),
    [
        (2, 1, "", "has work for 1 of its 2 workers"),
        (4, 3, "Set.__iter__", "has work for 1 of its 4 workers"),
        (4, 0, "Set.__iter__", "has too few or too slow workers (4 processes)"),
        (2, 1, "Set.__getitem__", "has too few or too slow workers (2 processes)"),  # each is given as many rows
    ],
)
def test_workers_without_work_get_work_not_more_workers(workers: int, idle: int, fn: str, title: str) -> None:
    """Each worker of an iterable dataset reads its own part: without enough shards some have none."""
    (found,) = look(DETECTOR, fed(workers=workers, idle=idle, cores=0.3, fn=fn))[0]
    assert title in found.title
    assert (found.remedies[0].id == "split-among-workers") == ("has work" in title)
    assert ("more-loader-workers" in [one.id for one in found.remedies]) == ("too few" in title)


@pytest.mark.parametrize(
    ("line", "argument"),
    [
        ("Trainer(model, TrainingArguments('out')).train()", "dataloader_num_workers=3"),
        ("for batch in loader: step(batch)  # TrainingArguments", " DataLoader(num_workers=3"),
        ("trainer.fit(model, loader)", " DataLoader(num_workers=3"),
    ],
)
def test_the_trainer_of_transformers_has_its_own_argument(line: str, argument: str) -> None:
    """There the program makes no DataLoader."""
    job = torch_job(60 * MS)
    job.host = HostInfo(cpus=4)
    job.sources[SCRIPT] = 29 * "\n" + line
    (found,) = look(DETECTOR, job)[0]
    assert argument in found.remedies[0].text


@pytest.mark.parametrize(
    ("job", "outcome"),
    [
        (lambda: torch_job(2 * MS), "clear"),
        (pytorch, "not-applicable"),
        (lambda: pytorch(tensorflow=True), "not-applicable"),
    ],
)
def test_nothing_is_clear_where_no_batch_was_seen(job: Callable[[], Job], outcome: str) -> None:
    """A loop over another library's loader: what it waits for is not known."""
    ((one,),) = run([INP015], job().view())[1:2]
    assert one.outcome == outcome
    assert ("only waits for a DataLoader are seen" in one.hint) == (outcome != "clear")


@pytest.mark.parametrize("every", [4, 6])
def test_batches_that_come_several_at_a_time_are_one_finding(every: int) -> None:
    """Workers that deliver together make a periodic stall: it is the same wait."""
    job = torch_job(MS, workers=every)
    job.records = [
        record._replace(dur_ns=90 * MS) if record.kind == Kind.NEXT and record.start_ns // STEP % every == 0 else record
        for record in job.records
    ]
    found, _, _ = run(ALL, job.view())
    assert [one.code for one in found if one.severity != "info"] == ["INP015"]


def equal(*waits: int) -> SessionView:
    """Processes with the same steps."""
    jobs = [torch_job(wait) for wait in waits]
    for number, job in enumerate(jobs):
        job.pid = 100 + number
    return SessionView(msgspec.structs.replace(jobs[0].session(), workers=tuple(job.worker() for job in jobs)))


@pytest.mark.parametrize(("waits", "said"), [((60, 60), "in 2 of 2 processes"), ((60, 5, 50), "in 2 of 3 processes")])
def test_equal_processes_are_looked_at_each(waits: tuple[int, ...], said: str) -> None:
    """One finding, which says in how many the steps wait so."""
    found, _, _ = run([INP015], equal(*(wait * MS for wait in waits)))
    assert found[0].title.endswith(said)


@pytest.mark.parametrize("slow", [0, 1])
def test_the_loader_of_the_slow_rank_is_found(slow: int) -> None:
    """The others wait for it in their exchange; the report looks at the first."""
    jobs = [torch_job((60 if rank == slow else 20) * MS) for rank in (0, 1)]
    workers = [
        replace(job.worker().info, pid=100 + rank, key=str(rank), member=rank_of(rank)) for rank, job in enumerate(jobs)
    ]
    made = [msgspec.structs.replace(job.worker(), info=info) for job, info in zip(jobs, workers, strict=True)]
    view = SessionView(msgspec.structs.replace(jobs[0].session(), workers=tuple(made)))
    found, _, _ = run([INP015], view)
    assert found[0].title.startswith(f"rank {slow}: the DataLoader")
    assert found[0].cost.ratio == pytest.approx(0.6, abs=0.01)


def rank_of(rank: int) -> MemberInfo:
    """A rank of torchrun."""
    return member(rank, 2, launcher="torchrun", role="rank")
