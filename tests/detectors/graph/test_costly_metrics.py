"""GRF018 costly-metrics: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Node, Tables
from tests.derive.sessions import Job
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, running
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.base import run
from stepscope.detectors.graph.costly_metrics import DETECTOR
from stepscope.detectors.registry import ALL


def metric_tables(
    *,
    used: bool = False,
    trained: bool = False,
    layered: bool = False,
    averaged: bool = False,
    read: bool = False,
    gradient: bool = True,
    again: bool = False,
) -> Tables:
    """A step's graph with thresholds that predictions are compared with, whose sum is added to a variable.

    ``used``: the loss takes the sum too; ``trained``, ``layered``: the variable is trained, or a layer's; ``averaged``:
    what is added comes of a weight and not of the batch; ``read``: the loss is made with the variable;
    ``gradient``: the step takes one; ``again``: the predictions are computed once more, for the metric.
    """
    tables = Tables()
    graph = tables.graph()
    layer = tables.layer("dense")
    x = graph.op("x", "Placeholder")
    weight = graph.variable("dense/kernel", "float32[64,64]", layer=layer)
    out = graph.op("dense/MatMul", "MatMul", x, weight, line=LINE, layer=layer)
    told = graph.op("dense_1/MatMul", "MatMul", x, weight, line=LINE + 4, layer=layer) if again else out
    compared = graph.op("Greater", "Greater", weight if averaged else told, line=LINE + 4)
    total = graph.op("Sum", "Sum", compared, line=LINE + 4)
    owner = layer if layered else 0
    counter = graph.variable("auc/true_positives", "float32[600]", trainable=trained, layer=owner)
    more = [*([total] if used else []), *([counter] if read else [])]
    loss = graph.op("loss/Sum", "Sum", out, *more, line=LINE + 1)
    if gradient:
        grad = graph.op("gradient_tape/dense/MatMul/MatMul", "MatMul", x, loss)
        graph.op("sgd/AssignSubVariableOp", "AssignSubVariableOp", _handle_of(weight), grad)
    graph.op("AssignAddVariableOp", "AssignAddVariableOp", _handle_of(counter), total, line=LINE + 4, layer=owner)
    graph.op("Identity", "Identity", loss)
    return tables


def _handle_of(read: Node) -> Node:
    """What stands for the variable that is read: it was made just before."""
    return Node(read.graph, read.number - 1, read.name)


def measured(spent: float, tables: Tables | None = None) -> Job:
    """Steps compare and sum for ``spent`` us."""
    each = spent / 2
    return running(tables if tables is not None else metric_tables(), ("Greater:Greater", each), ("Sum:Sum", each))


FIXTURES = Fixtures(
    firing=lambda: measured(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE + 4),),
        metrics=("metric_ratio", "metric_ops", "traced_steps"),
        title=("metrics (auc)", "60 %"),
        pipeline_stage="output-processing",
        remedy="metric-on-validation",
    ),
    silent=lambda: measured(60_000, metric_tables(used=True)),
    not_applicable=untraced,
    missing="op trace of some steps",
    below=lambda: measured(14_900),
    at=lambda: measured(15_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (metric_tables(), ["GRF018"]),
        (metric_tables(used=True), []),
        (metric_tables(trained=True), []),
        (metric_tables(layered=True), []),
        (metric_tables(averaged=True), []),
        (metric_tables(read=True), []),
        (metric_tables(gradient=False), []),
    ],
    ids=["metric", "loss-needs-it", "weight", "layer's-state", "average-of-weights", "loss-reads-it", "evaluation"],
)
def test_work_for_metrics(tables: Tables, found: list[str]) -> None:
    """What comes to a counter of the batch, of a step that trains, and to nothing else."""
    assert codes(measured(60_000, tables)) == found


def test_a_metric_is_found_where_it_was_made() -> None:
    """Keras 3 runs its ops for nobody; the names of its variables begin with its own."""
    tables = metric_tables()
    tables.layer("auc", "AUC", line=LINE + 20)
    findings, _, _ = run(ALL, measured(60_000, tables).view())
    assert [place.line for place in findings[0].where] == [LINE + 20, LINE + 4]


@pytest.mark.parametrize(("compared", "found"), [(2_000, ["GRF014"]), (20_000, ["GRF014", "GRF018"])])
def test_a_pass_that_is_run_again_for_a_metric_is_no_work_of_the_metric(compared: float, found: list[str]) -> None:
    """Its remedy is to hand the first result to the metric, which then costs what it costs itself."""
    spent = ("dense_1/MatMul:MatMul", 30_000.0), ("Greater:Greater", compared)
    findings, _, _ = run(ALL, running(metric_tables(again=True), *spent).view())
    assert [one.code for one in findings if one.severity != "info"] == found
    assert findings[0].cost.ratio == pytest.approx(0.3, abs=0.01)
