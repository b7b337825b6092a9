"""INP005 unbatched-map: its fixtures."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.traced_jobs import TRACE, fed, untraced

from stepscope.detectors.input.unbatched_map import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: fed(60_000),
    expected=Expected(
        severity="high",
        cost=0.54 * 0.8 * 7 / 8,
        where=(),
        metrics=("input_wait_ratio", "call_ratio", "calls_per_batch", "call_ns", "traced_steps"),
        title=("maps records one by one", "8 calls", "80 %", "54 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="batch-before-map",
        basis="modelled",
    ),
    silent=lambda: fed(60_000, work=0.9),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: fed(60_000, work=0.52),
    at=lambda: fed(60_000, work=0.48),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_starting_the_ops_of_a_short_function_is_saved_too() -> None:
    """An op of 9 us does next to nothing but start: a batch starts one for all records, and saves the whole wait."""
    (found,) = look(DETECTOR, fed(18_000, calls=99, work=0.06))[0]
    assert found.cost.ratio == pytest.approx(0.9 * 0.18 * 98 / 99, abs=0.003)
    assert found.cost.low < 0.08


@pytest.mark.parametrize(("cpus", "beside"), [(1, 0.46 * 0.6 / 2), (2, 0.0)])
def test_where_its_thread_fills_the_cpus_the_input_holds_up_the_steps_too(cpus: int, beside: float) -> None:
    """On the only CPU, an input that works for 60 % of the time takes turns with the step, at most in all of it."""
    job = fed(60_000)
    job.machine(20, cpus=cpus)
    (found,) = look(DETECTOR, job)[0]
    assert found.cost.high == pytest.approx(0.54 + beside, abs=0.02)


def test_ops_that_do_little_but_start_are_calls_as_well() -> None:
    """Short ops take most of a short call: a batch starts them once. Long ones are the function's own work."""
    (found,) = look(DETECTOR, fed(18_000, calls=400, work=0.6))[0]
    assert "400 calls" in found.title
    assert not look(DETECTOR, fed(60_000, calls=8, work=0.6))[0]
