"""GRF012 names only optimizers that are in the version that runs, and that leave unused rows alone there."""

from __future__ import annotations

import pytest
from tests.detectors.graph_jobs import looked_up

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL

V1 = "tf.compat.v1.train"


@pytest.mark.parametrize(
    ("versions", "named", "absent"),
    [
        ({"tensorflow": "2.21.0", "keras": "3.15.1"}, "keras.optimizers.MultiOptimizer", "Adagrad"),
        (
            {"tensorflow": "2.18.0", "keras": "3.8.0"},
            "SGD without momentum, in fit with jit_compile=True",
            "MultiOptimizer",
        ),
        ({"tensorflow": "2.15.1", "keras": "2.15.0"}, "Adagrad, or of tf.keras.optimizers.legacy", "jit_compile"),
        ({"tensorflow": "2.8.0", "keras": "2.8.0"}, "SGD, with momentum too, Adagrad or Ftrl", "legacy"),
        (
            {"tensorflow": "2.21.0", "keras": "3.15.1", "tf_keras": "2.21.0"},
            "tf_keras.optimizers.legacy",
            "jit_compile",
        ),
        ({"tensorflow": "2.21.0"}, V1, "legacy"),
    ],
)
def test_advice_is_of_the_version_that_runs(versions: dict[str, str], named: str, absent: str) -> None:
    """Measured: Adagrad saves on Keras 2.15 and not on 3.15, plain SGD the other way round; none has a lazy Adam."""
    job = looked_up(60_000)
    for name, version in versions.items():
        job.framework(name, version)
    findings, _, _ = run(ALL, job.view())
    (found,) = (f for f in findings if f.code == "GRF012")
    said = found.remedies[0].text
    assert named in said
    assert absent not in said
    assert "lazy" not in said.lower()
