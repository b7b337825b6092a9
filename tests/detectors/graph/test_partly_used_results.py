"""GRF020 partly-used-results: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import Job
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, graph_only, running

from stepscope.detectors.graph.partly_used_results import DETECTOR

USED = 1 / 64


def tables(
    *, selects: str = "StridedSlice", kept: str = "float32[32,1]", between: str = "Tanh", used_whole: bool = False
) -> Tables:
    """A product of 32 x 64 elements, an op on each of them, and a node that takes one column."""
    made = Tables()
    step = made.graph()
    data = step.op("data", "Placeholder", outputs="float32[32,128]")
    weight = step.variable("w", "float32[128,64]")
    product = step.op("product", "MatMul", data, weight, outputs="float32[32,64]", line=LINE)
    inner = step.op("inner", between, product, outputs="float32[32,64]", line=LINE + 1)
    step.op("last", selects, inner, outputs=kept, line=LINE + 2)
    if used_whole:
        step.op("loss", "Sum", product, outputs="float32[]")
    step.op("other", "Conv2D", data)
    return made


def computing(spent: float, made: Tables | None = None, between: str = "Tanh") -> Job:
    """A step in which product and op take ``spent`` us of 100,000, the product three quarters of it."""
    return running(
        made or tables(),
        ("product:MatMul", 0.75 * spent),
        (f"inner:{between}", 0.25 * spent),
        ("other:Conv2D", 100_000 - spent),
    )


FIXTURES = Fixtures(
    firing=lambda: computing(60_000),
    expected=Expected(
        severity="high",
        cost=0.6 * (1 - USED),
        basis="modelled",
        where=(("train.py", LINE), ("train.py", LINE + 1), ("train.py", LINE + 2)),
        metrics=("result_ratio", "used_ratio", "traced_steps"),
        title=("1/64", "32 x 64", f"line {LINE + 2}", "60 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="select-first",
    ),
    silent=lambda: computing(60_000, tables(kept="float32[32,40]")),
    not_applicable=lambda: graph_only(tables()),
    missing="op trace of some steps",
    below=lambda: computing(10_100),
    at=lambda: computing(10_400),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("made", "between", "found"),
    [
        (tables(selects="MatrixDiagPartV3", kept="float32[32]"), "Tanh", ["GRF020"]),
        (tables(selects="GatherV2"), "Tanh", ["GRF020"]),
        (tables(selects="Sum", kept="float32[]"), "Tanh", []),
        (tables(between="Softmax"), "Softmax", []),
        (tables(kept="float32[?,1]"), "Tanh", []),
        (tables(used_whole=True), "Tanh", ["GRF020"]),
    ],
    ids=["diagonal", "gather", "sum-needs-all", "softmax-needs-all", "shape-not-known", "product-used-whole"],
)
def test_what_needs_all_of_it(made: Tables, between: str, found: list[str]) -> None:
    """Only what selects leaves elements unused, and only through ops that work element by element."""
    assert codes(computing(60_000, made, between)) == found


def test_a_product_that_is_used_whole_is_not_counted() -> None:
    """The search ends at what something else needs whole: a tenth of the step is left, too little for a finding."""
    assert codes(computing(38_000, tables(used_whole=True))) == []
