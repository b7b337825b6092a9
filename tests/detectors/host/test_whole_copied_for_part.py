"""HST016 whole-copied-for-part: its fixtures, and its words for what is copied."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US
from tests.detectors.asking import find
from tests.detectors.eager_jobs import copied
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import TIDY, nothing

from stepscope.detectors.host.whole_copied_for_part import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: copied(600 * MS),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", TIDY),),
        metrics=("copy_ratio", "copies", "copy_ns", "whole_bytes", "part_bytes", "looks"),
        title=("reading a part of a variable copies the whole variable, 100 MiB for 1 MiB", f"train.py:{TIDY}", "60 %"),
        introduced="data preparation",
        exposed="prediction",
        pipeline_stage="raw-input",
        remedy="gather-rows",
    ),
    silent=lambda: copied(600 * MS, part=0),
    not_applicable=nothing,
    missing="steps",
    below=lambda: copied(50 * MS - US),
    at=lambda: copied(50 * MS),
    edges={"min_copies": Edge(below=lambda: copied(600 * MS, part=3), at=lambda: copied(600 * MS, part=4))},
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("op", "remedy"), [("ConcatV2", "append-once"), ("TensorScatterUpdate", "touch-a-part")])
def test_the_remedy_is_that_of_the_copy(op: str, remedy: str) -> None:
    """A tensor that is appended to, or updated in a few rows, is mended in another way than a variable's slice."""
    (found,) = (f for f in find(copied(600 * MS, op=op)) if f.code == "HST016")
    assert found.remedies[0].id == remedy
