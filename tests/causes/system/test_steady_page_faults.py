"""The arithmetic of page faults gives back what a job was made with."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import Job
from tests.detectors.memory_jobs import FAULT_NS, RELEASE_NS, SECONDS, faulting, refaulting

from stepscope.causes.system import steady_page_faults
from stepscope.causes.system.steady_page_faults import Faults


def of(job: Job) -> Faults:
    """The faults of a job, which it must have."""
    found = job.view().get(steady_page_faults.build)
    assert found is not None
    return found


def test_constant_faults() -> None:
    """Faults per step and second, share of CPU time and its parts are those of the job."""
    faults = of(refaulting(0.2))
    assert faults.per_step == pytest.approx(0.2 * 100e6 / FAULT_NS, rel=0.01)
    assert faults.per_second == pytest.approx(10 * faults.per_step, rel=0.01)
    assert faults.ratio == pytest.approx(0.2, abs=0.001)
    assert faults.lasting_ratio == pytest.approx(0.2, abs=0.001)
    assert faults.churn_ratio == pytest.approx(0.2 * (FAULT_NS + RELEASE_NS) / FAULT_NS, abs=0.001)
    assert faults.system_ratio == pytest.approx(faults.churn_ratio, abs=0.001)
    assert faults.kept_ratio == 0
    assert faults.busy == pytest.approx(1.0)
    assert faults.part_ratios == pytest.approx(np.full(len(faults.part_ratios), 0.2), abs=0.001)


def test_faults_of_a_part_do_not_last() -> None:
    """The lasting share is that of the usual part, not of the mean."""
    faults = of(faulting(lambda second: 20_000 if second < SECONDS // 2 else 0))
    assert faults.ratio > 0.1
    assert faults.lasting_ratio == 0


def test_pages_that_stay() -> None:
    """Growth of memory is told from refaults."""
    assert of(refaulting(0.2, kept=0.25)).kept_ratio == pytest.approx(0.25, abs=0.01)


def test_the_cost_is_that_of_undisturbed_rounds() -> None:
    """Rounds that a busy host made slow do not make faults look dear; they widen the interval."""
    job = refaulting(0.2)
    memory = job.resources["memory"]
    memory.fault_ns[3:] *= 2
    cost = of(job).cost
    assert cost.fault_ns == FAULT_NS
    assert cost.high_ns == 2 * FAULT_NS
