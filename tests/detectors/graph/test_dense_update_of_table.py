"""GRF012 dense-update-of-table: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Node, Tables
from tests.derive.sessions import Job
from tests.detectors.asking import asked, codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.graph_jobs import LINE, NODES, looked_up, table_tables
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.base import run
from stepscope.detectors.graph.dense_update_of_table import DETECTOR
from stepscope.detectors.registry import ALL

FIXTURES = Fixtures(
    firing=lambda: looked_up(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE),),
        metrics=("table_ratio", "table_elements", "looked_up_rows", "traced_steps"),
        title=("256 of the 1,000,000 rows", "60 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="update-looked-up-rows",
    ),
    silent=lambda: looked_up(60_000, table_tables(tied=True)),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: looked_up(9_900),
    at=lambda: looked_up(10_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("job", "found"),
    [
        (looked_up(60_000, table_tables(resource=True)), ["GRF012"]),
        (looked_up(60_000, table_tables(batch="?")), ["GRF012"]),
        (looked_up(60_000, table_tables(rows=5_000)), []),
        (looked_up(60_000, table_tables(rows=100_000, batch="512,64")), []),
    ],
    ids=["by-handle", "batch-not-known", "small-table", "most-rows-in-use"],
)
def test_tables_of_which_some_rows_are_looked_up(job: Job, found: list[str]) -> None:
    """Keras 2 gathers by the variable's handle; small tables and those that a batch covers are no matter."""
    assert codes(job) == found


def test_lines_that_make_a_gradient_dense_are_named() -> None:
    """Where the program's own code works on all rows, it is the place, and the gradient is to stay sparse."""
    (found,) = look(DETECTOR, looked_up(60_000, table_tables(line=40)))[0]
    assert [(place.line, place.function) for place in found.where] == [(40, "guard"), (LINE, "")]
    assert "mostly in guard (line 40)" in found.title
    assert found.remedies[0].id == "keep-gradient-sparse"


def penalised(tables: Tables, rows: int, line: int = 0) -> Tables:
    """With a regularizer on the whole table, and its gradient."""
    made = tables.graphs[0][0]
    spec = f"float32[{rows},32]"
    read = made.op("penalty/Read", "ReadVariableOp", Node(made.id, 2, ""), outputs=spec, line=line)
    made.op("penalty/L2Loss", "L2Loss", read, outputs="float32[]", line=line)
    made.op("gradient_tape/penalty/Mul", "Mul", read, outputs=spec)
    return tables


def test_a_regularizer_on_the_table_is_named() -> None:
    """It makes the gradient dense: the remedy is to penalise what was looked up."""
    (found,) = look(DETECTOR, looked_up(60_000, penalised(table_tables(), 1_000_000)))[0]
    assert [remedy.id for remedy in found.remedies] == ["penalise-looked-up-rows", "update-looked-up-rows"]
    assert "regularizer" in found.title
    (by_line,) = look(DETECTOR, looked_up(60_000, penalised(table_tables(line=40), 1_000_000, line=30)))[0]
    assert "for a regularizer in step (line 30)" in by_line.title
    assert [place.line for place in by_line.where] == [30, 40, LINE]
    (other,) = look(DETECTOR, looked_up(60_000))[0]
    assert "regularizer" not in other.title


def session_tables(*, computed: bool) -> Tables:
    """The graph of a session that looks up rows of a variable, or of what a line makes of all of it."""
    tables = Tables()
    graph = tables.graph()
    spec = "float32[1000000,32]"
    handle = graph.op("users", "VarHandleOp", outputs="resource[]")
    source = read = graph.op("Read", "ReadVariableOp", handle, outputs=spec)
    if computed:
        norm = graph.op("norm", "Sum", read, outputs="float32[1000000,1]", line=30, function="tables")
        source = graph.op("adam/Mul", "Mul", read, norm, outputs=spec, line=30, function="tables")
    ids = graph.op("ids", "Placeholder", outputs="int64[256]")
    graph.op("Gather", "GatherV2", source, ids, outputs="float32[256,32]", line=LINE)
    gradient = graph.op("gradients/Gather_grad/UnsortedSegmentSum", "UnsortedSegmentSum", ids, outputs=spec)
    if not computed:
        gradient = graph.op("adam/Mul", "Mul", gradient, outputs=spec)
    graph.op("update", "ResourceApplyAdagrad", handle, gradient)
    return tables


