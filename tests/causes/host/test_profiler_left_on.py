"""In which steps the user's own profiler recorded."""

from __future__ import annotations

from tests.derive.sessions import MS, Job
from tests.detectors.trend_jobs import profiling

from stepscope.causes.host import profiler_left_on
from stepscope.causes.host.profiler_left_on import ProfilerUse
from stepscope.model.log.events import UserProfiler


def found(job: Job) -> ProfilerUse | None:
    """Of its steps."""
    return profiler_left_on.build(job.steps())


def test_recorded_steps_are_told_apart() -> None:
    """Half as long again, and what stopping took."""
    job = profiling(150 * MS)
    job.event(UserProfiler(at=60 * 150 * MS, action="stopped", dur_ns=7 * MS))
    seen = found(job)
    assert seen is not None
    assert (seen.steps, seen.slower, seen.stop_ns) == (59, 0.5, 7 * MS)


def test_one_that_is_never_stopped() -> None:
    """It recorded all that came, so nothing is there to compare with."""
    seen = found(profiling(150 * MS, stopped=False))
    assert seen is not None
    assert (seen.time_ratio, seen.slower) == (1.0, None)


def test_a_start_that_failed_is_none() -> None:
    """It raised, as another one ran or the folder could not be written: nothing was recorded by it."""
    job = profiling(150 * MS, stopped=False)
    job.event(UserProfiler(action="failed"))
    assert found(job) is None
    job = profiling(150 * MS)
    job.event(UserProfiler(at=MS, action="start"), UserProfiler(at=MS, action="failed"))
    seen = found(job)
    assert seen is not None
    assert seen.steps == 59
