"""INP017 restarted-loader-workers: its fixtures, and waits at the same place that are something else."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from tests.derive.sessions import MS, S
from tests.detectors.asking import find
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.jobs import nothing
from tests.detectors.loader_jobs import LOOP, LoaderJob, Pass, training

from stepscope.causes.input import restarted_loader_workers
from stepscope.causes.system import contention
from stepscope.derive import steps_view
from stepscope.detectors.input.restarted_loader_workers import DETECTOR
from stepscope.diagnosis.analyze import report_of
from stepscope.report.brief import verdict_words
from stepscope.tables.findings import Finding
from stepscope.tables.records import CHILD
from stepscope.wire.kinds import Kind

STEADY = 5800 * MS
"""58 of 60 steps, without restarts."""
RESTARTS = 5 * 1300 * MS

FIXTURES = Fixtures(
    firing=training,
    expected=Expected(
        severity="high",
        cost=RESTARTS / (STEADY + RESTARTS),
        where=(("train.py", LOOP),),
        metrics=("restart_ratio", "between_steps_ratio", "restart_ns", "pass_ns", "restarts", "workers"),
        title=("each pass starts the DataLoader's workers again", " a pass, 53 % of the time"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="keep-loader-workers",
        per_step=RESTARTS // 58,
    ),
    silent=lambda: training(persistent=True, kept=True),
    not_applicable=nothing,
    missing="steps",
    below=lambda: training(Pass(start=100 * MS, stop=95 * MS)),
    at=lambda: training(Pass(start=115 * MS, stop=100 * MS)),
    edges={
        "min_of_pass": Edge(
            below=lambda: training(Pass(start=670 * MS)),
            at=lambda: training(Pass(start=720 * MS)),
            shows="fewer-loader-workers",
        )
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def ids(job: LoaderJob) -> list[str]:
    """The remedies of its finding; empty without one."""
    return [remedy.id for found in look(DETECTOR, job)[0] for remedy in found.remedies]


def told(job: LoaderJob) -> list[str]:
    """The codes of all findings above information."""
    return [found.code for found in find(job) if found.severity != "info"]


def refs(findings: Iterable[Finding]) -> set[str]:
    """What their evidence is about."""
    return {ref for found in findings for evidence in found.evidence for ref in evidence.refs}


def built(job: LoaderJob) -> restarted_loader_workers.Restarts:
    """The restarts of a job that has some."""
    view = steps_view.of(job.view())
    assert view is not None
    found = restarted_loader_workers.build(view)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "job",
    [
        lambda: training(passes=1),
        lambda: training(workers=0),
        lambda: training(Pass(start=20 * MS, stop=10 * MS), spawn=False),
        lambda: training(Pass(start=20 * MS, first=1500 * MS, stop=10 * MS), spawn=False),
        lambda: training(Pass(start=60 * MS, first=1500 * MS, stop=10 * MS)),
        lambda: training(Pass(first=1500 * MS, stop=0), persistent=True, kept=True),
    ],
    ids=["one-pass", "no-workers", "cheap-forks", "slow-batch-of-forks", "slow-batch", "slow-batch-of-kept-workers"],
)
def test_what_is_no_restart(job: Callable[[], LoaderJob]) -> None:
    """Workers start once, in no time, or there are none; or the first batch of a pass takes long to make."""
    findings, checked = look(DETECTOR, job())
    assert (findings, checked.outcome) == ((), "clear")


def test_a_slow_first_batch_is_in_the_upper_end_only() -> None:
    """What the first next waits after the imports is no sure cost: workers that stay may take it, too."""
    found = built(training(Pass(first=1500 * MS, imports=900 * MS)))
    assert found.each_ns == pytest.approx(1700 * MS, abs=20 * MS)
    assert found.high - found.ratio == pytest.approx(5 * 1098 * MS / (STEADY + 5 * 2798 * MS), abs=0.01)


def test_a_small_dataset_lets_the_first_next_wait_for_the_imports() -> None:
    """It fits into a pipe: the process does not wait in the loader's start, and the wait is told once."""
    job = training(Pass(start=40 * MS, first=1500 * MS, imports=1450 * MS))
    assert told(job) == ["INP017"]
    assert built(job).each_ns == pytest.approx(1790 * MS, abs=30 * MS)


