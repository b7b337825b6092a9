"""The use case ``attach PID --stacks``: what all threads of a process do now. No session is made."""

from __future__ import annotations

import shlex
from pathlib import Path

from stepscope.launcher import mask
from stepscope.native.cpython import thread_shots
from stepscope.report.flame import shot_text
from stepscope.tables.errors import TargetError
from stepscope.use_cases.attach import command_of


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
