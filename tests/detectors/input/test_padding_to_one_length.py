"""INP008 padding-to-one-length: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import NODES, padded
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.input.padding_to_one_length import DETECTOR

CALLS = 0.9
"""Of the time of a traced job's steps, in the call."""
FIXTURES = Fixtures(
    firing=lambda: padded(80_000),
    expected=Expected(
        severity="high",
        cost=CALLS * 80 / 81 * (1 - 1.25 * 28 / 400),
        where=(("train.py", 5),),
        metrics=("used_ratio", "used_positions", "columns", "padded_ratio"),
        title=("padded to 400 positions", "use 28 of them", "81 %"),
        introduced="data preparation",
        pipeline_stage="forward-backward",
        remedy="bucket-by-length",
        basis="modelled",
    ),
    silent=lambda: padded(80_000, mean=170.0),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: padded(319),
    at=lambda: padded(325),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("works_on", "found"),
    [
        ("float32[?,400,64]", ["INP008"]),
        ("float32[400,?,64]", ["INP008"]),
        ("float32[?,8,400,400]", ["INP008"]),
        ("int32[?,400]", ["INP008"]),
        ("float32[?,400]", []),
        ("float32[1024,400]", []),
        ("float32[?,14,14,400]", []),
    ],
)
def test_a_layer_as_wide_as_the_sequences_are_long_is_no_padding(works_on: str, found: list[str]) -> None:
    """The same number is the width of a dense layer, its weights', or the channels of a convolution."""
    assert codes(padded(80_000, works_on=works_on)) == found
