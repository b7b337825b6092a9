"""A job that hides its input is looked at as soon as it makes steps, and not before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.sidecar.triggers.hidden_input import MAX_TIMES, HiddenInput
from stepscope.sidecar.triggers.repeated_calls import MIN_CALLS
from stepscope.sidecar.triggers.trigger import AGAIN_NS, LastAnalysis
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording

NONE = LastAnalysis()
NO_STEPS = LastAnalysis(at_ns=AGAIN_NS)
"""An analysis that saw no steps."""


def worker(calls: int, *, unread: bool = True, closed: bool = False, kind: Kind = Kind.EXECUTION) -> SimpleNamespace:
    """A process with so many calls of one thing."""
    recent = SimpleNamespace(counts={(int(kind), 1): calls, (int(Kind.GC), 1): 999})
    return SimpleNamespace(unread=unread, closed=closed, recent=recent)


def trigger(*workers: SimpleNamespace) -> HiddenInput:
    """What looks at these processes from the beginning on."""
    drainer = SimpleNamespace(workers=dict(enumerate(workers)))
    return HiddenInput(cast("Recording", SimpleNamespace(drainer=drainer)), 0)


@pytest.mark.parametrize(("calls", "seen"), [(0, False), (MIN_CALLS - 1, False), (MIN_CALLS, True)])
def test_enough_calls_make_steps(calls: int, *, seen: bool) -> None:
    """As many as an analysis needs."""
    assert trigger(worker(calls)).tick(AGAIN_NS, NONE) is seen


def test_a_job_whose_input_is_read_or_that_has_ended_is_left_alone() -> None:
    """Nor is one that makes no steps; one process of several is enough."""
    others = worker(99, unread=False), worker(99, closed=True), worker(99, kind=Kind.GC)
    assert not trigger(*others).tick(AGAIN_NS, NONE)
    assert trigger(others[0], worker(99)).tick(AGAIN_NS, NONE)


@pytest.mark.parametrize(("calls", "repeats"), [(MIN_CALLS - 1, False), (MIN_CALLS, True)])
def test_what_repeats_may_be_steps_however_its_input_is_read(calls: int, *, repeats: bool) -> None:
    """An analysis that saw no steps is made again then; what has ended repeats nothing."""
    assert trigger(worker(calls, unread=False)).tick(2 * AGAIN_NS, NO_STEPS) is repeats
    assert not trigger(worker(99, closed=True)).tick(2 * AGAIN_NS, NO_STEPS)


def test_an_analysis_is_not_asked_for_again_and_again() -> None:
    """Not before its time, not once steps were seen, and only some times if it sees none in what repeats."""
    looks = trigger(worker(99))
    assert not looks.tick(AGAIN_NS - 1, NONE)
    assert not looks.tick(2 * AGAIN_NS - 1, NO_STEPS)
    assert not looks.tick(9 * AGAIN_NS, LastAnalysis(at_ns=1, steps=True))
    assert sum(looks.tick(9 * AGAIN_NS, NO_STEPS) for _ in range(9)) == MAX_TIMES
