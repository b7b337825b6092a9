"""HST019 optimizer-op-by-op: its fixtures, and optimizers that have no fused kernel to take."""

from __future__ import annotations

from typing import TypedDict

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import nothing
from tests.detectors.optimizer_jobs import table, training

from stepscope.detectors.host.optimizer_op_by_op import DETECTOR
from stepscope.diagnosis.analyze import report_of

FIXTURES = Fixtures(
    firing=lambda: training(40),
    expected=Expected(
        severity="high",
        cost=0.3,
        basis="modelled",
        where=(("train.py", 6), ("train.py", 9)),
        metrics=("optimizer_ratio", "tensors", "elements"),
        title=("Adam changes 12,000,000 numbers in 9 tensors op by op", "40 % of the time"),
        pipeline_stage="forward-backward",
        remedy="fused-optimizer",
    ),
    silent=lambda: training(4),
    not_applicable=nothing,
    missing="steps",
    below=lambda: training(9.9),
    at=lambda: training(10.1),
)


class Given(TypedDict, total=False):
    """What is another."""

    cls: str
    fused: bool
    closure: bool
    devices: tuple[str, ...]
    version: str


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It names the line that makes the optimizer, from a tenth of the time on."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    "given",
    [
        {"fused": True},
        {"closure": True},
        {"cls": "SGD"},
        {"devices": ("cuda",)},
        {"devices": ("cpu", "cuda")},
        {"version": "2.3.1"},
    ],
    ids=lambda given: " ".join(f"{key} {value}" for key, value in given.items()),
)
def test_there_is_a_kernel_to_take(given: Given) -> None:
    """Of a step with a closure the time is that of the whole step; SGD gains little; on a device the optimizer's time
    is not that of its calls; 2.3 has none for the CPU.
    """
    assert look(DETECTOR, training(40, **given))[0] == ()


def test_where_a_table_has_the_time_its_finding_says_it() -> None:
    assert look(DETECTOR, training(40, tables=(table(60),)))[0] == ()


def test_the_optimizers_part_of_the_step_has_no_finding_beside_it() -> None:
    report = report_of(training(40).session())
    assert [one.code for one in report.findings if "optimizer" in one.title or one.code == "HST019"] == ["HST019"]
