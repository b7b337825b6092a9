"""GRF007 one-hot-into-matmul: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.detectors.asking import asked, codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, NODES, bag_tables, category_tables, one_hot, running
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.base import run
from stepscope.detectors.graph.one_hot_into_matmul import DETECTOR
from stepscope.detectors.registry import ALL

FIXTURES = Fixtures(
    firing=lambda: one_hot(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE),),
        metrics=("product_ratio", "depth", "traced_steps"),
        title=("one-hot matrix of 12,000 columns", "60 %", "gather"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="gather",
    ),
    silent=lambda: one_hot(60_000, masked=True),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: one_hot(9_900),
    at=lambda: one_hot(10_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("tables", "remedy"),
    [
        (category_tables(2048, 512), "segment-sum"),
        (category_tables(512, 512), "segment-sum"),
        (category_tables(512, 512, table=True), "gather"),
    ],
    ids=["by-category", "sizes-do-not-tell", "table-of-as-many-rows"],
)
def test_rows_added_up_by_category(tables: Tables, remedy: str) -> None:
    """With the matrix on its side it is a segment sum; counts of it beside that make no bag."""
    findings, _, _ = run(ALL, running(tables, ("MatMul:MatMul", 60_000)).view())
    assert [(f.code, f.remedies[0].id) for f in findings] == [("GRF007", remedy)]
    assert "one-hot matrix" in findings[0].title
    assert ("by category" in findings[0].title) == (remedy == "segment-sum")


@pytest.mark.parametrize("bincount", [False, True], ids=["one-hot-rows-joined", "counted"])
def test_a_multi_hot_matrix_is_a_sum_of_looked_up_rows(*, bincount: bool) -> None:
    """Keras' CategoryEncoding counts; written by hand it is the maximum of one-hot rows."""
    job = running(bag_tables(bincount=bincount), ("table/MatMul:MatMul", 60_000))
    findings, _, _ = run(ALL, job.view())
    assert [f.code for f in findings] == ["GRF007"]
    assert "summed by multiplying with a multi-hot matrix of 12,000 columns: 60 %" in findings[0].title
    assert "sum them" in findings[0].remedies[0].text
    assert asked(bag_tables(bincount=bincount)) == ["GRF007"]


def test_a_one_hot_matrix_joined_over_its_columns_is_none_any_more() -> None:
    """The maximum over the columns of each row leaves a mask of positions."""
    assert codes(running(bag_tables(over_columns=True), ("table/MatMul:MatMul", 60_000))) == []
