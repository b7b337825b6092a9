"""Calls of the kernel that Python's ``os`` does not offer (3.10): namespaces, mounts, what a process inherits.

Used in the process that becomes the job, before its program starts: standard library only, and little of it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_NOATIME = 1024
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

_MNT_DETACH = 2
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1
_SYS_MOUNT_SETATTR = 442
"""The same on all architectures (linux/include/uapi/asm-generic/unistd.h); since Linux 5.12."""
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "ppc64le": 203, "riscv64": 41, "s390x": 217}
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_AF_INET = 2
_SOCK_DGRAM = 2
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move this process into new namespaces (unshare(2)).

    Raises:
        OSError: the kernel, its settings or a sandbox forbid it.
    """
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount, bind or change a mount (mount(2)).

    Raises:
        OSError: the kernel refused; the text names both ends.
    """
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), os.fsencode(data) or None
    )
    _checked(result, f"mount {kind or 'bind'} of {source} on {target}")


def make_read_only(target: str) -> None:
    """Make a mount and all below it read-only, whatever else they are (mount_setattr(2)).

    Raises:
        OSError: Linux before 5.12.
    """
    attributes = struct.pack("QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    result = _libc.syscall(
        _SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, attributes, ctypes.c_size_t(len(attributes))
    )
    _checked(result, f"read-only {target}")


def enter_root(root: str) -> None:
    """Make ``root`` the root of this mount namespace, and drop the old one (pivot_root(2), the form with two dots).

    Raises:
        OSError: ``root`` is no mount, or this process is confined by chroot.
    """
    os.chdir(root)
    _checked(_libc.syscall(_SYS_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    _checked(_libc.umount2(b".", _MNT_DETACH), "umount of the old root")
    os.chdir("/")


def die_with_parent(number: int) -> None:
    """Have the kernel send this process a signal when the thread that started it ends (prctl(2))."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0), "prctl")


def adopt_orphans(*, wanted: bool) -> bool:
    """Whether this process became the parent of its descendants' orphans so far; from now on it does if ``wanted``."""
    before = ctypes.c_int(0)
    _libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)
    return bool(before.value)


def loopback_up() -> None:
    """Switch on the loopback interface of this network namespace (netdevice(7)).

    Raises:
        OSError: the kernel refused.
    """
    fd = _libc.socket(_AF_INET, _SOCK_DGRAM, 0)
    _checked(fd, "socket")
    try:
        fcntl.ioctl(fd, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
    finally:
        os.close(fd)
