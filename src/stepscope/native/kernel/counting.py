"""Asks the kernel whether we may count events: settings, capabilities and a container's filter all decide, so we try.

A counter on our own process is opened and closed again; it never runs. Source: perf_event_open(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from typing import Literal

Counter = Literal["clock-user", "clock-kernel", "cycles"]
"""Counters: CPU time of user code; including the kernel's; the processor's cycles."""

_SYSCALL = {"x86_64": 298, "aarch64": 241}
_HARDWARE, _SOFTWARE = 0, 1
_CPU_CYCLES, _CPU_CLOCK = 0, 0
_SIZE = 64
"""Value of PERF_ATTR_SIZE_VER0, which every kernel accepts."""
_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 0, 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8
_WHY = {
    errno.EACCES: "kernel.perf_event_paranoid forbids it",
    errno.EPERM: "kernel.perf_event_paranoid or a container's seccomp filter forbids it",
    errno.ENOENT: "the processor offers none",
    errno.EOPNOTSUPP: "the processor offers none",
    errno.ENODEV: "the processor offers none",
    errno.ENOSYS: "the kernel or a container's seccomp filter has no perf_event_open",
}


def attempt(counter: Counter) -> str:
    """Open a counter on ourselves; "" if that worked, else the reason."""
    number = _SYSCALL.get(platform.machine())
    if number is None:
        return f"not tried on {platform.machine()}"
    kind, config = (_HARDWARE, _CPU_CYCLES) if counter == "cycles" else (_SOFTWARE, _CPU_CLOCK)
    flags = _DISABLED | _EXCLUDE_HYPERVISOR | (0 if counter == "clock-kernel" else _EXCLUDE_KERNEL)
    # type, size, config, sample_period, sample_type, read_format, flags, wakeup, bp_type, config1
    attributes = struct.pack("=IIQQQQQIIQ", kind, _SIZE, config, 0, 0, 0, flags, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    opened = libc.syscall(number, attributes, 0, -1, -1, _CLOSE_ON_EXEC)
    if opened >= 0:
        os.close(opened)
        return ""
    code = ctypes.get_errno()
    return _WHY.get(code, os.strerror(code))
