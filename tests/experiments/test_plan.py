"""What a first run suggests to try."""

from __future__ import annotations

import msgspec
import pytest
from tests.reports.samples import clean, finding

from stepscope.errors import UsageError
from stepscope.experiments import plan, proofs
from stepscope.model.report.finding import Component, Place, Report


def _report(**shares: float) -> Report:
    anatomy = tuple(
        Component(component=name.replace("_", "-"), pipeline_stage="none", ratio=ratio, ns_per_step=0)
        for name, ratio in shares.items()
    )
    return msgspec.structs.replace(clean(), anatomy=anatomy, findings=())


def test_components_suggest_what_shortens_them_the_largest_first() -> None:
    found = plan.candidates(_report(input_wait=0.6, callbacks=0.3, call=0.1))
    assert [one.trial for one in found if one.kind == "ceiling"][:2] == ["compute-only", "no-callbacks"]
    assert "input-wait takes 60 %" in found[0].reason


def test_small_components_suggest_nothing() -> None:
    assert plan.candidates(_report(input_wait=0.04, callbacks=0.04)) == ()


def test_a_finding_suggests_its_trial_with_its_cost() -> None:
    place = Place(file="train.py", line=7, function="Plots.on_train_batch_end")
    slow = msgspec.structs.replace(finding("HST004"), where=(place,))
    (first, *_) = plan.candidates(msgspec.structs.replace(_report(), findings=(slow,)))
    assert first.trial == "without-callback:Plots"
    assert first.expected_ratio == slow.cost.ratio


@pytest.mark.parametrize(
    ("code", "place", "trials"),
    [
        ("HST001", Place(file="a.py", line=3), ("stub:a.py:3",)),
        ("HST001", Place(file="", line=3), ()),
        ("HST004", Place(file="a.py", line=3, function="main"), ("no-callbacks",)),
        ("GRF012", Place(file="a.py", line=3), ()),
    ],
)
def test_the_argument_of_a_trial_comes_from_the_place(code: str, place: Place, trials: tuple[str, ...]) -> None:
    assert proofs.trials_of(msgspec.structs.replace(finding("HST004"), code=code, where=(place,))) == trials


def test_every_trial_of_a_detector_exists() -> None:
    """No finding names a trial that ``whatif`` refuses."""
    named = {trial for trials in proofs.OF_CODE.values() for trial in trials} - {proofs.STUB, proofs.ONE_CALLBACK}
    for trial in (*named, f"{proofs.STUB}:a.py:1", f"{proofs.ONE_CALLBACK}:A"):
        assert plan.kind_of(trial) in {"gain", "ceiling"}


def test_an_unknown_trial_is_refused() -> None:
    with pytest.raises(UsageError, match="expected one of"):
        plan.named(["nothing"])
