"""What the kernel's log says of processes that were killed for lack of memory: which they were.

Readable by who may (CAP_SYSLOG, or kernel.dmesg_restrict=0), also after the death. Its process ids are those of the
host, so it is not read where processes have others.

Source: Documentation/ABI/testing/dev-kmsg; mm/oom_kill.c, ``__oom_kill_process``.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

_FILE = "/dev/kmsg"
_RECORD_BYTES = 8192
_KILLED = re.compile(r"Killed process (\d+) \(.*total-vm:")
_APART_US = 60_000_000
"""By how much the log's clock may differ from CLOCK_MONOTONIC. It is corrected by no network time."""
_HOST_PIDS = 0xEFFFFFFC
"""Inode of the host's namespace of process ids. Source: include/linux/proc_ns.h, PROC_PID_INIT_INO."""
_FACILITY_SHIFT = 3
_LOST = ""
"""Stands for records that were overwritten before they were read."""


class KilledProcess(Struct, frozen=True):
    """Who was killed for lack of memory since a time."""

    pids: frozenset[int] = frozenset()
    whole: bool = False
    """Flag: the log has everything since then, so no other was killed."""


def killed(since_ns: int) -> KilledProcess:
    """The processes killed since a time of CLOCK_MONOTONIC; none, and not whole, where the log may not be read."""
    try:
        if os.stat("/proc/self/ns/pid").st_ino != _HOST_PIDS:
            return KilledProcess()
        fd = os.open(_FILE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return KilledProcess()
    try:
        return read(_records(fd), since_ns)
    finally:
        os.close(fd)


def read(records: Iterable[str], since_ns: int) -> KilledProcess:
    """The same from records of the log, as /dev/kmsg gives them, the oldest first."""
    since_us = since_ns // 1_000 - _APART_US
    pids: set[int] = set()
    whole: bool | None = None
    for record in records:
        head, _, message = record.partition(";")
        fields = head.split(",")
        if len(fields) < 3 or not (fields[0].isdigit() and fields[1].isdigit() and fields[2].isdigit()):  # noqa: PLR2004 - priority, number, time
            whole = False
            continue
        priority, number, at_us = (int(field) for field in fields[:3])
        whole = number == 0 or at_us <= since_us if whole is None else whole
        if at_us >= since_us and not priority >> _FACILITY_SHIFT and (found := _KILLED.search(message)):
            pids.add(int(found[1]))
    return KilledProcess(frozenset(pids), bool(whole))


def _records(fd: int) -> Iterator[str]:
    with contextlib.suppress(OSError):  # BlockingIOError: that was the last one
        while True:
            try:
                yield os.read(fd, _RECORD_BYTES).decode("utf-8", "replace")
            except BrokenPipeError:
                yield _LOST