def test_a_variable_of_a_session_is_a_table() -> None:
    """A session's graph lists no variables: those that an optimizer's op changes are known by their reads."""
    (found,) = look(DETECTOR, looked_up(60_000, session_tables(computed=False)))[0]
    assert "256 of the 1,000,000 rows" in found.title
    assert [place.line for place in found.where] == [LINE]


def test_the_first_value_of_a_variable_is_no_work_of_the_steps() -> None:
    """A session's graph has the ops that make and assign it; nothing is asked about them."""
    tables = Tables()
    graph = tables.graph()
    spec = "float32[1000000,32]"
    handle = graph.op("users", "VarHandleOp", outputs="resource[]")
    graph.op("Read", "ReadVariableOp", handle, outputs=spec)
    drawn = graph.op("init/RandomUniform", "RandomUniform", graph.op("shape", "Const"), outputs=spec)
    graph.op("Assign", "AssignVariableOp", handle, drawn)
    ids = graph.op("ids", "Placeholder", outputs="int64[256]")
    graph.op("Gather", "ResourceGather", handle, ids, outputs="float32[256,32]", line=LINE)
    rows = graph.op("rows", "Sum", ids, outputs="float32[256,32]")
    graph.op("update", "ResourceSparseApplyAdagrad", handle, rows, ids)
    assert asked(tables) == []
    graph.op("decay", "Mul", graph.op("Read_1", "ReadVariableOp", handle, outputs=spec), outputs=spec)
    assert asked(tables) == ["GRF012"]


def test_work_on_the_whole_table_before_the_look_up_is_named() -> None:
    """It is no regularizer: its rows are looked up afterwards."""
    (found,) = look(DETECTOR, looked_up(60_000, session_tables(computed=True)))[0]
    assert "because tables (line 30) changes the whole table before rows of it are looked up" in found.title
    assert [remedy.id for remedy in found.remedies] == ["look-up-first", "update-looked-up-rows"]
    assert [place.line for place in found.where] == [30, LINE]


def test_what_work_on_a_table_costs_is_asked() -> None:
    """The graph alone does not say it."""
    assert asked(table_tables()) == ["GRF012"]
    assert asked(table_tables(tied=True)) == []


V1 = "tf.compat.v1.train"


@pytest.mark.parametrize(
    ("versions", "named", "absent"),
    [
        ({"tensorflow": "2.21.0", "keras": "3.15.1"}, "keras.optimizers.MultiOptimizer", "Adagrad"),
        (
            {"tensorflow": "2.18.0", "keras": "3.8.0"},
            "SGD without momentum, in fit with jit_compile=True",
            "MultiOptimizer",
        ),
        (
            {"tensorflow": "2.15.1", "keras": "2.15.0"},
            "Adagrad, or SGD (also with momentum), Adagrad or Ftrl of tf.keras.optimizers.legacy",
            "jit_compile",
        ),
        ({"tensorflow": "2.8.0", "keras": "2.8.0"}, "SGD (also with momentum), Adagrad or Ftrl", "legacy"),
        (
            {"tensorflow": "2.21.0", "keras": "3.15.1", "tf_keras": "2.21.0"},
            "tf_keras.optimizers.legacy",
            "jit_compile",
        ),
        ({"tensorflow": "2.21.0"}, V1, "legacy"),
    ],
)
def test_advice_is_of_the_version_that_runs(versions: dict[str, str], named: str, absent: str) -> None:
    """Measured: Adagrad saves on Keras 2.15 and not on 3.15, plain SGD the other way round; none has a lazy Adam."""
    job = looked_up(60_000)
    for name, version in versions.items():
        job.framework(name, version)
    findings, _, _ = run(ALL, job.view())
    (found,) = (f for f in findings if f.code == "GRF012")
    said = found.remedies[0].text
    assert named in said
    assert absent not in said
    assert "lazy" not in said.lower()
