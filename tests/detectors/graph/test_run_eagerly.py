"""GRF003 run-eagerly: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame
from tests.detectors.asking import codes, find
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import FUNCTION_CALL, eager, eagerly_fitted, train_loop, unsampled

from stepscope.detectors.graph.run_eagerly import DETECTOR
from stepscope.model.log.program import Setting

FIXTURES = Fixtures(
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


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_an_eager_step_of_keras_is_one_finding() -> None:
    """Keras' own step runs eagerly by a setting only: GRF003, and not HST002 besides."""
    assert codes(eagerly_fitted(49, 39)) == ["GRF003"]
    assert codes(eagerly_fitted(5, 88)) == []


def test_functions_that_run_eagerly_are_named() -> None:
    """Ops run from Python below the call of a tf.function: a setting does it, at the line that set it."""
    job = train_loop(99 * MS)
    job.event(Setting(name="run_functions_eagerly", value=True, file=SCRIPT, line=3, function="main"))
    (found,) = find(eager(49, 39, job=job, below=(Frame(SCRIPT, "main", 44), FUNCTION_CALL)))
    assert (found.code, found.remedies[0].id) == ("GRF003", "remove-run-functions-eagerly")
    assert [(p.file, p.line) for p in found.where] == [("train.py", 3), ("train.py", 12)]
