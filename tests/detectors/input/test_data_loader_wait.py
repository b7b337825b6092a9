"""INP015 data-loader-wait: its fixtures, and what a device hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.derive.sessions import MS, SCRIPT, Job, S, filled
from tests.detectors.asking import find
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.jobs import nothing

from stepscope.causes.input import data_loader_wait
from stepscope.derive import steps_view, unmeasured
from stepscope.derive.view import SessionView
from stepscope.detectors.input.data_loader_wait import DETECTOR
from stepscope.model.log.program import DataLoaderMade
from stepscope.model.records import GpuTable
from stepscope.model.session.session import HostInfo
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

STEP = 100 * MS
STEPS = 200


def torch_job(
    wait: int, *, workers: int = 0, busy: int | None = None, second: int = 0, batch: int = 32, own: bool = True
) -> Job:
    """A training whose optimizer steps once in 100 ms, after a ``next`` of ``wait``.

    Args:
        wait: in the loader's ``next``, ns.
        workers: the loader's.
        busy: percent of the time in which the job's GPU computes; None: it has none.
        second: steps of another optimizer at another line, in the same steps.
        batch: samples of a batch.
        own: the dataset is the user's.
    """
    job = Job(host=HostInfo(cpus=8))
    job.framework("torch", "2.11.0")
    made = job.iterator(batch=batch)
    about: dict[str, Foreign] = {"file": SCRIPT, "line": 30, "function": "main"}
    about |= {"fn_name": "Set.__getitem__", "fn_file": SCRIPT, "fn_line": 12} if own else {}
    job.event(DataLoaderMade(id=made, workers=workers, batch=batch, **about))
    taken = job.call(Kind.NEXT, "next", call_file=SCRIPT, call_line=30, call_function="main")
    taken.every(STEP, STEPS, dur=wait, arg=made)
    place: dict[str, Foreign] = {"role": "optimizer", "call_file": SCRIPT, "call_function": "main"}
    job.call(Kind.APPLY, "optimizer step", call_line=40, **place).every(STEP, STEPS, dur=0, start=90 * MS)
    if second:
        job.call(Kind.APPLY, "optimizer step", call_line=38, **place).every(STEP, second, dur=0, start=80 * MS)
    if busy is not None:
        at = np.arange(STEPS * STEP // S + 1, dtype=np.int64) * S
        zero = at * 0
        columns = {"at_ns": at, "busy_percent": zero + busy, "job_reserved_bytes": zero + 1, "total_bytes": zero + 9}
        job.resources["gpus"] = filled(GpuTable, len(at), **columns)
        job.resources["resource_names"] = ("gpu:0 H100",)
    return job


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
