"""GRF013 products-in-wrong-order: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.detectors.asking import asked, codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, NODES
from tests.detectors.repeated_jobs import chain_tables, chained
from tests.detectors.traced_jobs import untraced

from stepscope.causes.graph import products_in_wrong_order
from stepscope.derive.graph.index import GraphIndex
from stepscope.detectors.graph.products_in_wrong_order import DETECTOR

LEFT = 32 / 1024
"""Of the multiplications, in the other order."""
FIXTURES = Fixtures(
    firing=lambda: chained(60_000),
    expected=Expected(
        severity="high",
        cost=0.6 * (1 - LEFT),
        where=(("train.py", LINE), ("train.py", LINE + 1)),
        metrics=("product_ratio", "left_ratio", "traced_steps"),
        title=("wrong order", "1,024 x 1,024", "60 %", "3.1 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="other-order",
        basis="modelled",
    ),
    silent=lambda: chained(60_000, chain_tables(between="Softmax")),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: chained(10_200),
    at=lambda: chained(10_400),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (chain_tables(right=True), ["GRF013"]),
        (chain_tables(between="Identity"), ["GRF013"]),
        (chain_tables(positions="?"), []),
        (chain_tables(positions="32"), []),
        (chain_tables(width=600), []),
        (chain_tables(scalar=False), []),
        (chain_tables(between="AddV2"), []),
    ],
    ids=["from-the-left", "handed-on", "shape-not-known", "small", "no-better-order", "mask", "bias"],
)
def test_products_that_can_be_turned_round(tables: Tables, found: list[str]) -> None:
    """Only a scaling may lie between the products, and the shapes say whether the other order is less work."""
    assert codes(chained(60_000, tables)) == found
    assert asked(tables) == found


def test_a_batch_that_the_graph_leaves_open_is_that_of_the_steps() -> None:
    """A layer that multiplies its two factors first: the work is that of its weights, whatever the batch."""
    made = Tables()
    step = made.graph()
    plain = '{"transpose_a":false,"transpose_b":false}'
    data = step.op("x", "Placeholder", outputs="float32[?,512]")
    one, two = step.variable("u", "float32[512,8]"), step.variable("v", "float32[8,512]")
    weight = step.op("weight", "MatMul", one, two, outputs="float32[512,512]", attributes=plain)
    step.op("product", "MatMul", data, weight, outputs="float32[?,512]", attributes=plain)
    index = GraphIndex(made.worker())
    assert products_in_wrong_order.build(index, 0.5) == ()
    (found,) = products_in_wrong_order.build(index, 0.5, samples=64)
    assert found.left == pytest.approx(2 * 64 * 8 / (512 * 8 + 64 * 512), rel=1e-3)
