"""GRF016 invariant-work-in-loop: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS, Job
from tests.detectors.asking import asked, codes
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.graph_jobs import LINE, NODES
from tests.detectors.graph_jobs import read as read_graphs
from tests.detectors.jobs import train_loop
from tests.detectors.repeated_jobs import invariant, solve_tables
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.graph.invariant_work_in_loop import DETECTOR
from stepscope.detectors.shared.graph_pattern import LEAST_MODELLED

MATRIX = "float32[128,128]"

FIXTURES = Fixtures(
    firing=lambda: invariant(60_000),
    expected=Expected(
        severity="high",
        cost=0.6 * (1 - 1 / 10),
        where=(("train.py", LINE),),
        metrics=("invariant_ratio", "saved_ratio", "turns", "traced_steps"),
        title=("computes the same MatrixSolve", "in call", "10 iterations", "60 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="compute-before-loop",
        basis="modelled",
    ),
    silent=lambda: invariant(60_000, solve_tables(written=True)),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: invariant(11_000),
    at=lambda: invariant(11_200),
    edges={
        "min_elements": Edge(
            below=lambda: invariant(60_000, solve_tables(units=31)),
            at=lambda: invariant(60_000, solve_tables(units=32)),
        ),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (solve_tables(), ["GRF016"]),
        (solve_tables(written=True), []),
        (solve_tables(handed_back=False), []),
        (solve_tables(random=True), []),
        (solve_tables(constant=True), []),
        (solve_tables(between="PyFunc"), []),
        (solve_tables(python=True), []),
    ],
    ids=["the-same", "weight-updated", "variable-of-the-loop", "random", "constant", "python", "python-beside"],
)
def test_work_that_no_turn_changes(tables: Tables, found: list[str]) -> None:
    """A weight that the body updates, a variable of the loop that it hands on changed, random numbers and Python may
    give another result in each turn; TensorFlow computes beforehand what is made of constants."""
    assert [code for code in codes(invariant(60_000, tables)) if code == "GRF016"] == found
    assert [code for code in asked(tables) if code == "GRF016"] == found


def test_little_work_is_not_asked_about() -> None:
    """A solve of 8 x 8 costs no more than starting it; a loop of one turn has nothing to save."""
    assert asked(solve_tables(units=8)) == []
    assert codes(invariant(60_000, turns=1)) == []


def counted(limit: int) -> Job:
    """A loop that solves with a weight in each iteration, of a step that was not traced."""
    job = train_loop(60 * MS)
    tables = Tables()
    step = tables.graph(of=job.trace(0, MS, owner="user", updates=1).id)
    body, cond = tables.graph("body", name="while_body"), tables.graph("cond", name="while_cond")
    start, most = step.number("from", 0), step.number("to", limit)
    handle = step.op("w", "Placeholder", outputs="resource[]")
    loop = step.op("while", "While", start, most, handle, outputs="int32[];int32[]")
    step.call(loop, body, "body")
    step.call(loop, cond, "cond")
    less = cond.op("less", "Less", *(cond.op(name, "Placeholder", outputs="int32[]") for name in ("i", "n")))
    cond.op("w", "Placeholder", outputs="resource[]")
    cond.op("result", "Identity", less, outputs="bool[]")
    turn, end = (body.op(name, "Placeholder", outputs="int32[]") for name in ("turn", "end"))
    read = body.op("read", "ReadVariableOp", body.op("w", "Placeholder", outputs="resource[]"), outputs=MATRIX)
    body.op("solve", "MatrixSolve", read, read, outputs=MATRIX, line=LINE)
    add = body.op("add", "AddV2", turn, body.number("one", 1), outputs="int32[]")
    for i, result in enumerate((add, end)):
        body.op(f"Identity_{i}", "Identity", result, outputs="int32[]")
    read_graphs(job, tables)
    return job


def test_without_a_trace_the_cost_is_counted_from_shapes() -> None:
    """It is a finding where its lower bound is one, and a trace is asked for all the same."""
    findings, checked = look(DETECTOR, counted(200))
    (found,) = findings
    assert found.cost.basis == "modelled"
    assert found.cost.low >= LEAST_MODELLED
    assert "200 iterations" in found.title
    assert "No op trace was taken" in found.explanation
    assert [one.metric for one in found.evidence][-1] == "counted_nodes"
    assert checked.outcome == "found"
    assert checked.capture == "ops"


@pytest.mark.parametrize("job", [counted(2), counted(-1)], ids=["little", "unknown-turns"])
def test_what_may_be_little_is_only_asked_about(job: Job) -> None:
    """A step that takes far longer than its nodes do, and a loop whose number of iterations is not known."""
    findings, checked = look(DETECTOR, job)
    assert findings == ()
    assert (checked.outcome, checked.capture) == ("undecided", "ops")
