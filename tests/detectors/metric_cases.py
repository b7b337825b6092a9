"""A training step that computes for its metrics, and what looks like it."""

from __future__ import annotations

from tests.derive.graph_tables import Node, Tables
from tests.derive.sessions import Job
from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.graph_jobs import LINE, running
from tests.detectors.traced_jobs import untraced


def metric_tables(
    *,
    used: bool = False,
    trained: bool = False,
    layered: bool = False,
    averaged: bool = False,
    read: bool = False,
    gradient: bool = True,
) -> Tables:
    """A step's graph with thresholds that predictions are compared with, whose sum is added to a variable.

    ``used``: the loss takes the sum too; ``trained``, ``layered``: the variable is trained, or a layer's; ``averaged``:
    what is added comes of a weight and not of the batch; ``read``: the loss is made with the variable;
    ``gradient``: the step takes one.
    """
    tables = Tables()
    graph = tables.graph()
    layer = tables.layer("dense")
    x = graph.op("x", "Placeholder")
    weight = graph.variable("dense/kernel", "float32[64,64]", layer=layer)
    out = graph.op("dense/MatMul", "MatMul", x, weight, line=LINE, layer=layer)
    compared = graph.op("Greater", "Greater", weight if averaged else out, line=LINE + 4)
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


GRF018 = Fixtures(
    firing=lambda: measured(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE + 4),),
        metrics=("metric_ratio", "metric_ops", "traced_steps"),
        title=("auc:", "60 %", "metrics"),
        pipeline_stage="output-processing",
        remedy="metric-on-validation",
    ),
    silent=lambda: measured(60_000, metric_tables(used=True)),
    not_applicable=untraced,
    missing="op trace of some steps",
    below=lambda: measured(14_900),
    at=lambda: measured(15_100),
)
