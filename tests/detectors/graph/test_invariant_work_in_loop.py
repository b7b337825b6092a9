"""GRF016 invariant-work-in-loop: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.detectors.asking import asked, codes
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, NODES
from tests.detectors.repeated_jobs import invariant, solve_tables
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.graph.invariant_work_in_loop import DETECTOR

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
