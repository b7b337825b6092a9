"""System calls in which threads of a job block: their numbers, and which arguments say what they wait for.

Source: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux 6.12; the man pages.
"""

from __future__ import annotations

from typing import NamedTuple

WORDS = 9
"""Words of the text of a thread that is blocked in a call: number, six arguments, stack and instruction pointer."""
ELSEWHERE = b"-1"
"""First word of the text of a thread that is blocked outside of a call: in a page fault. Source: proc(5)."""
FOREVER = 1 << 31
"""A timeout from here on, as 32 bits with a sign, is none."""


class Shape(NamedTuple):
    """Positions of a call's arguments; -1: it has no such argument."""

    descriptor: int = -1
    size: int = -1
    timeout: int = -1
    """Milliseconds, or the address of a time."""


_DATA = Shape(descriptor=0, size=2)
_FILE = Shape(descriptor=0)
SHAPES = {
    **dict.fromkeys(("read", "write", "pread64", "pwrite64", "sendto", "recvfrom"), _DATA),
    **dict.fromkeys(("readv", "writev", "preadv", "pwritev", "sendmsg", "recvmsg", "recvmmsg", "sendmmsg"), _FILE),
    **dict.fromkeys(("fsync", "fdatasync", "ftruncate", "fallocate", "sync_file_range", "getdents64"), _FILE),
    **dict.fromkeys(("ioctl", "fcntl", "flock", "connect", "accept", "accept4"), _FILE),
    "sendfile": Shape(descriptor=1, size=3),
    "copy_file_range": Shape(descriptor=2, size=4),
    "futex": Shape(timeout=3),
    "poll": Shape(timeout=2),
    "ppoll": Shape(timeout=2),
    "select": Shape(timeout=4),
    "pselect6": Shape(timeout=4),
    "epoll_wait": Shape(timeout=3),
    "epoll_pwait": Shape(timeout=3),
    "wait4": Shape(),
    "waitid": Shape(),
}
"""Calls whose arguments say more than their name."""
ADDRESSES = frozenset(("futex", "ppoll", "select", "pselect6"))
"""Calls whose timeout is the address of a time: any but 0 is one."""

_X86_64 = (
    "0:read 1:write 2:open 3:close 4:stat 7:poll 11:munmap 16:ioctl 17:pread64 18:pwrite64 19:readv 20:writev "
    "23:select 26:msync 28:madvise 35:sleep 40:sendfile 42:connect 43:accept 44:sendto 45:recvfrom 46:sendmsg "
    "47:recvmsg 61:wait4 72:fcntl 73:flock 74:fsync 75:fdatasync 77:ftruncate 82:rename 87:unlink 162:sync "
    "202:futex 208:io_getevents 217:getdents64 230:sleep 232:epoll_wait 247:waitid 257:openat 262:newfstatat "
    "263:unlinkat 264:renameat 270:pselect6 271:ppoll 277:sync_file_range 281:epoll_pwait 285:fallocate "
    "288:accept4 295:preadv 296:pwritev 299:recvmmsg 306:syncfs 307:sendmmsg 316:renameat2 326:copy_file_range "
    "332:statx"
)
_AARCH64 = (
    "22:epoll_pwait 25:fcntl 29:ioctl 32:flock 35:unlinkat 46:ftruncate 47:fallocate 56:openat 57:close "
    "61:getdents64 63:read 64:write 65:readv 66:writev 67:pread64 68:pwrite64 69:preadv 70:pwritev 71:sendfile "
    "72:pselect6 73:ppoll 79:newfstatat 81:sync 82:fsync 83:fdatasync 84:sync_file_range 95:waitid 98:futex "
    "101:sleep 115:sleep 202:accept 203:connect 206:sendto 207:recvfrom 211:sendmsg 212:recvmsg 215:munmap "
    "227:msync 233:madvise 242:accept4 243:recvmmsg 260:wait4 267:syncfs 269:sendmmsg 276:renameat2 "
    "285:copy_file_range 291:statx"
)
_TABLES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def names(machine: str) -> dict[int, str]:
    """Names by number; nanosleep and clock_nanosleep are both ``sleep``. Empty for another processor."""
    pairs = (word.partition(":") for word in _TABLES.get(machine, "").split())
    return {int(number): name for number, _, name in pairs}
