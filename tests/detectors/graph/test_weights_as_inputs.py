"""GRF025 weights-as-inputs: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Job
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import nothing

from stepscope.detectors.graph.weights_as_inputs import DETECTOR
from stepscope.model.log.events import InferenceSession
from stepscope.wire.kinds import Kind


def serving(run: float, *, replaceable: int = 30) -> Job:
    """Requests every 100 ms, of which the run takes so many milliseconds."""
    job = Job()
    job.framework("onnxruntime", "1.32.0")
    job.event(InferenceSession(model="m.onnx", replaceable=replaceable, file=SCRIPT, line=30, function="load"))
    job.call(Kind.INFERENCE, "m.onnx", call_file=SCRIPT, call_line=40, call_function="serve").every(
        100 * MS, 100, dur=int(run * MS), arg=1
    )
    return job


FIXTURES = Fixtures(
    firing=lambda: serving(60),
    expected=Expected(
        severity="medium",
        cost=0.198,
        basis="modelled",
        where=(("train.py", 30), ("train.py", 40)),
        metrics=("run_ratio", "replaceable"),
        title=("30 weights of the model are inputs too", "60 % of the time"),
        introduced="model building",
        exposed="prediction",
        pipeline_stage="forward-backward",
        remedy="constant-weights",
    ),
    silent=lambda: serving(60, replaceable=0),
    not_applicable=nothing,
    missing="steps",
    below=lambda: serving(9.9),
    at=lambda: serving(10.1),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It names the line that makes the session, then that of its runs."""
    claim(DETECTOR, FIXTURES)


def test_one_model_has_one_finding() -> None:
    """However many lines run it; their time counts together."""
    job = serving(9)
    job.call(Kind.INFERENCE, "m.onnx", call_file=SCRIPT, call_line=50, call_function="warm").every(
        100 * MS, 100, dur=5 * MS, start=50 * MS, arg=1
    )
    ((found,), _) = look(DETECTOR, job)
    assert "14 % of the time" in found.title
