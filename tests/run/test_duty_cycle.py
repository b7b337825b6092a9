"""A training whose steps are too short for wrappers: most are only counted, and the report is right all the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stepscope.wire.kinds import Kind

from .conftest import Project, environment

pytestmark = [pytest.mark.tf, pytest.mark.slow]

FAST = """
import sys, numpy as np, tensorflow as tf
steps = int(sys.argv[2])
x = np.random.default_rng(0).standard_normal((256, 64)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat().batch(32).prefetch(2)
options = tf.data.Options()
options.autotune.enabled = False  # on a busy machine the end of a fit waits for that thread, and INP016 rightly says so
data = data.with_options(options)
model = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(1)])
if sys.argv[1] == "fit":
    model.compile("sgd", "mse")
    model.fit(data, steps_per_epoch=steps // 2, epochs=2, verbose=0)
else:
    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
            variable.assign_sub(0.01 * gradient)
        return loss
    for x, y in data.take(steps):
        step(x, y)
"""


@pytest.mark.parametrize(("kind", "steps"), [("fit", 3_000), ("loop", 8_000)])
def test_every_step_is_counted_though_most_lie_in_gaps(project: Project, kind: str, steps: int) -> None:
    """The report knows how many steps, though wrappers were detached; nothing is invented about the job."""
    project.script("fast.py", FAST)
    arguments = ("run", "--report-json", "out.json", "fast.py", kind, str(steps))
    done = project.run(*arguments, env=environment(TF_CPP_MIN_LOG_LEVEL="2"))
    assert done.returncode == 0, done.stderr
    report = json.loads((project.root / "out.json").read_text())
    assert report["overhead"]["rest_ratio"] > 0.1
    assert report["session"]["steps"] == steps
    assert report["session"]["throughput"]["samples_per_s"] == pytest.approx(
        32 * report["session"]["throughput"]["steps_per_s"], rel=0.01
    )
    assert {f["code"] for f in report["findings"] if f["severity"] != "info"} <= {"CFG001"}
    (worker,) = project.session().workers
    records, starts, ends = worker.with_gaps(), worker.gaps.start_ns, worker.gaps.end_ns
    hooks = records.start_ns[(records.kind == Kind.EXECUTION) | (records.kind == Kind.FUNCTION)]
    at = np.searchsorted(starts, hooks, side="right") - 1
    inside = (at >= 0) & (hooks + 1_000_000 < ends[np.maximum(at, 0)]) & (hooks > starts[np.maximum(at, 0)] + 1_000_000)
    assert not inside.any()