def test_slow_first_batches_are_still_told_by_another() -> None:
    """INP010 tells the wait where it is not the workers' start."""
    job = training(Pass(start=20 * MS, first=1500 * MS, stop=10 * MS), spawn=False)
    assert "INP010" in told(job)
    assert "INP017" not in told(job)


@pytest.mark.parametrize(
    ("job", "offered"),
    [
        (training, ["keep-loader-workers", "fewer-loader-workers", "fork-loader-workers"]),
        (lambda: training(spawn=False), ["keep-loader-workers", "fewer-loader-workers"]),
        (lambda: training(Pass(batches=40)), ["keep-loader-workers", "fork-loader-workers"]),
        (lambda: training(persistent=True), ["one-loader", "fewer-loader-workers", "fork-loader-workers"]),
        (lambda: training(workers=4), ["keep-loader-workers", "fewer-loader-workers", "fork-loader-workers"]),
    ],
    ids=["spawn", "fork", "long-passes", "a-loader-in-each-pass", "four"],
)
def test_remedies(job: Callable[[], LoaderJob], offered: list[str]) -> None:
    """Each where it can work; more workers are none."""
    assert ids(job()) == offered


def test_loaders_that_one_line_takes_are_told_apart() -> None:
    """A function that trains and validates takes both: each loader's first start stays, and no other."""
    job = training(validation=Pass(start=500 * MS, stop=200 * MS, batches=3, trains=False))
    found = built(job)
    assert [made.workers for made in found.loaders] == [2, 1]
    assert sorted(one.made.id for one in found.every) == [1] * 5 + [2] * 4
    assert told(job) == ["INP017"]


def test_validation_alone() -> None:
    """The loader that trains keeps its workers, the other one does not: only the second is counted."""
    job = training(kept=True, persistent=True, validation=Pass(start=900 * MS, batches=3, trains=False))
    found = built(job)
    assert {one.made.id for one in found.every} == {2}
    assert ids(job)[0] == "keep-loader-workers"


def test_loops_that_are_left_early() -> None:
    """No next finds the loader's end, and the start of the next pass is known by its workers."""
    job = training(Pass(left=True))
    assert len(built(job).every) == 5
    assert built(job).each_ns == pytest.approx(1 * S, abs=20 * MS)
    assert told(job) == ["INP017"]


def test_an_iterator_that_is_made_ahead() -> None:
    """What the program does between the workers' start and the first next is the program's."""
    found = built(training(Pass(start=400 * MS, stop=100 * MS, ahead=2 * S)))
    assert found.each_ns == pytest.approx(500 * MS, abs=20 * MS)
    assert found.high - found.low < 0.02


def test_the_report_tells_it_once() -> None:
    """No general finding tells of the time that it explains, and the verdict is the finding's."""
    job = training(validation=Pass(start=900 * MS, stop=200 * MS, batches=3, trains=False))
    report = report_of(job.session())
    assert [f.code for f in report.findings if f.severity != "info"] == ["INP017"]
    assert [f.code for f in report.findings if f.code in {"GEN012", "GEN013"}] == []
    assert verdict_words.text(report).startswith("Each pass starts the DataLoader's workers again")


def test_without_samples_the_workers_say_it() -> None:
    """When each began to run, had started and had imported is known all the same; general findings tell none of it."""
    job = training(Pass(start=300 * MS, first=1500 * MS, imports=1400 * MS))
    job.records = [record for record in job.records if record.kind != Kind.SAMPLE]
    report = report_of(job.session())
    assert [f.code for f in report.findings if f.code in {"INP010", "INP015", "INP017"}] == ["INP017"]
    assert "phase:between-steps" not in refs(f for f in report.findings if f.code == "GEN013")
    assert built(job).each_ns == pytest.approx((225 + 1250 + 300) * MS, abs=10 * MS)


@pytest.mark.parametrize("cores", [0.3, 0.6])
def test_measured_workers_are_no_companions(cores: float) -> None:
    """Workers that are spawned are measured as well: their time is that of the loaders, and taken off once."""
    job = training()
    seconds = job.now // S
    job.machine(seconds, cpus=2, got=0.5, waiting=0.5, others=cores + 0.2)
    job.rival("python train.py", cores=cores, seconds=seconds, pid=500, child=CHILD)
    used = job.view().get(contention.build)
    assert used is not None
    assert used.rivals == ()
    assert used.fed == pytest.approx(cores, abs=0.01)
    assert used.others == pytest.approx(0.2, abs=0.01)
