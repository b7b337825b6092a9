"""Graphs that look as if they did work twice or in a bad order, and do not."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS, Job
from tests.detectors.constant_cases import constant_tables, inverting
from tests.detectors.graph_jobs import LINE, graph_only
from tests.detectors.iterator_jobs import fresh
from tests.detectors.jobs import copying
from tests.detectors.metric_cases import measured, metric_tables
from tests.detectors.repeated_jobs import (
    chain_tables,
    chained,
    fed,
    frozen,
    frozen_tables,
    invariant,
    pass_tables,
    repeated,
    solve_tables,
)
from tests.detectors.test_graph_look_alikes import asked, asked_of
from tests.detectors.test_look_alikes import codes

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL


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


@pytest.mark.parametrize(
    ("job", "found"),
    [(fresh(30 * MS), ["INP009"]), (fresh(0, 50 * MS), ["INP009"]), (fresh(30 * MS, batches=5), [])],
    ids=["filling", "making", "some-batches-each"],
)
def test_iterators_that_are_made_for_one_batch(job: Job, found: list[str]) -> None:
    """Filling the buffers anew or making the iterator may take the time; one for five batches is a short epoch."""
    assert [code for code in codes(job) if code == "INP009"] == found


@pytest.mark.parametrize(("period", "found"), [(4 * MS, []), (10 * MS, ["HST013"])], ids=["small-arrays", "large"])
def test_arrays_that_are_copied(period: int, found: list[str]) -> None:
    """A fifth of a step of 4 ms is what making tensors of a few small arrays takes: there is nothing to make once."""
    assert [code for code in codes(copying(20, period=period)) if code == "HST013"] == found


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


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (frozen_tables(), ["GRF017"]),
        (frozen_tables(unused_gradient=True), ["GRF017"]),
        (frozen_tables(trained=True), []),
        (frozen_tables(written_elsewhere=True), []),
        (frozen_tables(random="RandomUniform"), []),
        (frozen_tables(data_op="StatelessRandomUniformV2"), []),
        (frozen_tables(data_op="EagerPyFunc"), []),
        (frozen_tables(mixes=True), []),
        (frozen_tables(also_on_output=True), []),
        (frozen_tables(argument=True), []),
    ],
    ids=[
        "frozen",
        "gradient-that-nobody-asked-for",
        "gradient-handed-out",
        "another-graph-trains-it",
        "augmented-in-the-model",
        "augmented-in-the-dataset",
        "python-in-the-dataset",
        "examples-mixed",
        "loss-on-the-output",
        "not-the-dataset-s",
    ],
)
def test_features_that_are_the_same_in_each_epoch(tables: Tables, found: list[str]) -> None:
    """The weights stay, the data are the dataset's, and nothing is random; else the layers have to run."""
    assert [code for code in codes(frozen(60_000, tables)) if code == "GRF017"] == found
    assert [code for code in asked_of(fed(graph_only(tables))) if code == "GRF017"] == found


@pytest.mark.parametrize(
    "job",
    [
        frozen(60_000, epochs=1),
        frozen(60_000, source="RandomDataset"),
        frozen(60_000, cardinality=-1),
    ],
    ids=["one-pass", "random-seeds", "endless"],
)
def test_examples_that_do_not_come_again(job: Job) -> None:
    """One pass, a dataset of random numbers, and a stream: no features are computed twice."""
    assert "GRF017" not in codes(job)


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
