"""KRN007 cheaper-way-measured: its fixtures, and what is information only."""

from __future__ import annotations

import pytest
from tests.derive.sessions import SCRIPT
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.graph_jobs import LINE
from tests.detectors.replay_jobs import replayed, times
from tests.detectors.traced_jobs import TRACE, untraced

from stepscope.derive.steps_view import StepsView
from stepscope.derive.view import SessionView
from stepscope.detectors.base import Seen
from stepscope.detectors.device.cheaper_way_measured import DETECTOR
from stepscope.model.log.program import Setting

FIXTURES = Fixtures(
    firing=lambda: replayed(60_000, times(60_000), times(30_000, "float32"), kind="float64"),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(("train.py", LINE),),
        metrics=("faster_ratio", "factor", "saved_ratio", "traced_steps"),
        title=("MatMul", "60 %", "2.0 times", "float32"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="single-precision",
        basis="modelled",
    ),
    silent=lambda: replayed(60_000, times(60_000), times(45_000, "float32"), kind="float64"),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: replayed(5_900, times(5_900), times(2_950, "float32"), kind="float64"),
    at=lambda: replayed(6_100, times(6_100), times(3_050, "float32"), kind="float64"),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("values", "lines"), [((True,), [3, LINE]), ((True, False), [LINE]), ((), [LINE])])
def test_the_line_that_chose_double_precision_comes_first(values: tuple[bool, ...], lines: list[int]) -> None:
    """It is the one to change, if it is still in effect."""
    job = replayed(60_000, times(60_000), times(30_000, "float32"), kind="float64")
    for value in values:
        job.event(Setting(name="double_precision", value=value, file=SCRIPT, line=3, function="main"))
    (found,) = look(DETECTOR, job)[0]
    assert [place.line for place in found.where] == lines


def test_half_precision_is_information() -> None:
    """16 bits change what a model learns."""
    view = StepsView(SessionView(replayed(60_000, times(60_000), times(20_000, "bfloat16")).session()))
    found = [seen for seen in DETECTOR.detect(view, DETECTOR.params) if isinstance(seen, Seen)]
    assert [seen.severity for seen in found] == ["info"]


def test_a_larger_batch_is_another_detectors() -> None:
    """CFG002 says that a batch is small."""
    view = StepsView(SessionView(replayed(60_000, times(60_000), times(80_000, "batch")).session()))
    assert list(DETECTOR.detect(view, DETECTOR.params)) == []
