"""MEM001 memory-leak: its fixtures, and what looks like it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.derive.sessions import MS, SCRIPT, TRACED, Job, S
from tests.detectors.asking import codes, look
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import CALL, PERIOD, STEPS, train_loop
from tests.detectors.trend_jobs import MB, filling, leaking, remembering

from stepscope.derive.view import SessionView
from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.detectors.system.memory_leak import DETECTOR
from stepscope.model.log.memory import HeldValue, MemoryHeld
from stepscope.wire.kinds import Kind

LEAST_LEAK = 32 * MB // 80
"""Per step: of the ten seconds, samples from the first to the ninth lie within the steady steps."""
FIXTURES = Fixtures(
    firing=lambda: leaking(10 * MB),
    expected=Expected(
        severity="low",
        cost=800 * MB / 4096 * 1600 / 8e9,
        where=(("train.py", CALL),),
        metrics=(
            "bytes_per_step",
            "bytes_per_step_low",
            "bytes_per_step_high",
            "growth_bytes",
            "seconds_to_limit",
            "graphs_traced",
            "major_faults",
        ),
        title=("memory rises by 10", "memory leak", "reaches"),
        pipeline_stage="none",
        remedy="keep-numbers",
        basis="modelled",
    ),
    silent=lambda: filling(10 * MB, 60),
    not_applicable=lambda: train_loop(80 * MS),
    missing="samples of the process's memory",
    below=lambda: leaking(LEAST_LEAK - 1),
    at=lambda: leaking(LEAST_LEAK + 1),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize("until", [30, 50, 70])
def test_a_buffer_that_fills_is_no_leak(until: int) -> None:
    """Memory that rises and then stands still, early or late, is no leak."""
    assert codes(filling(20 * MB, until)) == []


def test_reserved_memory_that_is_touched_is_no_leak() -> None:
    """A buffer that was allocated whole and is filled step by step ends at its size: its address space stands still."""
    assert codes(remembering(lambda n: 400 * MB + 20 * MB * n, reserved=lambda _: 3000 * MB)) == []


def test_mapped_files_are_no_leak() -> None:
    """Pages of files that come in as they are read are the kernel's to take back."""
    job = leaking(20 * MB)
    grown = job.processes.rss_bytes - job.processes.rss_bytes[0]
    job.processes = msgspec.structs.replace(job.processes, shared_bytes=job.processes.shared_bytes + grown)
    assert codes(job) == []


def test_a_loop_that_predicts_may_keep_its_results() -> None:
    """Memory that rises while nothing is trained is undecided: results may be what the job is for."""
    findings, checked = look(remembering(lambda n: 400 * MB + 20 * MB * n, predicts=True))
    assert findings == ()
    assert checked["MEM001"].outcome == "undecided"


def predicting(kept: int) -> Job:
    """A loop that predicts and whose memory rises by 20 MiB a step; of each, a list keeps ``kept`` MiB."""
    job = remembering(lambda n: 400 * MB + 20 * MB * n, predicts=True)
    for at in (1, 5, 9):
        done = at * 10
        row = HeldValue(name="results", kind="list", bytes=kept * MB * done, count=done, file=SCRIPT, function="main")
        job.event(MemoryHeld(at=at * S, own_bytes=(400 + 20 * done) * MB, rows=(row,) if kept else ()))
    return job


def test_results_that_are_kept_are_information() -> None:
    """A loop that predicts and keeps its results does what it is for: the list is named, with the time to the limit."""
    (found,) = (f for f in look(predicting(18))[0] if f.code == "MEM001")
    assert found.severity == "info"
    assert "results are kept" in found.title
    assert "results in main keeps it: 90 entries" in found.title


def test_memory_that_no_variable_keeps_is_a_leak() -> None:
    """A loop that predicts whose memory rises, and no variable of which keeps it, leaks."""
    (found,) = (f for f in look(predicting(0))[0] if f.code == "MEM001")
    assert "memory leak" in found.title
    assert found.confidence < 0.85


def test_a_variable_that_keeps_what_a_training_leaves_is_named() -> None:
    """Where a training leaks, the variable that grew as much comes first."""
    job = leaking(20 * MB)
    for at in (1, 9):
        row = HeldValue(
            name="losses", kind="list", bytes=200 * MB * at, count=at, file=SCRIPT, function="main", line=CALL
        )
        job.event(MemoryHeld(at=at * S, own_bytes=(400 + 200 * at) * MB, rows=(row,)))
    (found,) = (f for f in look(job)[0] if f.code == "MEM001")
    assert "losses in main keeps it" in found.title
    assert found.remedies[0].id == "keep-numbers"


def test_a_saw_tooth_is_no_leak() -> None:
    """Memory that is given back now and then does not leak."""
    assert codes(remembering(lambda n: 400 * MB + 20 * MB * (n % 37))) == []


@pytest.mark.parametrize(("cardinality", "outcome"), [(100_000, "undecided"), (-2, "undecided"), (300, "found")])
def test_a_cache_in_its_first_pass_is_undecided(cardinality: int, outcome: str) -> None:
    """While a cache may still be filling nothing is said; memory that rises after the first pass is a leak."""
    job = leaking(20 * MB)
    source = job.dataset("TensorSliceDataset", line=70)
    cache = job.dataset("CacheDataset", source, line=71, cardinality=cardinality)
    iterator = job.iterator(job.dataset("BatchDataset", cache, line=72, batch=8), batch=8)
    job.nexts().every(PERIOD, STEPS, dur=MS, start=90 * MS, arg=iterator)
    assert look(job)[1]["MEM001"].outcome == outcome


def test_a_job_that_ran_out_of_memory_lost_its_work() -> None:
    """Killed with no memory left: what it did since its last checkpoint is the cost."""
    job = leaking(100 * MB, left=200 * MB)
    job.save().at(50 * PERIOD, MS)
    session = job.session()
    manifest = msgspec.structs.replace(session.manifest, exit_code=-9)
    view = SessionView(msgspec.structs.replace(session, manifest=manifest))
    (found,) = (f for f in run(ALL, view)[0] if f.code == "MEM001")
    assert found.symptom == "Memory: out of memory"
    assert found.severity == "high"
    assert found.cost.ratio == pytest.approx(0.5, abs=0.02)


def test_graphs_that_pile_up_are_named() -> None:
    """Where graphs are traced as memory rises, making them once is the first remedy."""
    job = leaking(20 * MB)
    for i in range(1, STEPS):
        job.trace(i * PERIOD, MS, cause="new-function", ordinal=1, function_key=i)
    job.records = [r._replace(flags=TRACED) if r.kind == Kind.FUNCTION else r for r in job.records]
    (found,) = (f for f in look(job)[0] if f.code == "MEM001")
    assert found.remedies[0].id == "make-once"


def test_trends_of_a_short_run_are_not_looked_at() -> None:
    """Too few samples of memory are no clear answer."""
    job = leaking(20 * MB)
    job.processes = job.processes.take(np.arange(len(job.processes)) < 6)
    assert look(job)[1]["MEM001"].outcome == "not-applicable"
    assert SCRIPT in job.sources
