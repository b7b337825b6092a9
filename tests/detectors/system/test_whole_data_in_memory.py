"""MEM005 whole-data-in-memory: its fixtures, and what is no data."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Job, S
from tests.detectors.asking import codes, find
from tests.detectors.death_jobs import LIMIT, MB, dying, looked, value
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import nothing, train_loop

from stepscope.detectors.system.whole_data_in_memory import DETECTOR
from stepscope.model.log.memory import HeldValue

APPENDS = 46


def holding(row: HeldValue, *, at: int = -MS, limit: int = LIMIT, copied: bool = False) -> Job:
    """A loop before whose first step a variable of ``main`` holds something."""
    job = train_loop(80 * MS, offset=S)
    looked(job, S + at, 300 * MB + row.bytes, row, limit=limit)
    text = job.sources[SCRIPT].replace("        tidy()\n", "        images.append(read())\n")
    job.sources[SCRIPT] = text.replace("total = 0.0", "data = np.array(images)") if copied else text
    return job


FIXTURES = Fixtures(
    firing=lambda: holding(value("images", 600 * MB, count=3000)),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        per_step=0,
        where=(("train.py", APPENDS),),
        metrics=("held_bytes", "held_ratio", "limit_bytes", "rows", "rows_that_fit"),
        title=("images holds 600 MiB of 1.95 GiB (control group) before the first step", "3,000 entries", "fit"),
        introduced="data preparation",
        exposed="initialization",
        pipeline_stage="raw-input",
        remedy="load-as-needed",
    ),
    silent=lambda: holding(value("images", 600 * MB, count=3000), at=5 * S),
    not_applicable=nothing,
    missing="steps",
    below=lambda: holding(value("images", 499 * MB, count=3000)),
    at=lambda: holding(value("images", 501 * MB, count=3000)),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_an_array_of_a_list_takes_as_much_again() -> None:
    """A list that the program makes an array of counts twice, and half as many fit."""
    (alone,) = (f for f in find(holding(value("images", 600 * MB, count=3000))) if f.code == "MEM005")
    (twice,) = (f for f in find(holding(value("images", 600 * MB, count=3000), copied=True)) if f.code == "MEM005")
    fits = [{e.metric: e.value for e in found.evidence}["rows_that_fit"] for found in (alone, twice)]
    assert fits[1] == pytest.approx(fits[0] / 2, rel=0.01)
    assert "as much again" in twice.explanation


def test_what_is_no_data_set() -> None:
    """A few large arrays, and what a job died of, which MEM004 says."""
    assert "MEM005" not in codes(holding(value("images", 600 * MB, count=9)))
    assert "MEM005" not in codes(dying(value("images", 1500 * MB, count=1200)))


def test_rows_of_an_array_count() -> None:
    """An array holds as many rows as its first size says."""
    (found,) = (f for f in find(holding(value("data", 600 * MB, shape=(5000, 32)))) if f.code == "MEM005")
    assert "5,000 rows" in found.title
