"""Sessions for the detectors of work that a graph does without need."""

from __future__ import annotations

from tests.derive.sessions import MS, US
from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.graph_cases import NODES
from tests.detectors.graph_jobs import LINE
from tests.detectors.iterator_jobs import fresh
from tests.detectors.jobs import pulled
from tests.detectors.repeated_jobs import (
    chain_tables,
    chained,
    frozen,
    frozen_tables,
    invariant,
    pass_tables,
    repeated,
    solve_tables,
)
from tests.detectors.traced_jobs import untraced

LEFT = 32 / 1024
"""Of the multiplications, in the other order."""

GRF013 = Fixtures(
    firing=lambda: chained(60_000),
    expected=Expected(
        severity="high",
        cost=0.6 * (1 - LEFT),
        where=(("train.py", LINE), ("train.py", LINE + 1)),
        metrics=("product_ratio", "left_ratio", "traced_steps"),
        title=("wrong order", "1,024 x 1,024", "60 %", "3.1 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="other-order",
        basis="modelled",
    ),
    silent=lambda: chained(60_000, chain_tables(between="Softmax")),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: chained(10_200),
    at=lambda: chained(10_400),
)
GRF014 = Fixtures(
    firing=lambda: repeated(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE + 5),),
        metrics=("repeated_ratio", "repeated_products", "traced_steps"),
        title=("forward pass again", "a product or convolution", "60 %"),
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
GRF016 = Fixtures(
    firing=lambda: invariant(60_000),
    expected=Expected(
        severity="high",
        cost=0.6 * (1 - 1 / 10),
        where=(("train.py", LINE),),
        metrics=("invariant_ratio", "saved_ratio", "turns", "traced_steps"),
        title=("computes the same MatrixSolve", "in call", "10 turns", "60 %"),
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
)
INP009 = Fixtures(
    firing=lambda: fresh(30 * MS, 20 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", 40), ("train.py", 72), ("train.py", 71)),
        metrics=("fresh_ratio", "iterators", "batches_per_iterator", "samples_on_making"),
        title=("a new iterator", "for each batch", "50 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="one-iterator",
    ),
    silent=lambda: fresh(30 * MS, 20 * MS, batches=10),
    not_applicable=lambda: pulled(30 * MS),
    missing="stack samples",
    below=lambda: fresh(10 * MS - US),
    at=lambda: fresh(10 * MS + US),
)


GRF017 = Fixtures(
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
