"""INP006 stateful-sequential-map: its fixtures."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.traced_jobs import TRACE, fed, untraced

from stepscope.detectors.input.stateful_sequential_map import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: fed(60_000, work=0.9, kind="RandomUniform"),
    expected=Expected(
        severity="high",
        cost=0.27,
        where=(),
        metrics=(
            "input_wait_ratio",
            "stage_parallelism",
            "stateful_op_ratio",
            "stage_ns_per_batch",
            "traced_steps",
        ),
        title=("one element at a time", "RandomUniform", "54 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="parallel-map",
        basis="modelled",
    ),
    silent=lambda: fed(60_000, work=0.9, kind="StatelessRandomUniformV2"),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: fed(16_500, work=0.9, kind="RandomUniform"),
    at=lambda: fed(16_800, work=0.9, kind="RandomUniform"),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_without_a_second_cpu_one_element_at_a_time_is_no_cause() -> None:
    """More threads would share the one CPU; what the input waits for is another detector's."""
    job = fed(60_000, work=0.9, kind="RandomUniform")
    few = replace(DETECTOR, params=replace(DETECTOR.params, assumed_cpus=1))
    assert look(few, job)[0] == ()
