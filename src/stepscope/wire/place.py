"""Places for a ring: memory or a local disk with enough space, never a network file system.

A ring on a network file system would stall the job at every page; rings that fill /dev/shm (64 MB in a container by
default) would make the job's own shared memory fail, that of its input's workers first. A ring therefore takes at most
a quarter of the free space, and on a small file system all rings together a twentieth of its size: those of every run,
since the ranks of one job may be runs of their own. Each takes at most a quarter of what is left of that; where less
than the smallest ring is left, the next place is tried.
"""

from __future__ import annotations

import os
import stat

from stepscope.wire.env import PROCS_NAME, RING_NAME, RUN_PREFIX
from stepscope.wire.ring import (
    DEFAULT_SLOTS,
    HEADER_BYTES,
    MAKING,
    MIN_SLOTS,
    RECORD_BYTES,
    RingFullError,
    RingWriter,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Optional

FREE_DIVISOR = 4
"""Divisor of a file system's free space, and of what is left for rings on a small one, that limits a ring's size."""
SMALL_BYTES = 1 << 30
"""Size below which a file system is small."""
SHARE_DIVISOR = 20
"""Divisor of a small file system's size that limits all rings on it together."""
_TRIES = 5
"""Attempts in one place: processes that make their rings at the same moment take each other's room."""
NETWORK_TYPES = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "gfs2", "glusterfs", "gpfs", "lustre", "nfs", "nfs4"),
        *("ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "wekafs", "virtiofs"),
    )
)
"""File system types that leave the machine, or may. Every ``fuse.*`` counts as one. Source: Linux
Documentation/filesystems and the mount names of the common cluster file systems."""


def mounts() -> list[tuple[str, str]]:
    """(mount point, file system type) of every mount, empty if the host does not list them."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            fields = [line.split() for line in lines]
    except OSError:
        return []
    return [(_unescaped(f[4]), f[f.index("-") + 1]) for f in fields if "-" in f]


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def is_network(path: str, table: list[tuple[str, str]]) -> bool:
    """Whether ``path`` is on a file system that leaves the machine."""
    real = os.path.realpath(path)
    best = ("", "")
    for point, kind in table:
        inside = point in ("/", real) or real.startswith(point + "/")
        if inside and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1] in NETWORK_TYPES or best[1].startswith("fuse.")


def allowed_slots(folder: str, wanted: int, table: list[tuple[str, str]]) -> int:
    """The number of slots that a ring in ``folder`` may have: 0 (not here) to ``wanted``."""
    try:
        if is_network(folder, table) or not os.access(folder, os.W_OK | os.X_OK):
            return 0
        space = os.statvfs(folder)
    except OSError:
        return 0
    slots = min(wanted, _slots(space.f_bavail * space.f_frsize // FREE_DIVISOR))
    share = share_of(space)
    if share is not None:
        left = share - all_ring_bytes(folder)
        slots = min(slots, max(_slots(left // FREE_DIVISOR), min(MIN_SLOTS, _slots(left))))
    return max(0, slots)


def _slots(room: int) -> int:
    return (room - HEADER_BYTES) // RECORD_BYTES


def share_of(space: os.statvfs_result) -> Optional[int]:
    """Bytes that all rings on a file system may take together; None if it is not small."""
    size = space.f_blocks * space.f_frsize
    return size // SHARE_DIVISOR if size < SMALL_BYTES else None


def all_ring_bytes(directory: str) -> int:
    """Bytes of all rings in a run's directory and in those of the other runs there that may be read.

    One that is being made counts whole before it takes any space.
    """
    base = os.path.dirname(os.path.abspath(directory))
    runs = {directory, *(os.path.join(base, name) for name in _names(base) if name.startswith(RUN_PREFIX))}
    return sum(_ring_bytes(path) for run in runs for path in _rings(run))


def _rings(run: str) -> Iterator[str]:
    for name in _names(run):
        if name.endswith((".ring", ".ring" + MAKING)):
            yield os.path.join(run, name)
    procs = os.path.join(run, PROCS_NAME)
    for name in _names(procs):
        yield os.path.join(procs, name, RING_NAME)
        yield os.path.join(procs, name, RING_NAME + MAKING)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _ring_bytes(path: str) -> int:
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _holds_to_share(directory: str) -> bool:
    share = share_of(os.statvfs(directory))
    return share is None or all_ring_bytes(directory) <= share


def make_ring(folder: str, directories: list[str], slots: int = DEFAULT_SLOTS) -> RingWriter:
    """Make the ring of the process whose directory is ``folder``.

    Use the first of ``directories`` with room for all ``slots``, else the one with the most room. A directory on the
    file system of ``folder`` means ``folder`` itself; elsewhere the file gets a unique name and ``folder`` a symbolic
    link to it.

    Raises:
        RingFullError: none of them has room for the smallest ring.
    """
    table = mounts()
    rooms = [(allowed_slots(d, slots, table), -n, d) for n, d in enumerate(directories or [folder])]
    whole = [room for room in rooms if room[0] >= slots]
    order = whole[:1] + sorted((room for room in rooms if room not in whole[:1]), reverse=True)
    for _, _, directory in order:
        for _ in range(_TRIES):
            room = allowed_slots(directory, slots, table)
            if room < MIN_SLOTS:
                break
            try:
                return _make_in(folder, directory, room)
            except OSError:
                continue
    why = "no room for a ring of %d records in %s" % (MIN_SLOTS, ", ".join(directories) or folder)
    if any(_is_small(directory) for directory in directories):
        why += " (rings take at most a %dth of a file system below %d MiB)" % (SHARE_DIVISOR, SMALL_BYTES >> 20)
    raise RingFullError(why)


def _is_small(directory: str) -> bool:
    try:
        return share_of(os.statvfs(directory)) is not None
    except OSError:
        return False


def _make_in(folder: str, directory: str, slots: int) -> RingWriter:
    link = os.path.join(folder, RING_NAME)
    if os.stat(directory).st_dev == os.stat(folder).st_dev:
        return RingWriter(link, slots, lambda: _holds_to_share(directory))
    run = os.path.basename(os.path.dirname(os.path.dirname(folder)))
    path = os.path.join(directory, "stepscope-%s-%s.ring" % (run, os.path.basename(folder)))
    ring = RingWriter(path, slots, lambda: _holds_to_share(directory))
    os.symlink(path, link)
    return ring
