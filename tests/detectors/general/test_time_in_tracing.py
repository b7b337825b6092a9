"""GEN007 time-in-tracing: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import compiled_anew, nothing, retraced

from stepscope.detectors.general.time_in_tracing import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: retraced(60 * MS, traces=85),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 10), ("train.py", 44)),
        metrics=("tracing_ratio", "part at train.py:10"),
        title=("traced within the steps: 52 % of the step time",),
        introduced="model building",
        exposed="prediction",
        pipeline_stage="forward-backward",
        remedy="one-function",
    ),
    silent=lambda: retraced(MS, traces=85),
    not_applicable=nothing,
    missing="steps",
    below=lambda: retraced(4 * MS, traces=85),
    at=lambda: retraced(7 * MS, traces=85),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


def test_traces_of_folds_are_information() -> None:
    """A model that is built for each fold is traced for each: wanted, unlike a function that the loop makes again."""
    folds, function = (look(DETECTOR, job)[0][0] for job in (compiled_anew(40 * MS, every=2), FIXTURES.firing()))
    assert (folds.severity, "for folds or trials" in folds.title) == ("info", True)
    assert "for folds or trials" not in function.title


KERAS = "/venv/lib/python3.11/site-packages/keras/src"
ADAPTER, TRAINER = f"{KERAS}/trainers/data_adapters/array_data_adapter.py", f"{KERAS}/backend/tensorflow/trainer.py"


@pytest.mark.parametrize(
    ("cause", "file", "owner", "remedies"),
    [
        ("new-function", ADAPTER, "tf.data", ["fewer-library-calls"]),
        ("new-function", "train.py", "tf.data", ["one-function", "one-signature"]),  # the user's own dataset
        ("new-function", TRAINER, "keras", ["one-function", "one-signature"]),  # a model that is compiled again
        ("shape", TRAINER, "keras", ["one-function", "one-signature"]),  # batches of many sizes
    ],
)
def test_what_keras_makes_in_each_call_is_not_for_the_user_to_make_once(
    cause: str, file: str, owner: str, remedies: list[str]
) -> None:
    """A dataset with new functions in each call of ``predict``: only fewer calls help."""
    (found,), _ = look(DETECTOR, retraced(60 * MS, traces=85, cause=cause, file=file, owner=owner))
    assert [remedy.id for remedy in found.remedies] == remedies
