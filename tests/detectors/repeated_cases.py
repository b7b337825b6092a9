"""Sessions for the detectors of work that a graph does without need."""

from __future__ import annotations

from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.graph_cases import NODES
from tests.detectors.graph_jobs import LINE
from tests.detectors.repeated_jobs import chain_tables, chained, pass_tables, repeated
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
    silent=lambda: repeated(60_000, pass_tables(differentiated=True)),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: repeated(9_900),
    at=lambda: repeated(10_100),
)
