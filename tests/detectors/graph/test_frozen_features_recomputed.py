"""GRF017 frozen-features-recomputed: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import Job
from tests.detectors.asking import asked_of, codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, NODES, graph_only
from tests.detectors.repeated_jobs import fed, frozen, frozen_tables
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.graph.frozen_features_recomputed import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: frozen(60_000),
    expected=Expected(
        severity="high",
        cost=0.6 * 0.9,
        where=(("train.py", LINE),),
        metrics=("frozen_ratio", "saved_ratio", "frozen_products", "passes", "traced_steps"),
        title=("frozen layers", "same features", "in every epoch", "60 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="features-once",
        basis="modelled",
    ),
    silent=lambda: frozen(60_000, frozen_tables(random="StatelessRandomUniformV2")),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: frozen(19_900),
    at=lambda: frozen(20_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


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
