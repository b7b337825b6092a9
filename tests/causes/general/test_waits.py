"""How long the thread of the steps waits, where, and for whom."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.jobs import PERIOD, REPORT, STEPS
from tests.detectors.wait_jobs import FETCH, MAIN_LINE, OTHER, locked, look, looked, moments, waiting

from stepscope.causes.general import waits
from stepscope.causes.general.waits import WaitOn
from stepscope.derive import steps_view
from stepscope.wire.kinds import Flag, Kind

ODD = [moment for i, moment in enumerate(moments(40 * MS)) if i % 2]


def measured(job: Job) -> tuple[WaitOn, ...]:
    """The waits of a job with steps."""
    view = steps_view.of(job.view())
    assert view is not None
    return waits.build(view)


@pytest.mark.parametrize("clock", [True, False])
def test_a_wait_is_as_long_as_the_thread_did_not_run(*, clock: bool) -> None:
    """By the thread's CPU clock, else by the share of looks that find it blocked."""
    (wait,) = measured(waiting(40 * MS, clock=clock))
    assert wait.ratio == pytest.approx(0.4, abs=0.01)
    assert wait.low < wait.ratio <= wait.high
    assert (wait.reason, wait.target, wait.spot.line) == ("socket", "10.0.0.7:6379", 8)


def test_a_look_that_finds_the_thread_running_takes_nothing_from_its_waits() -> None:
    """Of a component in which the thread runs and waits in turn, the wait is what it did not run: half of it."""
    job = waiting(40 * MS, looks=STEPS)
    job.records = [r for r in job.records if not (r.kind == Kind.SAMPLE and r.start_ns in ODD)]
    looked(job, look(job, "running"), ODD, MAIN_LINE, Frame(SCRIPT, "parse", 12), dur=20 * MS)
    job.samples([at + MS for at in ODD], MAIN_LINE, Frame(SCRIPT, "parse", 12), dur=40 * MS, flags=int(Flag.CPU))
    (wait,) = measured(job)
    assert wait.ratio == pytest.approx(0.2, abs=0.02)


def test_waits_of_the_framework_and_of_the_interpreter_lock_are_not_told() -> None:
    """The framework's own waits are compute or input; waits for the interpreter lock have a detector."""
    keras = Frame("/usr/lib/site-packages/keras/src/trainer.py", "fit", 9, own=False)
    assert measured(waiting(40 * MS, "futex", frames=(MAIN_LINE, keras))) == ()
    assert measured(waiting(40 * MS, "gil")) == ()
    assert measured(waiting(40 * MS, "futex")) == ()  # native code on a line that takes no lock


def test_many_files_are_one_wait() -> None:
    """Where each call is about another file, the wait names the folder that they have in common."""
    job = waiting(40 * MS, looks=0)
    for i, at in enumerate(moments(40 * MS)):
        looked(job, look(job, "openat", "file", f"/data/out/{i}.npy"), [at + 1], MAIN_LINE, FETCH, dur=0)
    (wait,) = measured(job)
    assert wait.target.endswith("files below /data/out")


@pytest.mark.parametrize(("always", "holder"), [(False, "flush"), (True, "")])
def test_a_thread_that_always_sleeps_holds_nobody_up(holder: str, *, always: bool) -> None:
    """A sleeping thread is who the step waits for only if it is there when the step waits, and not otherwise."""
    job = locked()
    sleep = look(job, "sleep")
    flush = Frame(SCRIPT, "flush", 20)
    looked(job, sleep, moments(40 * MS), flush, thread=OTHER)
    other = [i * PERIOD + MS for i in range(STEPS)]
    job.samples(other, Frame(SCRIPT, "main", REPORT), dur=0)
    if always:
        looked(job, sleep, other, flush, thread=OTHER)
    (wait,) = measured(job)
    assert wait.partners is not None
    assert (wait.partners.holder.spot.function if wait.partners.holder is not None else "") == holder
    assert wait.direct == (not always)
