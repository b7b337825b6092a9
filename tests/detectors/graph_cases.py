"""Sessions with tables of nodes for each detector that looks at them."""

from __future__ import annotations

from tests.derive.sessions import MS
from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.graph_jobs import (
    LINE,
    checked,
    debug,
    double,
    flattened,
    looked_up,
    mapped,
    mapping,
    one_hot,
    padded,
    python_in_step,
    table_tables,
)
from tests.detectors.jobs import train_loop
from tests.detectors.traced_jobs import untraced

NODES = "nodes of traced graphs"
CALLS = 0.9
"""Of the time of a traced job's steps, in the call."""

INP008 = Fixtures(
    firing=lambda: padded(80_000),
    expected=Expected(
        severity="high",
        cost=CALLS * 80 / 81 * (1 - 1.25 * 28 / 400),
        where=(("train.py", 5),),
        metrics=("used_ratio", "used_positions", "columns", "padded_ratio"),
        title=("padded to 400 positions", "use 28 of them", "81 %"),
        introduced="data preparation",
        pipeline_stage="forward-backward",
        remedy="bucket-by-length",
        basis="modelled",
    ),
    silent=lambda: padded(80_000, mean=170.0),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: padded(319),
    at=lambda: padded(325),
)

CFG005 = Fixtures(
    firing=lambda: checked(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 3),),
        metrics=("checking_ratio", "handing_out_ratio", "checking_ops", "traced_steps"),
        title=("enable_check_numerics is on", "60 %", "2 ops"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="debugging-off",
    ),
    silent=lambda: checked(60_000, checks=False),
    not_applicable=lambda: debug(train_loop(20 * MS), on=True),
    missing=NODES,
    below=lambda: checked(9_900),
    at=lambda: checked(10_100),
)
GRF005 = Fixtures(
    firing=lambda: mapped(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE),),
        metrics=("loop_ratio", "saved_ratio", "turns_per_step", "traced_steps"),
        title=("a loop of the graph in loss", "100 turns", "60 %", "map_fn"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="whole-batch",
        basis="modelled",
    ),
    silent=lambda: mapped(60_000, tables=mapping(carries=True)),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: mapped(9_900),
    at=lambda: mapped(10_100),
)
GRF006 = Fixtures(
    firing=lambda: python_in_step(40 * MS),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(("train.py", 20), ("train.py", LINE)),
        metrics=("python_busy_ratio", "python_ns_per_step", "python_calls"),
        title=("mask_bands", "inside of the compiled step", "tf.numpy_function", "40 ms", "40 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="use-tensorflow-ops",
    ),
    silent=lambda: python_in_step(40 * MS, of_data=True),
    not_applicable=lambda: train_loop(20 * MS),
    missing=NODES,
    below=lambda: python_in_step(10 * MS - 1000),
    at=lambda: python_in_step(10 * MS + 1000),
)
GRF007 = Fixtures(
    firing=lambda: one_hot(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE),),
        metrics=("product_ratio", "depth", "traced_steps"),
        title=("one-hot matrix of 12,000 columns", "60 %", "gather"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="gather",
    ),
    silent=lambda: one_hot(60_000, masked=True),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: one_hot(9_900),
    at=lambda: one_hot(10_100),
)
GRF009 = Fixtures(
    firing=lambda: double(60_000),
    expected=Expected(
        severity="high",
        cost=0.36,
        where=(("train.py", LINE),),
        metrics=("double_ratio", "saved_ratio", "traced_steps"),
        title=("60 %", "double precision (float64)"),
        introduced="data preparation",
        pipeline_stage="forward-backward",
        remedy="single-precision",
        basis="modelled",
    ),
    silent=lambda: double(60_000, weights="float64"),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: double(16_500),
    at=lambda: double(16_900),
)
GRF015 = Fixtures(
    firing=lambda: double(60_000, kind="float16"),
    expected=Expected(
        severity="high",
        cost=0.588,
        where=(("train.py", LINE),),
        metrics=("half_ratio", "saved_ratio", "traced_steps"),
        title=("60 %", "half precision (float16) on a CPU"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="single-precision",
        basis="modelled",
    ),
    silent=lambda: double(60_000, kind="bfloat16"),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: double(10_100, kind="float16"),
    at=lambda: double(10_300, kind="float16"),
)
GRF011 = Fixtures(
    firing=lambda: flattened(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE),),
        metrics=("weight_ratio", "weight_elements", "positions", "traced_steps"),
        title=("4,096 positions", "16,777,216 weights", "60 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="pool-before-dense",
    ),
    silent=lambda: flattened(60_000, maps=False),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: flattened(24_800),
    at=lambda: flattened(25_200),
)
GRF012 = Fixtures(
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
