"""GEN004 time-in-callbacks: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, Job, S
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import called_back, nothing

from stepscope.detectors.general.time_in_callbacks import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: called_back(30 * MS),
    expected=Expected(
        severity="high",
        cost=0.3,
        basis="modelled",
        where=(("train.py", 30),),
        metrics=("callbacks_ratio", "part at train.py:30"),
        title=("callbacks take 30 % of the step time", "Plotter"),
        pipeline_stage="output-processing",
        remedy="callback-less-often",
    ),
    silent=lambda: called_back(MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: called_back(4 * MS),
    at=lambda: called_back(6 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("calls", "told", "first"),
    [
        (dict.fromkeys(range(100), 30 * MS), "(30 ms a step)", "callback-less-often"),
        ({20: 2 * S, 40: 2 * S, 60: 2 * S}, "(2 s in 3 of 98 steps)", "callback-less-often"),
        ({50: S}, "(1 s in one of 98 steps)", "look-at-that-step"),
    ],
)
def test_a_mean_is_told_of_what_each_step_has(calls: dict[int, int], told: str, first: str) -> None:
    """Else how long it takes in the steps that have it, and in how many; what happened once is not to be done less."""
    job, at = Job(), 0
    run, callback = job.execution("train"), job.callback("Plotter.on_train_batch_end")
    for i in range(100):
        run.at(at, 50 * MS, arg=1)
        if i in calls:
            callback.at(at + 50 * MS, calls[i])
        at += 60 * MS + calls.get(i, 0)
    (found,), _ = look(DETECTOR, job)
    assert told in found.title
    assert [one.id for one in found.remedies] == [first]
