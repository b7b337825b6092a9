"""GRF019 constant-work-in-step: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Node, Tables
from tests.derive.sessions import Job
from tests.detectors.asking import asked, codes
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, running
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.graph.constant_work_in_step import DETECTOR
from stepscope.model.log.values import FeedsSeen

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


def fed_tables() -> Tables:
    """A session's graph that multiplies the placeholder ``adj`` with ``x``, and the result with a weight."""
    tables = Tables()
    graph = tables.graph("session")
    adj, x = (graph.op(name, "Placeholder", outputs=MATRIX) for name in ("adj", "x"))
    hops = graph.op("hops", "MatMul", adj, x, outputs=MATRIX, line=LINE)
    graph.op("out", "MatMul", hops, graph.variable("w", MATRIX), outputs=MATRIX, line=LINE + 1)
    return tables


@pytest.mark.parametrize(
    ("same", "changed", "looks", "found"),
    [
        (("adj:0", "x:0"), (), 8, ["GRF019"]),
        (("adj:0",), ("x:0",), 8, []),
        (("adj:0", "x:0"), (), 7, []),
        (("adj:0", "x:0"), ("x:0",), 8, []),
    ],
    ids=["all-the-same", "one-changes", "few-looks", "another-run-changes-it"],
)
def test_what_a_session_is_fed(same: tuple[str, ...], changed: tuple[str, ...], looks: int, found: list[str]) -> None:
    """Work on placeholders that are fed the same array in every run is constant, too."""
    job = running(fed_tables(), ("hops:MatMul", 60_000.0), ("out:MatMul", 10_000.0))
    job.event(FeedsSeen(name=1, looks=looks, same=same, changed=changed))
    assert codes(job) == found


def inverting(spent: float, tables: Tables | None = None) -> Job:
    """Steps invert for ``spent`` us."""
    return running(tables if tables is not None else constant_tables(), ("MatrixInverse:MatrixInverse", spent))


FIXTURES = Fixtures(
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
    edges={
        "min_elements": Edge(
            below=lambda: inverting(60_000, constant_tables(size="float32[31,31]")),
            at=lambda: inverting(60_000, constant_tables(size="float32[32,32]")),
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("source", "of", "found"),
    [
        ("for x in data:\n    cov.assign(x)\n    step(x)\n", "variable", False),
        ("def update():\n    cov.assign(\n        x)\n", "variable", False),
        ("class Model:\n    def call(self, x):\n        self.cov.assign_add(x)\n", "variable", False),
        ("model.set_weights(w)\nfor x in data:\n    step(x)\n", "variable", True),
        ("class Model:\n    def __init__(self):\n        self.cov.assign(x)\n", "variable", True),
        ("\n" * (LINE - 1) + "for x in data: cov.assign(x)\n", "variable", True),
        ("for x in data:\n    cov.assign(x)\n    step(x)\n", "captured", True),
        ("for x in data\n    cov.assign(x)\n", "variable", True),
    ],
    ids=["loop", "function", "method", "once", "constructor", "a-graph's-line", "captured-tensor", "no-python"],
)
def test_variables_that_python_writes(source: str, of: str, *, found: bool) -> None:
    """Python that may write a variable again, on a line no node stands on: no variable counts as one that stays."""
    job = inverting(60_000, constant_tables(of=of))
    job.sources["/job/train.py"] = source
    assert ("GRF019" in codes(job)) == found


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (constant_tables(), ["GRF019"]),
        (constant_tables(of="variable"), ["GRF019"]),
        (constant_tables(of="variable", half_read=True), []),
        (constant_tables(half_read=True), ["GRF019"]),
        (constant_tables(of="written"), []),
        (constant_tables(of="argument"), []),
        (constant_tables(of="random"), []),
        (constant_tables(size="float32[8,8]"), []),
    ],
    ids=[
        "captured",
        "variable-that-stays",
        "who-writes-is-not-known",
        "captured-whoever-writes",
        "another-graph-writes",
        "argument",
        "drawn-anew",
        "small",
    ],
)
def test_work_that_never_changes(tables: Tables, found: list[str]) -> None:
    """Captured tensors are what they were when the function was made; a variable is if nothing writes it."""
    assert codes(inverting(60_000, tables)) == found
    assert asked(tables) == found
