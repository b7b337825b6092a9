"""DSK001 slow-disk-input: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.asking import find
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import train_loop
from tests.detectors.resource_jobs import MISSING, from_disk

from stepscope.detectors.system.slow_disk_input import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: from_disk(0.95),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 70),),
        metrics=("disk_busy_ratio", "read_rate", "input_wait_ratio", "requests_in_flight", "request_bytes"),
        title=("disk sda is busy 95 %", "6.00 MB/s", "60 %"),
        introduced="data preparation",
        pipeline_stage="raw-input",
        remedy="parallel-reads",
    ),
    silent=lambda: from_disk(0.95, own=0.3),
    not_applicable=lambda: train_loop(80 * MS),
    missing=MISSING,
    below=lambda: from_disk(0.699),
    at=lambda: from_disk(0.701),
    edges={
        "max_in_flight": Edge(
            below=lambda: from_disk(0.95, requests=1.51),
            at=lambda: from_disk(0.95, requests=1.49),
            shows="parallel-reads",
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_memory_that_holds_no_files_is_named_as_why_the_disk_is_read_again() -> None:
    """A cgroup that is full beside a slow disk; one with room, and one without a limit, are not named."""
    said = []
    for held in (0.99, 0.9, 0.0):
        (found,) = find(from_disk(0.95, held=held))
        remedies = [remedy.id for remedy in found.remedies]
        said.append(("the page cache does not keep the data" in found.explanation, "raise-memory" in remedies))
    assert said == [(True, True), (False, False), (False, False)]
