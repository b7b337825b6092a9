"""The calls of the steps' thread: by kind, by name, by when they start."""

from __future__ import annotations

from tests.derive.sessions import MS, POOL
from tests.derive.with_steps import view_of
from tests.detectors.jobs import PERIOD, STEPS, train_loop

from stepscope.wire.kinds import Flag, Kind


def test_calls_of_other_threads_and_kinds_are_left_out() -> None:
    """Starts, ends and names are those of the calls that were asked for, in order."""
    job = train_loop(20 * MS)
    save = job.save("weights")
    save.every(PERIOD, STEPS, dur=5 * MS, start=30 * MS)
    save.every(PERIOD, STEPS, dur=5 * MS, start=30 * MS, thread=POOL)
    calls = view_of(job).calls(Kind.SAVE)
    assert len(calls) == STEPS
    assert calls.starts.tolist() == [30 * MS + i * PERIOD for i in range(STEPS)]
    assert (calls.ends - calls.starts == 5 * MS).all()
    assert (calls.durations == 5 * MS).all()
    assert [len(part) for part in calls.spans] == [STEPS, STEPS]
    assert len(view_of(job).calls(Kind.SAVE, Kind.FUNCTION)) == 2 * STEPS
    assert len(view_of(job).calls()) == 0


def test_calls_can_be_narrowed() -> None:
    """To kinds, names, flags, and to those that start within the steady steps."""
    job = train_loop(20 * MS)
    first, second = job.save("weights"), job.save("checkpoint")
    first.every(PERIOD, STEPS, dur=5 * MS, start=30 * MS)
    second.at(0, 5 * MS, flags=Flag.END)
    view = view_of(job)
    calls = view.calls(Kind.SAVE, Kind.FUNCTION)
    saves = calls.of_kinds(Kind.SAVE)
    assert len(saves) == STEPS + 1
    number = next(n.id for n in view.names.values() if n.text == "checkpoint")
    assert saves.named([number]).starts.tolist() == [0]
    assert len(saves.named([])) == 0
    assert saves.flagged(Flag.END).sum() == 1
    assert len(saves.begun_in(view.steps.windows)) == view.steps.steady_count
