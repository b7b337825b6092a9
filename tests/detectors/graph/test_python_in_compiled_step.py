"""GRF006 python-in-compiled-step: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, NODES, python_in_step
from tests.detectors.jobs import train_loop

from stepscope.detectors.graph.python_in_compiled_step import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: python_in_step(40 * MS),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(("train.py", 20), ("train.py", LINE)),
        metrics=("python_busy_ratio", "python_ns_per_step", "python_calls"),
        title=("mask_bands", "inside the compiled step", "tf.numpy_function", "40 ms", "40 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="use-tensorflow-ops",
    ),
    silent=lambda: python_in_step(40 * MS, of_data=True),
    not_applicable=lambda: train_loop(20 * MS),
    missing=NODES,
    below=lambda: python_in_step(10 * MS - 1000),
    at=lambda: python_in_step(10 * MS + 1000),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_python_now_and_then_is_none() -> None:
    """Python that is put into the step's graph but takes a hundredth of the time."""
    assert codes(python_in_step(MS)) == []
