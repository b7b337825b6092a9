"""HST005 evaluation-in-batch-callback: its fixtures, and what looks like it."""

from __future__ import annotations

import msgspec
import pytest
from tests.derive.sessions import MS, NESTED, US
from tests.detectors.asking import codes, find
from tests.detectors.fit_jobs import epochs, read_models
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, keras_fit, nothing, validated

from stepscope.detectors.host.evaluation_in_batch_callback import DETECTOR
from stepscope.model.log.events import Traced
from stepscope.wire.kinds import Kind

FIXTURES = Fixtures(
    firing=lambda: validated(89 * MS, calls=40, every=2),
    expected=Expected(
        severity="high",
        cost=40 * 89 / 9800,
        where=(("train.py", 32), ("train.py", 30)),
        metrics=("evaluation_ratio", "steps_between", "calls"),
        title=("callback Watch.on_train_batch_end", "model.evaluate", "every 2 batches", "89 ms each"),
        introduced="evaluation",
        pipeline_stage="none",
        remedy="evaluate-per-epoch",
    ),
    silent=lambda: validated(89 * MS, calls=2, every=40),
    not_applicable=nothing,
    missing="steps",
    below=lambda: validated(49 * MS - US, calls=20, every=4),
    at=lambda: validated(49 * MS, calls=20, every=4),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_validation_of_each_epoch_is_none() -> None:
    """What fit's own validation takes is what the user asked for."""
    assert codes(read_models(epochs(keras_fit(10 * MS), "evaluate", 80 * MS), wait=US)) == []


def test_evaluation_at_the_end_of_epochs_is_none() -> None:
    """An evaluate called from on_epoch_end is no evaluation on batches, and no loop of its own."""
    assert codes(read_models(validated(80 * MS, calls=4, every=20, hook="on_epoch_end"), wait=US)) == []


def test_evaluations_are_counted_in_gaps_too() -> None:
    """One was seen inside of the callback: those called at that place in a gap are its as well."""
    job = keras_fit(10 * MS)
    job.callback("Watch.on_train_batch_end").at(PERIOD + 10 * MS, 61 * MS)
    evaluate = job.loop("evaluate", line=32)
    elsewhere = job.loop("evaluate", line=90)
    evaluate.at(PERIOD + 10 * MS, 60 * MS, flags=NESTED)
    job.gap(40 * PERIOD, 40 * PERIOD, 40)
    for i in range(40, 80, 2):
        evaluate.at(i * PERIOD + 10 * MS, 60 * MS, flags=NESTED)
        elsewhere.at(i * PERIOD + 75 * MS, 20 * MS, flags=NESTED)
    (found,) = (finding for finding in find(job) if finding.code == "HST005")
    seen = {evidence.metric: evidence.value for evidence in found.evidence}
    assert seen["calls"] == 21
    assert found.cost.ratio == pytest.approx(21 * 60 / 9800, rel=0.05)


def test_evaluation_on_batches_is_not_the_callbacks_own_work() -> None:
    """A callback that evaluates is one finding, with the evaluation's code."""
    assert codes(read_models(validated(80 * MS, calls=45, every=2), wait=US)) == ["HST005"]


@pytest.mark.parametrize(("owner", "ordinal"), [("keras", 1), ("keras", 2), ("user", 1), ("tf.data", 1)])
def test_a_new_model_for_each_call_is_the_reason(owner: str, ordinal: int) -> None:
    """Its function is traced in each of them. Traces of the user's functions, of those for data that Keras makes of
    arrays, and of the one function of a kept model for other shapes say nothing of it.
    """
    job = validated(89 * MS, calls=40, every=2)
    for i in range(40):
        at = 2 * i * PERIOD + 30 * MS
        made = Traced(id=i, function="one_step", function_key=i, at=at + 20 * MS, dur=20 * MS, owner=owner)
        job.event(msgspec.structs.replace(made, ordinal=ordinal))
        job.call(Kind.TRACE, "one_step").at(at, 20 * MS)
    (found,) = (one for one in find(job) if one.code == "HST005")
    new = (owner, ordinal) == ("keras", 1)
    assert ("model.evaluate of a new model every 2 batches" in found.title) is new
    assert found.remedies[0].id == ("one-model" if new else "evaluate-per-epoch")
    values = {one.metric: one.value for one in found.evidence}
    assert ("traces" in values) is new
    assert not new or 0.8 * values["calls"] <= values["traces"] <= values["calls"]
