"""GRF024 program-for-each-shape: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Job
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import nothing

from stepscope.detectors.base import run
from stepscope.detectors.graph.program_for_each_shape import DETECTOR
from stepscope.detectors.registry import ALL

CALLS, CALL, PERIOD = 60, 20 * MS, 22 * MS


def slow_calls(
    count: int,
    dur: int = 500 * MS,
    *,
    signature: str = "(ids: int32(32, None))",
    jit: bool = True,
    early: bool = False,
    rest: int = 0,
) -> Job:
    """Calls of 20 ms, every 22 ms.

    Args:
        count: how many of them take ``dur``.
        dur: time of a long call.
        signature: for which the function is traced.
        jit: whether XLA compiles it.
        early: whether the long calls come first, and not every fourth call.
        rest: time of the job before its calls.
    """
    job, at = Job(), rest
    job.framework(at=2, dur=1)
    job.trace(0, MS, function="encode", file=SCRIPT, line=7, end_line=9, jit=jit, signature=signature)
    call = job.execution()
    for i in range(CALLS):
        long = i <= count if early else i % 4 == 1 and i // 4 < count
        call.at(at, dur if long else CALL)
        at += dur if long else PERIOD
    job.ended_ns = at
    return job


FIXTURES = Fixtures(
    firing=lambda: slow_calls(8),
    expected=Expected(
        severity="high",
        cost=0.75,
        basis="modelled",
        where=(("train.py", 7),),
        metrics=("long_ratio", "long_calls", "long_ns", "usual_ns"),
        title=("compiles encode again for new shapes", "8 of 5", "take 500 ms instead of 20 ms"),
        introduced="data preparation",
        pipeline_stage="forward-backward",
        remedy="constant-shapes",
        per_step=66 * MS,
    ),
    silent=lambda: slow_calls(8, jit=False),
    not_applicable=nothing,
    missing="steps",
    below=lambda: slow_calls(4),
    at=lambda: slow_calls(5),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    "job",
    [slow_calls(8, 90 * MS), slow_calls(5, 55 * MS), slow_calls(8, signature="(ids: int32(32, 64))")],
    ids=["not-that-long", "little-time", "one-shape"],
)
def test_other_long_calls(job: Job) -> None:
    """Calls that take a little longer, and those of a function for one shape, are something else."""
    assert look(DETECTOR, job)[0] == ()


def test_long_calls_of_a_thread_that_waits_for_a_cpu_are_no_compilations() -> None:
    """Other processes take more than the share that the long calls have."""
    job = slow_calls(8)
    job.machine(6, cpus=2, got=0.2, waiting=0.9, others=1.8)
    assert look(DETECTOR, job)[0] == ()


def test_the_function_with_the_open_shape_is_named() -> None:
    job = slow_calls(8)
    job.trace(0, MS, function="other", file=SCRIPT, line=3, jit=True, signature="(ids: int32(32, 64))")
    ((found,), _) = look(DETECTOR, job)
    assert "compiles encode again" in found.title


def test_a_wait_for_input_within_the_call_is_no_compilation() -> None:
    """Keras' fit pulls its batches inside of its compiled function; nothing shows how long that waits."""
    job = slow_calls(8)
    job.loop("fit").at(0, job.ended_ns)
    job.iterator(job.dataset("MapDataset", job.dataset("RangeDataset", line=70), line=71))
    assert look(DETECTOR, job)[0] == ()


@pytest.mark.parametrize(("rest", "found"), [(0, True), (60_000 * MS, False)], ids=["short run", "long run"])
def test_shapes_that_come_early_cost_a_part_of_the_run(rest: int, *, found: bool) -> None:
    """Eight calls of half a second before the steps are steady; the first of them would have compiled anyway."""
    findings, _ = look(DETECTOR, slow_calls(7, early=True, rest=rest))
    assert bool(findings) is found
    if found:
        assert "7 of 59 later calls take 500 ms instead of 20 ms" in findings[0].title
        assert "of the run" in findings[0].title
        assert findings[0].cost.ratio == pytest.approx(7 * 480 / (8 * 500 + 52 * 22), abs=0.02)
        assert (findings[0].pipeline_stage, findings[0].exposed_stage) == ("none", "initialization")


@pytest.mark.parametrize(("count", "asked"), [(8, False), (2, True)])
def test_no_trace_is_asked_for_where_the_times_say_it(count: int, *, asked: bool) -> None:
    _, checked, _ = run(ALL, slow_calls(count).view())
    (traced,) = (one for one in checked if one.detector == "GRF010")
    assert (traced.capture == "ops") is asked
