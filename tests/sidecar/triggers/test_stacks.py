"""A run that is made for its stacks has a window of them as soon as its steps are known, and no other run has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.launcher.rundir import JobFacts
from stepscope.sidecar.triggers.repeated_calls import MIN_CALLS
from stepscope.sidecar.triggers.stacks import Stacks
from stepscope.sidecar.triggers.trigger import AGAIN_NS, LastAnalysis
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording

STEPS = LastAnalysis(at_ns=1, steps=True)


@pytest.mark.parametrize("stacks", [True, False])
def test_one_window_once_there_are_steps(*, stacks: bool) -> None:
    """It is asked for once; what finds the steps is asked for as soon as something repeats."""
    job = JobFacts(pid=1, start_ticks=1, launcher_pid=0, command=("x",), stacks=stacks)
    recent = SimpleNamespace(counts={(int(Kind.EXECUTION), 1): MIN_CALLS})
    drainer = SimpleNamespace(workers={"a": SimpleNamespace(closed=False, recent=recent)})
    trigger = Stacks(cast("Recording", SimpleNamespace(job=job, drainer=drainer)), 0)
    assert not trigger.tick(1, LastAnalysis())
    assert trigger.tick(AGAIN_NS, LastAnalysis()) is stacks
    assert not _words(trigger)
    assert not any(trigger.tick(now, STEPS) for now in (AGAIN_NS + 2, 3 * AGAIN_NS))
    assert _words(trigger) == ([("stacks", "native")] if stacks else [])


def _words(trigger: Stacks) -> list[tuple[str, str]]:
    return [(wish.by.word, wish.kind) for wish in trigger.wanted]
