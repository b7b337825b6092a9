"""A run that is made for its stacks has a window of them as soon as its steps are known, and no other run has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.app.running.triggers.stacks import Stacks
from stepscope.app.running.triggers.trigger import LastAnalysis
from stepscope.collector.launch.rundir import Job

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording

STEPS = LastAnalysis(at_ns=1, steps=True)


@pytest.mark.parametrize("stacks", [True, False])
def test_one_window_once_there_are_steps(*, stacks: bool) -> None:
    """It is asked for once, and no analysis is."""
    job = Job(pid=1, start_ticks=1, launcher_pid=0, command=("x",), stacks=stacks)
    trigger = Stacks(cast("Recording", SimpleNamespace(job=job)))
    assert not trigger.tick(1, LastAnalysis(at_ns=1))
    assert trigger.wanted == ()
    assert not any(trigger.tick(now, STEPS) for now in (2, 3))
    assert [(wish.by.word, wish.kind) for wish in trigger.wanted] == ([("stacks", "native")] if stacks else [])
