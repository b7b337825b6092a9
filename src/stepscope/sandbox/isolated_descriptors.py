"""Leads the files and folders that a shell has opened for the job to the trial's own copies of them.

A descriptor does not follow the process into another root: what is written through it changes the user's file, and what
is made below a folder's is made in the user's folder. So each is opened again by its name in the new root, as it was
and at its position. Standard output and error stay: the user wants to see them. What is only read stays, too.

Runs in the process that becomes the job: standard library only.
"""

from __future__ import annotations

import fcntl
import os
import stat
from typing import NamedTuple

_OUTPUT = frozenset((1, 2))
_ONCE = os.O_CREAT | os.O_EXCL | os.O_TRUNC
"""Flags that only have a meaning when a file is made."""


class OpenDescriptor(NamedTuple):
    """A descriptor through which files can be changed."""

    fd: int
    path: str
    flags: int
    position: int


def writable() -> list[OpenDescriptor]:
    """Those of this process that lead to files opened for writing, or to folders. Call it before the root changes."""
    found = (_examined(int(name)) for name in os.listdir("/proc/self/fd"))
    return [one for one in found if one is not None]


def _examined(fd: int) -> OpenDescriptor | None:
    try:
        kind, flags = os.fstat(fd).st_mode, fcntl.fcntl(fd, fcntl.F_GETFL)
        changes = stat.S_ISDIR(kind) or (stat.S_ISREG(kind) and flags & os.O_ACCMODE != os.O_RDONLY)
        if fd in _OUTPUT or not changes or not os.get_inheritable(fd):
            return None
        position = 0 if stat.S_ISDIR(kind) else os.lseek(fd, 0, os.SEEK_CUR)
        return OpenDescriptor(fd, os.readlink(f"/proc/self/fd/{fd}"), flags & ~_ONCE, position)
    except OSError:  # the one through which the folder of descriptors was listed
        return None


def reopen(opened: list[OpenDescriptor]) -> list[str]:
    """Open all of them again in the new root; return lines for the user about those that can now only be read."""
    notes = []
    for one in opened:
        try:
            _replace(one, one.flags)
        except OSError as error:
            if not os.path.lexists(one.path):  # deleted, or in no file system (memfd): nothing of the user's is changed
                continue
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, one.fd)
            os.close(null)
            notes.append(f"descriptor {one.fd} ({one.path}) cannot be written in this trial ({error.strerror})")
    return notes


def _replace(one: OpenDescriptor, flags: int) -> None:
    fd = os.open(one.path, flags)
    if one.position:
        os.lseek(fd, one.position, os.SEEK_SET)
    os.dup2(fd, one.fd)
    os.close(fd)
