"""GEN010 time-in-garbage-collection: its fixtures."""

from __future__ import annotations

import re

import pytest
from tests.derive.sessions import MS, SCRIPT, Job
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import CALL, PERIOD, STEPS, nothing, train_loop
from tests.detectors.trend_jobs import seen_in_windows

from stepscope.detectors.general.time_in_garbage_collection import DETECTOR
from stepscope.wire.kinds import Kind


def collecting(dur: int, *, every: int = 1, same_length: bool = True) -> Job:
    """A loop with a collection of ``dur`` in each ``every``-th step; ``same_length``: all steps take 100 ms."""
    job = train_loop(20 * MS) if same_length else Job()
    collection = job.call(Kind.GC, "gc")
    if same_length:
        collection.every(every * PERIOD, STEPS // every, dur=dur, start=PERIOD + 20 * MS)
        return job
    call, at = job.function(call_file=SCRIPT, call_line=CALL, call_function="main"), 0
    for i in range(STEPS):
        call.at(at, 80 * MS)
        at += 80 * MS
        if i % every == 0:
            collection.at(at, dur)
            at += dur
    return job


FIXTURES = Fixtures(
    firing=lambda: collecting(30 * MS),
    expected=Expected(
        severity="high",
        cost=0.3,
        basis="modelled",
        where=(("train.py", CALL),),
        metrics=("gc_ratio", "collections"),
        title=("garbage collection takes 30 % of the step time", "in every step"),
        exposed="prediction",
        pipeline_stage="output-processing",
        remedy="freeze-objects",
    ),
    silent=lambda: collecting(MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: collecting(4 * MS),
    at=lambda: collecting(6 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("dur", "severity"), [(9 * MS, "info"), (11 * MS, "medium")])
def test_collections_in_every_step_are_a_loss_from_a_tenth_on(dur: int, severity: str) -> None:
    """There is no step without one to compare with, but the thread does nothing else meanwhile."""
    ((found,), _) = look(DETECTOR, collecting(dur))
    assert found.severity == severity


def test_a_saving_is_claimed_if_steps_without_a_collection_show_it() -> None:
    """Every third step collects for 60 ms: the others show what a step takes without it."""
    ((found,), _) = look(DETECTOR, collecting(60 * MS, every=3, same_length=False))
    assert (found.severity, found.cost.basis) == ("medium", "measured")
    assert found.cost.low <= found.cost.ratio <= found.cost.high < 0.25


def test_no_saving_is_claimed_if_the_other_steps_are_as_long() -> None:
    """Work that fills the steps without a collection to the same length would not shrink with it."""
    ((found,), _) = look(DETECTOR, collecting(60 * MS, every=3))
    assert (found.severity, found.cost.ratio) == ("info", 0.0)


@pytest.mark.parametrize(
    ("every", "starts", "said"),
    [
        (10, (0, 201, 404, 607, 810), "it runs every 10 steps"),
        (12, (0, 109, 205, 407, 615, 817), "it runs every 12 steps"),
        (6, (0, 100, 305, 501), "it runs every 6 steps"),
    ],
)
def test_how_often_is_known_from_steps_timed_without_a_gap(every: int, starts: tuple[int, ...], said: str) -> None:
    """How many collections the timed windows hold is chance; the steps between two of one window are not."""
    ((found,), _) = look(DETECTOR, seen_in_windows(every, starts=starts))
    assert said in found.title
    (each,) = (one.value for one in found.evidence if one.metric == "collections")
    assert each == pytest.approx(1 / every)


def test_a_lone_collection_gives_a_bound() -> None:
    """One in each window: no distance was seen, so the longest stretch without one is said."""
    ((found,), _) = look(DETECTOR, seen_in_windows(20, starts=(10, 110, 210), length=19))
    assert re.search(r"it runs every \d+ steps or more", found.title)
