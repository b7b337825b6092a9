"""Fixtures of the detectors that look at how a program uses its framework."""

from __future__ import annotations

from tests.derive.sessions import MS, US
from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.jobs import (
    CALL,
    REPORT,
    TIDY,
    copying,
    eagerly_fitted,
    growing,
    keras_fit,
    nothing,
    reloading,
    small_batches,
    synced,
    unsampled,
)
from tests.detectors.session_jobs import HELD_OUT, LOSS, TRAIN, fetching

CFG002 = Fixtures(
    firing=small_batches,
    expected=Expected(
        severity="high",
        cost=0.9 * (1 - 4 / 128) + 0.1 * (1 - 4 / 128),
        where=(("train.py", 50),),
        metrics=("fixed_ratio", "ns_per_op", "batch", "batches"),
        title=("small batches", "4 samples", "fixed cost"),
        introduced="data preparation",
        pipeline_stage="forward-backward",
        remedy="larger-batch",
        basis="modelled",
    ),
    silent=lambda: small_batches(ns_per_op=50_000),
    not_applicable=lambda: keras_fit(20 * MS),
    missing="traces of tf.functions",
    below=lambda: small_batches(9),
    at=lambda: small_batches(8),
)
GRF003 = Fixtures(
    firing=lambda: eagerly_fitted(20, 60),
    expected=Expected(
        severity="high",
        cost=(20 + 2 * 20) / 98,
        where=(("train.py", 21), ("train.py", 12)),
        metrics=("eager_ratio", "python_ratio", "samples"),
        title=("run_eagerly is on", "op by op", "82 %", "20 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="remove-run-eagerly",
        basis="modelled",
    ),
    silent=lambda: eagerly_fitted(5, 88),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: eagerly_fitted(9, 60),
    at=lambda: eagerly_fitted(10, 60),
)
GRF004 = Fixtures(
    firing=lambda: growing(62 * MS),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", TIDY),),
        metrics=("growing_ratio", "ops_per_step", "graph_ops", "fresh_runs"),
        title=("the graph grows", "ops a step", "98 runs", "60 ms each", "60 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="build-graph-once",
    ),
    silent=lambda: growing(62 * MS, until=0),
    not_applicable=lambda: growing(62 * MS, sized=False),
    missing="sizes of the graphs of sessions",
    below=lambda: growing(5 * MS - US),
    at=lambda: growing(5 * MS),
)
HST007 = Fixtures(
    firing=lambda: reloading(60 * MS),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", 33),),
        metrics=("rebuild_ratio", "builds", "build_ns", "steps_between"),
        title=("the model is loaded", "again and again", "98 times in 98 steps", "load_model", "60 %"),
        introduced="prediction",
        exposed="prediction",
        pipeline_stage="none",
        remedy="build-once",
    ),
    silent=lambda: reloading(80 * MS, every=30),
    not_applicable=nothing,
    missing="steps",
    below=lambda: reloading(5 * MS - US),
    at=lambda: reloading(5 * MS),
)
HST008 = Fixtures(
    firing=lambda: synced(40 * MS, 30 * MS),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(("train.py", REPORT),),
        metrics=("sync_ratio", "host_ratio", "lost_ratio", "syncs_per_step"),
        title=("waits for the device", "float", "40 ms each", "30 %"),
        pipeline_stage="device-to-host",
        remedy="read-less-often",
        basis="modelled",
    ),
    silent=lambda: synced(95 * MS, MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: synced(5 * MS - US, 30 * MS),
    at=lambda: synced(5 * MS, 30 * MS),
)
HST012 = Fixtures(
    firing=lambda: fetching(40 * MS),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(("train.py", LOSS), ("train.py", TRAIN)),
        metrics=("repeated_ratio", "shared_ratio", "runs_per_step"),
        title=("same part of the graph 2 times", "Mean:0", "GradientDescent", "40 ms a step"),
        pipeline_stage="forward-backward",
        remedy="one-run",
    ),
    silent=lambda: fetching(40 * MS, line=HELD_OUT),
    not_applicable=lambda: growing(MS),
    missing="nodes of traced graphs",
    below=lambda: fetching(10 * MS - 200 * US),
    at=lambda: fetching(10 * MS),
)
HST013 = Fixtures(
    firing=lambda: copying(49),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", CALL),),
        metrics=("copy_ratio", "call_ratio", "samples"),
        title=("each call copies NumPy arrays into tensors", "50 ms a step", "50 %"),
        introduced="data preparation",
        exposed="prediction",
        pipeline_stage="host-to-device",
        remedy="convert-once",
    ),
    silent=lambda: copying(49, own=True),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: copying(14),
    at=lambda: copying(15),
)
