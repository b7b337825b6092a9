"""Ops run alone after a real job: whether its compute is as fast as it can be here."""

from __future__ import annotations

import json

import pytest
from tests.run.conftest import Project

from stepscope.sessions import analysis
from stepscope.sidecar import op_replays
from stepscope.store import open_session

pytestmark = [pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(400)]

PROGRAM = """
import time
import tensorflow as tf

weights = tf.Variable(tf.random.uniform((768, 768)))

@tf.function
def train_step(x):
    return tf.reduce_sum(tf.matmul(x, weights))

x = tf.random.uniform((768, 768))
until = time.monotonic() + {seconds}
while time.monotonic() < until:
    float(train_step(x))
raise SystemExit({code})
"""
PATIENT_S = 200.0
"""A loaded machine takes long to import TensorFlow."""


def test_a_product_is_run_alone(project: Project) -> None:
    """The heaviest op of the steps has a time alone, and the report says what that proves."""
    script = project.script("job.py", PROGRAM.format(seconds=15, code=0))
    done = project.run("run", str(script), patience_s=300)
    assert done.returncode == 0, done.stderr
    (path,) = project.sessions()
    assert open_session(path).op_traces, done.stderr
    op_replays.replay(path, seconds=PATIENT_S)  # again: on a loaded machine 6 s do not reach far
    limits = analysis.analyze(path).limits
    assert limits is not None
    (product,) = [op for op in limits.ops if op.type == "MatMul"]
    assert product.alone_ns > 0, product.why
    assert product.flops_per_s == pytest.approx(2 * 768**3 / (1e-9 * product.alone_ns), rel=0.01)
    assert product.inputs == ("float32[768,768]", "float32[768,768]")
    assert product.proven == (product.why == "")
    assert (product.ratio <= limits.explained_ratio + 1e-9) if product.proven else True


@pytest.mark.parametrize(("words", "code"), [(("--budget", "0%"), 0), ((), 3)], ids=["no-budget", "failed"])
def test_nothing_is_run_alone(project: Project, words: tuple[str, ...], code: int) -> None:
    """Without a budget, and after a job that failed, the report does not wait."""
    script = project.script("job.py", PROGRAM.format(seconds=3, code=code))
    done = project.run("run", *words, str(script))
    assert done.returncode == code
    (path,) = project.sessions()
    manifest = open_session(path).manifest
    assert not op_replays.wanted(manifest)
    assert not (path / "captures" / "replay.json").exists()
    assert json.loads((path / "report.json").read_text())["limits"] is None
