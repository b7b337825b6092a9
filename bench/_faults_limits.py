"""Control groups of pids and memory, and system calls that are denied, for ``bench-faults``. Linux on x86-64."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import struct
import time
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
DENIED = {"ptrace": (101, 310, 311, 312), "perf": (298, 321)}
"""Numbers of ptrace, process_vm_readv, process_vm_writev and kcmp; of perf_event_open and bpf."""
_SECCOMP_FILTER, _SET_SECCOMP, _NO_NEW_PRIVS = 2, 22, 38
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


def _make(kind: str, token: str, name: str, value: int) -> Path:
    folder = (GROUPS / kind if (GROUPS / kind).is_dir() else GROUPS) / token
    folder.mkdir()
    (folder / name).write_text(str(value))
    return folder


def pids(token: str, most: int) -> Path:
    """A group with at most so many threads."""
    return _make("pids", token, "pids.max", most)


def memory(token: str, mib: int) -> Path:
    """A group with so much memory."""
    name = "memory.limit_in_bytes" if (GROUPS / "memory").is_dir() else "memory.max"
    return _make("memory", token, name, mib << 20)


def remove(group: Path) -> None:
    """Remove a group as soon as its processes have ended."""
    for _ in range(50):
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


def deny(numbers: tuple[int, ...]) -> None:
    """Let system calls fail in this process and its children, as without permission."""
    lines = [struct.pack("HBBI", _LOAD, 0, 0, 0)]
    for number in numbers:
        lines.append(struct.pack("HBBI", _EQUAL, 0, 1, number))
        lines.append(struct.pack("HBBI", _RETURN, 0, 0, _ERROR | errno.EPERM))
    lines.append(struct.pack("HBBI", _RETURN, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(lines))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _SECCOMP_FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "system calls cannot be denied here")
