"""DST001 straggling-member: its fixtures, and who is never blamed."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.member_jobs import TOGETHER, MemberJob, alone, computing, synchronous

from stepscope.detectors.cluster.straggling_member import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: synchronous([[1.0], [31.0], [1.0]]),
    expected=Expected(
        severity="high",
        cost=0.30,
        where=(("train.py", 20),),
        metrics=("own_ns", "others_own_ns", "blame_ns", "last_ratio", "waits_ns", "common_steps"),
        title=("worker 1 holds the others back", "30 ms more in each step", "30 % less"),
        pipeline_stage="output-processing",
        remedy="mend-the-straggler",
    ),
    silent=lambda: synchronous([[31.0], [31.0], [31.0]]),
    not_applicable=alone,
    missing=TOGETHER,
    below=lambda: synchronous([[1.0], [5.9], [1.0]]),
    at=lambda: synchronous([[1.0], [6.1], [1.0]]),
    edges={
        "min_last": Edge(
            below=lambda: synchronous([[1.0] * 9 + [60.0] * 11, [31.0]]),
            at=lambda: synchronous([[1.0] * 13 + [60.0] * 7, [31.0]]),
        ),
        "max_group": Edge(
            below=lambda: synchronous([[1.0], [31.0], [30.0], [1.0]]),
            at=lambda: synchronous([[1.0], [31.0], [30.0], [1.0], [1.0], [1.0]]),
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """Every claim of ``tests/detectors/fixture.py``."""
    claim(DETECTOR, FIXTURES)


def test_several_stragglers_are_one_finding() -> None:
    """Mending one of two gains nothing: the cost is that of both."""
    (found,), _ = look(DETECTOR, synchronous([[1.0], [31.0], [31.0], *[[1.0]] * 4]))
    assert found.title.startswith(("worker 1, worker 2 hold", "worker 2, worker 1 hold"))
    assert found.cost.ratio == pytest.approx(0.3, abs=0.01)


def test_a_member_that_computes_longer() -> None:
    """Own times are equal, and op traces of all show that one computes longer before it waits: modelled."""
    (found,), _ = look(DETECTOR, computing([0.1, 0.4, 0.1]))
    assert found.title.startswith("worker 1 holds the others back")
    assert "of it computing" in found.title
    assert (found.cost.basis, found.pipeline_stage, found.remedies[0].id) == (
        "modelled",
        "forward-backward",
        "equal-compute",
    )
    assert found.cost.ratio == pytest.approx(0.3, abs=0.02)
    assert found.cost.low == pytest.approx(0.15, abs=0.02)


def test_a_larger_batch_is_the_other_detectors() -> None:
    """What a larger batch explains is said once, by DST003."""
    assert look(DETECTOR, computing([0.1, 0.4, 0.1], samples=(64, 256, 64)))[0] == ()


@pytest.mark.parametrize("ratios", [[0.1, 0.19, 0.1], [0.4, 0.4, 0.4]])
def test_small_differences_of_traced_compute_are_none(ratios: list[float]) -> None:
    """Some traced steps show no difference below a tenth of the step."""
    assert look(DETECTOR, computing(ratios))[0] == ()


def test_a_job_of_no_cluster_lacks_nothing() -> None:
    """It does not apply, and no signal is said to be missing."""
    job = alone()
    assert isinstance(job, MemberJob)
    job.info = None
    _, checked = look(DETECTOR, job)
    assert (checked.outcome, checked.missing) == ("not-applicable", ())
