"""The sidecar as seen by the launcher: a process to start, notify, read from and restart."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from typing import TYPE_CHECKING

from stepscope.launcher import give_way, rundir, sidecar_death
from stepscope.native import own_python
from stepscope.native.cgroups import memory_kills

if TYPE_CHECKING:
    from pathlib import Path

RESTART_AFTER_S = 0.8
"""Minimum time between two starts of a sidecar that died: it is back within 1 s."""
_MAX_QUICK_DEATHS = 20
"""Number of deaths within the first 5 s each after which the sidecar is given up."""
_QUICK_S = 5.0


class SidecarProcess:
    """The sidecar's process, its pipes and its restarts."""

    def __init__(self, run: Path, session: Path) -> None:
        self.run = run
        self.session = session
        self.pid = 0
        self.starts = 0
        self.deaths = 0
        self.started_at = 0.0
        self.given_up = False
        """Flag: it cannot run here and is not restarted."""
        self.finished = False
        """Flag: it has ended normally, and the report is written."""
        self.gave_way = False
        """Flag: it has left its memory to the job, and is not restarted before that has ended."""
        self.output = b""
        self._kills = 0
        """Processes that the kernel had killed in our control group when it was started."""
        self._log_from = 0
        self._job_ended = False
        self._tell = -1
        self._hear = -1

    def start(self) -> None:
        """Start it; a failure to start counts as a death."""
        self._close()
        read_end, self._tell = os.pipe()
        self._hear, write_end = os.pipe()
        os.set_blocking(self._hear, False)
        os.set_blocking(self._tell, False)
        self.starts += 1
        self.started_at = time.monotonic()
        self._kills = memory_kills.of_group()
        self._log_from = sidecar_death.log_bytes(self.run)
        log = str(self.run / rundir.SIDECAR_LOG)
        actions = [
            (os.POSIX_SPAWN_DUP2, read_end, 0),
            (os.POSIX_SPAWN_DUP2, write_end, 1),
            (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        ]
        argv = own_python.command(
            "stepscope.sidecar.sidecar", str(self.run), str(self.session), str(self.starts), nice=0
        )  # it is nice once it is imported: on full cores the first figures would wait for that
        try:
            self.pid = os.posix_spawn(
                argv[0],
                argv,
                own_python.environment(),
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=own_python.SIGNALS,
            )
        except OSError:
            self.pid = 0
            self.deaths += 1
        finally:
            os.close(read_end)
            os.close(write_end)

    def reaped(self) -> bool:
        """Whether it has ended since the last look."""
        if not self.pid:
            return False
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            pid, status = self.pid, 1 << 8
        if not pid:
            return False
        self._read_output()
        self.pid = 0
        quick = time.monotonic() - self.started_at < _QUICK_S
        self.deaths = self.deaths + 1 if quick and status else 0
        self.given_up = self.deaths >= _MAX_QUICK_DEATHS
        self.finished = status == 0
        self.gave_way = os.waitstatus_to_exitcode(status) == give_way.EXIT_CODE or self._killed_for_memory(status)
        if not self.finished and not self.gave_way:
            sidecar_death.leave(self.run, status, self._log_from)
        return True

    def _killed_for_memory(self, status: int) -> bool:
        """Whether the kernel has killed it because memory ran out; then the job's processes learn that."""
        before, self._kills = self._kills, memory_kills.of_group()
        by_kill = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if not by_kill or self._kills <= before or self._job_ended:
            return False
        give_way.killed(self.run)
        return True

    def due(self) -> float:
        """Seconds until it may be restarted."""
        return max(0.0, self.started_at + RESTART_AFTER_S - time.monotonic())

    def tell_ended(self) -> None:
        """Notify it that the job has ended."""
        self._job_ended = True
        try:
            os.write(self._tell, b"ended\n")
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.EAGAIN, errno.EBADF):
                raise

    def _read_output(self) -> None:
        while True:
            try:
                data = os.read(self._hear, 65536)
            except OSError:
                return
            if not data:
                return
            self.output += data

    def _close(self) -> None:
        for fd in (self._tell, self._hear):
            if fd >= 0:
                os.close(fd)
        self._tell = self._hear = -1

    def messages(self) -> list[str]:
        """Its messages to the user: JSON lines with a ``message``."""
        words = []
        for line in self.output.splitlines():
            try:
                words.append(str(json.loads(line)["message"]))
            except (ValueError, KeyError, TypeError):
                continue
        return words

    def last_words(self) -> str:
        """The last line of its log, for the user."""
        return sidecar_death.said(self.run)
