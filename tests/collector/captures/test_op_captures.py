"""An op trace that goes on is ended where whoever asked for it has enough."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from stepscope.collector.captures.op_captures import Asked, OpCaptures
from stepscope.collector.captures.reason import USER
from stepscope.wire import commands

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording

KEY = "10-1"


def test_who_has_enough_tells_the_process(tmp_path: Path) -> None:
    """By the id of what goes on; nobody is told where nothing does, and a process that is gone is no error."""
    worker = SimpleNamespace(key=KEY, pid=10, closed=False, folder=tmp_path, answers={})
    recording = SimpleNamespace(drainer=SimpleNamespace(workers={KEY: worker}))
    captures = OpCaptures(cast("Recording", recording))
    inbox = commands.Inbox(str(tmp_path / commands.COMMANDS_NAME))
    captures.enough()
    assert inbox.take() == ([], [])
    identity = captures.begin(Asked(by=USER, worker=KEY, steps=1, seconds=3.0), 1)
    captures.enough()
    sent = {command["kind"]: command for command in inbox.take()[0]}  # ids of one millisecond have no order
    assert [sent["ops"][name] for name in ("seconds", "margin", "anchors")] == [3.0, 0, []]
    assert sent[commands.ENOUGH]["capture"] == identity
    shutil.rmtree(tmp_path / commands.COMMANDS_NAME)
    captures.enough()
