"""A job that hides its input is looked at as soon as it makes steps, and not before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.app.running import early_input
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.recording.drain import WorkerDrain


def _worker(calls: int, *, unread: bool = True, closed: bool = False, kind: Kind = Kind.EXECUTION) -> WorkerDrain:
    recent = SimpleNamespace(counts={(int(kind), 1): calls, (int(Kind.GC), 1): 999})
    return cast("WorkerDrain", SimpleNamespace(unread=unread, closed=closed, recent=recent))


@pytest.mark.parametrize(
    ("calls", "seen"), [(0, False), (early_input.MIN_CALLS - 1, False), (early_input.MIN_CALLS, True)]
)
def test_enough_calls_make_steps(calls: int, seen: bool) -> None:
    assert early_input.seen([_worker(calls)]) is seen


def test_a_job_whose_input_is_read_or_that_has_ended_is_left_alone() -> None:
    assert not early_input.seen([_worker(99, unread=False), _worker(99, closed=True), _worker(99, kind=Kind.GC)])
    assert early_input.seen([_worker(99, unread=False), _worker(99)])


@pytest.mark.parametrize(("calls", "repeats"), [(early_input.MIN_CALLS - 1, False), (early_input.MIN_CALLS, True)])
def test_what_repeats_may_be_steps_however_its_input_is_read(calls: int, repeats: bool) -> None:
    """An analysis that saw no steps is made again then; what has ended repeats nothing."""
    assert early_input.repeats([_worker(calls, unread=False)]) is repeats
    assert not early_input.repeats([_worker(99, closed=True)])
