"""INP003 python-generator-input: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import HANDOVER, nothing, pulled

from stepscope.detectors.input.python_generator_input import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: pulled(60 * MS, python=58 * MS, role="generator"),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 15), ("train.py", 71)),
        metrics=("input_wait_ratio", "python_busy_ratio", "disturbed_ratio", "python_ns_per_batch"),
        title=("input generator decode", "59.7 ms of 100 ms"),
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


@pytest.mark.parametrize(("calls", "single"), [(1, False), (8, True)])
def test_whole_batches_are_advised_for_single_examples(calls: int, *, single: bool) -> None:
    """A generator that is called once a batch yields whole ones already."""
    job = pulled(60 * MS, python=58 * MS // calls, role="generator", per_batch=calls)
    (found,), _ = look(DETECTOR, job)
    assert ("yield-batches" in [one.id for one in found.remedies]) == single
