"""INP003 python-generator-input: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import HANDOVER, PERIOD, STEPS, nothing, pulled
from tests.detectors.lock_jobs import OTHER, beside

from stepscope.detectors.input.python_generator_input import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: pulled(60 * MS, python=58 * MS, role="generator"),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 15), ("train.py", 71)),
        metrics=("input_wait_ratio", "python_busy_ratio", "disturbed_ratio", "python_ns_per_batch"),
        title=("input generator decode", "58 ms per batch", "steps wait 60 % of their time for it"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="use-tf-data-map",
    ),
    silent=lambda: pulled(2 * MS, python=58 * MS, role="generator"),
    not_applicable=nothing,
    missing="steps",
    below=lambda: pulled(10 * MS + HANDOVER - US, python=58 * MS, role="generator"),
    at=lambda: pulled(10 * MS + HANDOVER + US, python=58 * MS, role="generator"),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("got", "others", "codes"), [(0.9, 1.1, ["INP003"]), (1.4, 0.0, [])])
def test_waits_for_the_lock_are_the_inputs_beside_other_processes(got: float, others: float, codes: list[str]) -> None:
    """No step waits for a batch, as each is late itself: looks say that the generator holds the interpreter lock. On
    free CPUs the detector of the lock says so.
    """
    job = beside(70, waits=45, elsewhere=5, job=pulled(2 * MS, python=58 * MS, role="generator"))
    job.python("generator", "count", line=12).every(PERIOD, STEPS, dur=90 * MS, thread=OTHER)
    job.machine(10, cpus=2, got=got, waiting=1.0 if others else 0.0, others=others)
    found = look(DETECTOR, job)[0]
    assert [one.code for one in found] == codes
    for one in found:
        waits = {e.metric: e.refs for e in one.evidence}["lock_wait_ratio"]
        assert waits == ("component:other-python",)
        assert one.cost.ratio == pytest.approx(0.7, abs=0.1)


def test_its_own_time_the_wait_and_the_cost_are_told_apart() -> None:
    """It runs 90 % of the time and steps wait 45 %: what its absence saves is said as a cost, not as time it takes."""
    job = pulled(45 * MS, python=90 * MS, role="generator")
    job.machine(10, cpus=2, got=1.0, waiting=0.5, others=1.5)
    (found,) = look(DETECTOR, job)[0]
    assert "90 ms per batch; steps wait 45 % of their time for" in found.title
    assert "of the step" not in " ".join(remedy.text for remedy in found.remedies)


@pytest.mark.parametrize(("calls", "single"), [(1, False), (8, True)])
def test_whole_batches_are_advised_for_single_examples(calls: int, *, single: bool) -> None:
    """A generator that is called once a batch yields whole ones already."""
    job = pulled(60 * MS, python=58 * MS // calls, role="generator", per_batch=calls)
    (found,), _ = look(DETECTOR, job)
    assert ("yield-batches" in [one.id for one in found.remedies]) == single
