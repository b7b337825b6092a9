"""Faults that are no steady ones, and what the counters of those that are say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.derive.sessions import Job
from tests.detectors.memory_jobs import faulting, refaulting

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.finding import Checked, Finding


def look(job: Job) -> tuple[list[Finding], Checked]:
    """What is said of page faults in a job, all detectors run."""
    findings, checked, failures = run(ALL, job.view())
    assert failures == ()
    (mine,) = (c for c in checked if c.detector == "MEM002")
    return [f for f in findings if f.code == "MEM002"], mine


@pytest.mark.parametrize(
    "job",
    [
        lambda: faulting(lambda second: 50_000 if second < 2 else 10),
        lambda: faulting(lambda second: 50_000 if second == 5 else 0),
        lambda: faulting(lambda second: 50_000 if second in {2, 6} else 0),
        lambda: faulting(lambda second: 50_000 if second >= 8 else 0),
    ],
    ids=["warm-up", "one-burst", "two-bursts", "only-at-the-end"],
)
def test_faults_that_do_not_last_are_clear(job: Callable[[], Job]) -> None:
    """Faults of a warm-up, of a burst now and then or of the end are not faults of every step."""
    findings, checked = look(job())
    assert findings == []
    assert checked.outcome == "clear"


def test_memory_that_grows_is_another_detectors() -> None:
    """Pages that come to stay are a leak or a cache that fills, not memory that is given back."""
    findings, checked = look(refaulting(0.3, kept=1.0))
    assert findings == []
    assert checked.outcome == "clear"


def test_the_kernels_time_bounds_the_share() -> None:
    """Where a fault costs the job less than it cost the collector, the time in the kernel is what counts."""
    (found,), _ = look(refaulting(0.4, system=0.5))
    values = {e.metric: e.value for e in found.evidence}
    assert values["fault_ratio"] == pytest.approx(values["system_ratio"], rel=0.01)
    assert found.cost.ratio == pytest.approx(0.225, abs=0.01)


def test_a_job_that_mostly_waits_loses_little_wall_time() -> None:
    """Half of the CPU time of a process that runs a tenth of the time is a twentieth of the wall time."""
    (found,), _ = look(faulting(lambda _: 3_125, got=0.1))
    assert {e.metric: e.value for e in found.evidence}["fault_ratio"] == pytest.approx(0.5, abs=0.01)
    assert found.cost.ratio == pytest.approx(0.05 * 1.125, abs=0.005)


def test_a_starved_job_is_told_with_less_confidence() -> None:
    """Neighbours that take the CPU lower the confidence, not the count."""
    (alone,), _ = look(refaulting(0.4))
    (starved,), _ = look(refaulting(0.4, others=1.0, waiting=1.5))
    assert starved.confidence < alone.confidence


def test_without_a_measured_cost_nothing_is_claimed() -> None:
    """Nobody measured what a fault costs on this host: not applicable, and not a guess."""
    _, checked = look(refaulting(0.4, rounds=2))
    assert checked.outcome == "not-applicable"
    assert checked.missing == ("counts of page faults",)
