"""The use case ``top``: one job on the terminal, once a second."""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import time
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stepscope.launcher import jobs
from stepscope.report import live

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERY_S = 1.0


def watch(job: jobs.RunningJob, *, once: bool = False) -> None:
    """Show the job until it ends or the user quits; the job is not affected."""
    if once:
        _write(_text(job))
    elif sys.stdin.isatty() and sys.stdout.isatty():
        _on_terminal(job)
    else:
        _plain(job)


def _row(job: jobs.RunningJob) -> live.JobRow:
    return live.JobRow(status=job.status, user=job.user, state=job.state, name=job.name)


def _text(job: jobs.RunningJob) -> str:
    return live.text(_row(job), width=live.terminal_width())


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _plain(job: jobs.RunningJob) -> None:
    """Blocks of text, one per second."""
    now: jobs.RunningJob | None = job
    while now is not None:
        _write(_text(now) + "\n")
        time.sleep(_EVERY_S)
        now = jobs.again(now)
    _write(f"{job.name} has ended: stepscope report {job.status.session}\n")


def _on_terminal(job: jobs.RunningJob) -> None:
    """Full screen, drawn by rich; q or Ctrl-C quits."""
    from rich.console import Console
    from rich.live import Live

    now: jobs.RunningJob | None = job
    console = Console(highlight=False)
    with _keys() as keyboard, Live(console=console, screen=True, auto_refresh=False) as screen:
        while now is not None:
            screen.update(live.page(_row(now)), refresh=True)
            ready, _, _ = select.select([keyboard], [], [], _EVERY_S)
            if ready and os.read(keyboard, 64)[:1] in (b"q", b"Q", b"\x03", b"\x04", b""):
                return
            now = jobs.again(now)
    width = shutil.get_terminal_size().columns
    _write(f"{job.name} has ended: stepscope report {job.status.session}"[: max(width, 80)] + "\n")


@contextmanager
def _keys() -> Iterator[int]:
    """Standard input without line buffering and echo; the terminal is restored afterwards."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)
        yield fd
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
