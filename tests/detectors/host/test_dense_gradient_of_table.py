"""HST020 dense-gradient-of-table: its fixtures, and tables that have to be changed as a whole."""

from __future__ import annotations

import pytest
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import nothing
from tests.detectors.optimizer_jobs import table, training

from stepscope.detectors.host.dense_gradient_of_table import DETECTOR
from stepscope.model.log.program import TableSeen

HALF = (table(64, rows=187_500),)
"""A table with half of the numbers, none of whose rows that were looked at has a gradient."""
FIXTURES = Fixtures(
    firing=lambda: training(40, tables=(table(64),)),
    expected=Expected(
        severity="high",
        cost=0.416,
        basis="modelled",
        where=(("train.py", 4), ("train.py", 9)),
        metrics=("unused_ratio", "optimizer_ratio", "zero_ratio", "table_elements"),
        title=("each step changes all 300,000 rows of a table", "100 % of them have no gradient", "42 % of the time"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="sparse-gradients",
    ),
    silent=lambda: training(40, tables=(table(3),)),
    not_applicable=nothing,
    missing="steps",
    below=lambda: training(19.8, tables=HALF),
    at=lambda: training(20.2, tables=HALF),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It names the line that makes the table; half of the numbers are not its."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    "one",
    [table(64, rows=5_000), table(47), table(0, looked=0), table(64, sparse=True), table(64, rows=4096, columns=1024)],
    ids=["small", "mostly used", "not read", "sparse", "dead units of a layer"],
)
def test_a_table_that_has_to_be_changed_is_none(one: TableSeen) -> None:
    assert look(DETECTOR, training(40, tables=(one,)))[0] == ()


def test_one_look_is_too_few() -> None:
    """Where a layer begins with zeros, those before it have no gradient in the first step."""
    assert look(DETECTOR, training(40, tables=(table(64),), looks=1))[0] == ()


def test_what_decays_would_do_so_no_more() -> None:
    ((found,), _) = look(DETECTOR, training(40, tables=(table(64),), decays=True))
    assert found.remedies[0].text.endswith("keep their moments, and their weights do not decay")


@pytest.mark.parametrize(("fused", "others"), [(False, ["fused-optimizer"]), (True, [])])
def test_the_fused_kernel_is_the_second_way(*, fused: bool, others: list[str]) -> None:
    """It keeps the training as it is."""
    ((found,), _) = look(DETECTOR, training(40, fused=fused, tables=(table(64),)))
    assert [remedy.id for remedy in found.remedies] == ["sparse-gradients", *others]
