"""The use case ``attach PID --stacks``: what all threads of a process do now. No session is made."""

from __future__ import annotations

import shlex
from pathlib import Path

from stepscope.app.attach import command_of
from stepscope.collector.cpython import thread_shots
from stepscope.collector.launch import mask
from stepscope.errors import TargetError
from stepscope.reports.flame import shot_text


def stacks(pid: int) -> str:
    """The stacks of all threads, for the terminal.

    Raises:
        TargetError: there is no such process, or we may not read it.
    """
    command = command_of(pid, option=" --stacks")
    try:
        shots, problem = thread_shots.take(pid)
        folder = str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError as error:
        raise TargetError(f"cannot attach to {pid}: {error.strerror}; it may have ended") from error
    return shot_text.render(shots, command=shlex.join(mask.mask_command(command)), problem=problem, folder=folder)
