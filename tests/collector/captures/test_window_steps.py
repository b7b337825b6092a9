"""What a process is asked for during a window, and what is told if it cannot be asked."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.collector.captures import window_steps
from stepscope.wire import commands

if TYPE_CHECKING:
    from stepscope.collector.recording.owner import RecorderInterface

KEY = "10-1"


class Recorded:
    """A recording of one process, as far as ``window_steps`` looks at it."""

    def __init__(self, folder: Path) -> None:
        self.notes: list[str] = []
        self.drainer = SimpleNamespace(workers={KEY: SimpleNamespace(pid=10, closed=False, folder=folder)})

    def note(self, code: str, text: str) -> None:
        """Keep a diagnostic."""
        self.notes.append(f"{code} {text}")

    def keep_awake(self, hz: int) -> list[str]:
        """What is noted when a window of three seconds begins."""
        window_steps.keep_awake(cast("RecorderInterface", self), KEY, 3.0, hz=hz)
        return self.notes


def test_a_process_is_asked(tmp_path: Path) -> None:
    """For the window's time and rate."""
    inbox = commands.Inbox(str(tmp_path / commands.COMMANDS_NAME))
    assert Recorded(tmp_path).keep_awake(99) == []
    ((command,), problems) = inbox.take()
    assert (command["kind"], command["hz"], problems) == (commands.STACKS, 99, [])
    assert cast("float", command["seconds"]) > 3.0


@pytest.mark.parametrize(("hz", "notes"), [(0, 0), (99, 1)])
def test_a_process_without_a_thread_of_the_agent(tmp_path: Path, hz: int, notes: int) -> None:
    """PyTorch's and JAX's take no commands: that is told only where the window needs their samples, without a path."""
    noted = Recorded(tmp_path).keep_awake(hz)
    assert len(noted) == notes
    assert all("process 10 has no thread of the agent" in note and str(tmp_path) not in note for note in noted)


def test_a_command_that_cannot_be_left(tmp_path: Path) -> None:
    """It is told why, without the path of the command's temporary file."""
    recorded = Recorded(tmp_path)
    (tmp_path / commands.COMMANDS_NAME).mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", _no_space)
        (note,) = recorded.keep_awake(99)
    assert note == "DX147 Python stacks could not be sampled more often during a window: No space left on device"


def _no_space(path: str, *_: object) -> int:
    raise OSError(28, "No space left on device", path)
