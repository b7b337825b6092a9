"""How measured processes end, although they are no children of ours: by which signal, or not at all.

A descriptor of a process (pidfd) tells that after its end, however soon its parent asks (Linux 6.15, PIDFD_GET_INFO).
Older kernels tell it of a process only until its parent asks: there most deaths under ``enable`` stay unknown.

Source: include/uapi/linux/pidfd.h.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from typing import TYPE_CHECKING

from stepscope.native import process_stat

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 256
"""Processes followed at a time; of others it is not known."""
_GET_INFO = 0xC040FF0B
"""_IOWR(0xFF, 11, struct pidfd_info), in its first version of 64 bytes."""
_INFO = struct.Struct("<QQ11Ii")
"""mask, cgroupid, eleven ids, exit_code."""
_EXIT = 1 << 3
_SIGNAL = 0x7F


class ProcessEnds:
    """Follows the processes of one recording, each by its key."""

    def __init__(self) -> None:
        """No process has died."""
        self._open: dict[str, tuple[int, int]] = {}
        """(pid, descriptor) by key."""
        self._known: set[str] = set()
        self.signals: dict[str, int] = {}
        """Number of the signal that ended a process, by key; 0: it ended by itself, with any code."""
        self.unended: dict[str, str] = {}
        """What processes wait for whose programs have ended, in words."""
        self.stuck: set[str] = set()
        """Those that were among them after their exit handlers had begun."""

    def look(self, alive: Mapping[str, int]) -> None:
        """Follow new processes, given as pids by key, and ask how those that ended did."""
        for key, pid in alive.items():
            if key not in self._known and len(self._open) < MOST:
                self._known.add(key)
                with contextlib.suppress(OSError):  # it has just ended, or the kernel is too old
                    self._open[key] = (pid, os.pidfd_open(pid))
        for key, (pid, fd) in list(self._open.items()):
            status = _status(pid, fd)
            if status is not None:
                self.signals[key] = status & _SIGNAL
                os.close(fd)
                del self._open[key]

    def close(self) -> None:
        """End the watch."""
        for _, fd in self._open.values():
            os.close(fd)
        self._open.clear()


def _status(pid: int, fd: int) -> int | None:
    """Status of a process that has ended, as of ``wait``; None: it runs, or nothing says."""
    data = bytearray(_INFO.pack(_EXIT, *[0] * 13))
    with contextlib.suppress(OSError):
        fcntl.ioctl(fd, _GET_INFO, data)
        mask, *_, code = _INFO.unpack(data)
        if mask & _EXIT:
            return int(code)
    return process_stat.exit_status(pid)
