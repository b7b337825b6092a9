"""DST010 transfers-out-of-order: its fixtures, and what the report's table says."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.member_jobs import alone, receiving

from stepscope.detectors.cluster.transfers_out_of_order import DETECTOR
from stepscope.report.document.traces import traced as traced_words
from stepscope.report.sections import traced_steps

REVERSED = (40.0, 30.0, 20.0, 10.0)
FIXTURES = Fixtures(
    firing=lambda: receiving(REVERSED, 10),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(),
        metrics=("gain_ns", "still_ns", "early", "traced_steps"),
        title=("parameters from ps 0", "no op runs for 40 ms", "at most 30 %"),
        pipeline_stage="gradient-sharing",
        remedy="order-the-reads",
        basis="modelled",
    ),
    silent=lambda: receiving(REVERSED[::-1], 10),
    not_applicable=alone,
    missing="op trace of some steps",
    below=lambda: receiving(REVERSED, 1.66),
    at=lambda: receiving(REVERSED, 1.67),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """Every claim of ``tests/detectors/fixture.py``."""
    claim(DETECTOR, FIXTURES)


def test_a_task_alone_receives_from_nobody() -> None:
    """It does not apply."""
    _, checked = look(DETECTOR, receiving(REVERSED, 10, tasks=1))
    assert (checked.outcome, checked.missing) == ("not-applicable", ())


def test_the_table_has_each_parameter_the_most_urgent_first() -> None:
    """And the line above says what the order costs."""
    traced, problems = traced_steps.build(receiving(REVERSED, 10).view())
    assert problems == ()
    assert traced is not None
    assert traced.transfers is not None
    rows = traced_words.transfer_rows(traced.transfers)
    assert [row[:3] for row in rows] == [(f"w{i}/read", "ps 0", "3.81 MiB") for i in range(4)]
    assert [row[4] for row in rows] == ["40 ms", "30 ms", "20 ms", "10 ms"]
    assert [row[6] for row in rows] == ["", "6 of 6", "6 of 6", "6 of 6"]
    said = dict(traced_words.lines(traced))["transfers"]
    assert "4 parameters received, 3 of them before a more urgent one" in said
    assert "in the best order the step is shorter by at most 30 %" in said
