"""GRF014 repeated-forward-pass: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS, Job
from tests.detectors.asking import asked, codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.graph_jobs import LINE, NODES, read
from tests.detectors.jobs import train_loop
from tests.detectors.repeated_jobs import pass_tables, repeated
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.graph.repeated_forward_pass import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: repeated(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE + 5),),
        metrics=("repeated_ratio", "repeated_products", "traced_steps"),
        title=("same forward pass twice", "a product or convolution", "60 %"),
        introduced="training",
        pipeline_stage="forward-backward",
        remedy="reuse-result",
    ),
    silent=lambda: repeated(60_000, pass_tables(differentiated=True, updated=True)),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: repeated(9_900),
    at=lambda: repeated(10_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (pass_tables(), ["GRF014"]),
        (pass_tables(same_input=False), []),
        (pass_tables(same_weight=False), []),
        (pass_tables(differentiated=True), ["GRF014"]),
        (pass_tables(differentiated=True, updated=True), []),
        (pass_tables(differentiated=True, updated=True, metric=True), []),
        (pass_tables(dropout=True), []),
        (pass_tables(updated=True), []),
        (pass_tables(updated=True, metric=True), ["GRF014"]),
    ],
    ids=[
        "the-same",
        "another-batch",
        "target-network",
        "two-gradients",
        "gradient-after-the-update",
        "metric-and-gradient-after-the-update",
        "dropout",
        "after-the-update",
        "metric-after-the-update",
    ],
)
def test_passes_that_are_the_same(tables: Tables, found: list[str]) -> None:
    """Another input, other weights or random numbers make a second pass one of its own; so do weights that the step has
    updated, unless it is for a metric alone."""
    assert codes(repeated(60_000, tables)) == found
    assert asked(tables) == found


def wide(width: int, *, passes: int = 2) -> Job:
    """Passes of ``width`` x ``width`` products in a step of 60 ms that was not traced."""
    job = train_loop(60 * MS)
    tables = Tables()
    graph = tables.graph(of=job.trace(0, MS, owner="user", updates=1).id)
    handle = graph.op("kernel/resource", "Placeholder", outputs="resource[]")
    square = f"float32[{width},{width}]"
    graph.variables.append((handle.number, "kernel:0", square, True))
    x = graph.op("x", "Placeholder", outputs=square)
    for i in range(passes):
        weight = graph.op(f"pass_{i}/ReadVariableOp", "ReadVariableOp", handle, outputs=square)
        product = graph.op(f"pass_{i}/MatMul", "MatMul", x, weight, outputs=square, line=LINE + i)
        graph.op(f"pass_{i}/Relu", "Relu", product, outputs=square, line=LINE + i)
    read(job, tables)
    return job


def test_without_a_trace_the_cost_is_counted_from_shapes() -> None:
    """Where its lower bound makes a finding; a trace is asked for all the same, and alone where it may be little."""
    findings, checked = look(DETECTOR, wide(1024))
    (found,) = findings
    assert (found.cost.basis, found.where[0].line, checked.capture) == ("modelled", LINE + 1, "ops")
    findings, checked = look(DETECTOR, wide(16))
    assert findings == ()
    assert (checked.outcome, checked.capture) == ("undecided", "ops")


@pytest.mark.parametrize(("passes", "said"), [(2, "forward pass twice"), (5, "forward pass 5 times")])
def test_the_number_of_passes_is_named(passes: int, said: str) -> None:
    """Of the pass that runs most often, the first included."""
    ((found,), _) = look(DETECTOR, wide(1024, passes=passes))
    assert said in found.title
