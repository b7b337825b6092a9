"""MEM002 in a job whose input is made by a generator."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.asking import find
from tests.detectors.jobs import PERIOD
from tests.detectors.memory_jobs import refaulting


def test_faults_cost_no_more_than_a_generator_leaves() -> None:
    """A generator that runs for nine tenths of each step, one batch after the other, sets the pace of the steps."""
    job = refaulting(0.4)
    job.python("generator", "count", line=12).every(PERIOD, 100, dur=90 * MS, thread=7)
    found = next(one for one in find(job) if one.code == "MEM002")
    assert found.cost.low == 0.0
    assert found.cost.ratio == pytest.approx(0.1, abs=0.01)
    assert found.cost.high > 0.3
    assert "sets the pace" in found.explanation
