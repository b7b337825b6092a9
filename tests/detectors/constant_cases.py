"""A step that solves with a matrix which never changes, and what looks like it."""

from __future__ import annotations

from tests.derive.graph_tables import Node, Tables
from tests.derive.sessions import Job
from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.graph_jobs import LINE, running
from tests.detectors.traced_jobs import untraced

MATRIX = "float32[64,64]"


def constant_tables(*, of: str = "captured", size: str = MATRIX, half_read: bool = False) -> Tables:
    """A step's graph that inverts a matrix and multiplies its batch with that.

    ``of``: what the matrix is: captured, an argument, drawn anew, a variable, or one that another graph writes.
    ``half_read``: of one more graph only a part was read.
    """
    tables = Tables()
    graph = tables.graph()
    x = graph.op("x", "Placeholder")
    if of == "captured":
        matrix = graph.constant("cov", size)
    elif of == "argument":
        matrix = graph.op("cov", "Placeholder", outputs=size)
    elif of == "random":
        matrix = graph.op("cov", "RandomStandardNormal", graph.op("shape", "Const", outputs="int32[2]"), outputs=size)
    else:
        matrix = graph.variable("cov", size)
    added = graph.op("add", "AddV2", matrix, graph.op("eye", "Const", outputs=size), outputs=size, line=LINE)
    inverse = graph.op("MatrixInverse", "MatrixInverse", added, outputs=size, line=LINE)
    graph.op("MatMul", "MatMul", x, inverse, line=LINE + 1)
    other = tables.graph(name="update")
    written = other.variable("cov" if of == "written" else "count", size)
    other.op("Assign", "AssignVariableOp", Node(written.graph, written.number - 1, ""), written)
    if half_read:
        tables.state = "capped"
    return tables


def inverting(spent: float, tables: Tables | None = None) -> Job:
    """Steps invert for ``spent`` us."""
    return running(tables if tables is not None else constant_tables(), ("MatrixInverse:MatrixInverse", spent))


GRF019 = Fixtures(
    firing=lambda: inverting(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE),),
        metrics=("constant_ratio", "traced_steps"),
        title=("MatrixInverse", "60 %", "never change"),
        pipeline_stage="forward-backward",
        remedy="compute-once",
        introduced="model building",
    ),
    silent=lambda: inverting(60_000, constant_tables(of="argument")),
    not_applicable=untraced,
    missing="nodes of traced graphs",
    below=lambda: inverting(9_900),
    at=lambda: inverting(10_100),
)
