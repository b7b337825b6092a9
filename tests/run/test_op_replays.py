"""Ops run alone after a real job: whether its compute is as fast as it can be here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

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
until = time.monotonic() + 8
while time.monotonic() < until:
    float(train_step(x))
"""
PATIENT_S = 200.0
"""A loaded machine takes long to import TensorFlow."""


def products(project: Project) -> None:
    """A job whose heaviest op is run alone."""
    done = project.run("run", str(project.script("job.py", PROGRAM)), patience_s=300)
    assert done.returncode == 0, done.stderr
    (path,) = project.sessions()
    assert open_session(path).op_traces, done.stderr
    op_replays.replay(path, seconds=PATIENT_S)  # again: on a loaded machine 6 s do not reach far


@pytest.fixture(name="ran", scope="module")
def _ran(ran_once: Callable[[Callable[[Project], None]], Project]) -> Path:
    """The session of that job."""
    (path,) = ran_once(products).sessions()
    return path


def test_a_product_is_run_alone(ran: Path) -> None:
    """The heaviest op of the steps has a time alone, and the report says what that proves."""
    limits = analysis.analyze(ran).limits
    assert limits is not None
    (product,) = [op for op in limits.ops if op.type == "MatMul"]
    assert product.alone_ns > 0, product.why
    assert product.flops_per_s == pytest.approx(2 * 768**3 / (1e-9 * product.alone_ns), rel=0.01)
    assert product.inputs == ("float32[768,768]", "float32[768,768]")
    assert product.proven == (product.why == "")
    assert (product.ratio <= limits.explained_ratio + 1e-9) if product.proven else True


@pytest.mark.parametrize("changed", [{"budget": "0%"}, {"exit_code": 3}], ids=["no-budget", "failed"])
def test_nothing_is_run_alone(ran: Path, tmp_path: Path, changed: dict[str, object]) -> None:
    """Without a budget, and after a job that failed, the report does not wait, whatever was traced."""
    path = Path(shutil.copytree(ran, tmp_path / ran.name))
    (path / "captures" / "replay.json").unlink()
    manifest = path / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changed))
    opened = open_session(path)
    assert opened.op_traces
    assert not op_replays.wanted(opened.manifest)
    op_replays.replay(path, seconds=PATIENT_S)
    assert not (path / "captures" / "replay.json").exists()
    assert analysis.analyze(path).limits is None
