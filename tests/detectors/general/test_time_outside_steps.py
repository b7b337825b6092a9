"""GEN013 time-outside-steps: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, STEPS, nothing, train_loop

from stepscope.derive.ledger import loop_edges
from stepscope.detectors.base import run
from stepscope.detectors.general.time_outside_steps import DETECTOR
from stepscope.detectors.registry import GENERAL
from stepscope.wire.kinds import Kind


def late(between: int, steps: int = STEPS) -> Job:
    """Two loops of ``steps`` steps of 100 ms with ``between`` of the user's Python between them."""
    job = train_loop(90 * MS, steps=steps)
    job.framework(at=2, dur=1)
    job.function(call_file=SCRIPT, call_line=44, call_function="main").every(
        PERIOD, steps, dur=90 * MS, start=steps * PERIOD + between
    )
    times = range(steps * PERIOD, steps * PERIOD + between, 50 * MS)
    job.samples(times, Frame(SCRIPT, "main", 48), Frame(SCRIPT, "load", 70))
    return job


FIXTURES = Fixtures(
    firing=lambda: late(4_000 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 70),),
        metrics=("phase_ratio", "phase_ns", "part at train.py:70"),
        title=("between", "load"),
        per_step=0,
        pipeline_stage="none",
        remedy="less-often",
    ),
    silent=lambda: late(100 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: late(2_500 * MS, 300),
    at=lambda: late(4_000 * MS, 300),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


def two_fits(making: int, dropping: int) -> Job:
    """Two fits of 10 s of steps; each needs so long before its first hook, and after its last one."""
    job = Job()
    job.framework(at=2, dur=1)
    at = 0
    for _ in range(2):
        first = at + making
        last = first + STEPS * PERIOD
        job.loop("fit").at(at, last + dropping - at)
        job.call(Kind.HOOK, "on_train_begin", hook="on_train_begin").at(first, MS)
        job.execution("train").every(PERIOD, STEPS, dur=90 * MS, start=first + 2 * MS)
        job.call(Kind.HOOK, "on_train_end", hook="on_train_end").at(last - MS, MS)
        at = last + dropping
    return job


@pytest.mark.parametrize(
    ("making", "dropping", "what"),
    [(8_000, 0, loop_edges.MAKING), (0, 8_000, loop_edges.DROPPING)],
)
def test_what_keras_does_at_the_edges_of_its_loops_is_said(making: int, dropping: int, what: str) -> None:
    """Making the dataset and letting go of the iterator lie between steps, where no line of the user's shows them."""
    found, _, _ = run([d for d in GENERAL if d.code == "GEN013"], two_fits(making * MS, dropping * MS).view())
    (said,) = (f for f in found if "between" in f.title)
    assert what in said.title
    assert "iterator" in said.explanation
    assert said.remedies[0].id == "fewer-loops"
