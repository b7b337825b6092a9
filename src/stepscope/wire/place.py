"""Places for a ring: memory or a local disk with enough space, never a network file system.

A ring on a network file system would stall the job at every page; one that fills /dev/shm (64 MB in a container by
default) would make the job's own shared memory fail. A ring therefore takes at most a quarter of the free space.
"""

from __future__ import annotations

import os

from stepscope.wire.env import RING_NAME
from stepscope.wire.ring import DEFAULT_SLOTS, HEADER_BYTES, MIN_SLOTS, RECORD_BYTES, RingFullError, RingWriter

FREE_DIVISOR = 4
"""Divisor of a file system's free space that limits the size of a ring."""
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
    room = space.f_bavail * space.f_frsize // FREE_DIVISOR - HEADER_BYTES
    return max(0, min(wanted, room // RECORD_BYTES))


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
    for room, _, directory in order:
        if room < MIN_SLOTS:
            continue
        try:
            return _make_in(folder, directory, room)
        except OSError:
            continue
    raise RingFullError("no room for a ring of %d records in %s" % (MIN_SLOTS, ", ".join(directories) or folder))


def _make_in(folder: str, directory: str, slots: int) -> RingWriter:
    link = os.path.join(folder, RING_NAME)
    if os.stat(directory).st_dev == os.stat(folder).st_dev:
        return RingWriter(link, slots)
    run = os.path.basename(os.path.dirname(os.path.dirname(folder)))
    path = os.path.join(directory, "stepscope-%s-%s.ring" % (run, os.path.basename(folder)))
    ring = RingWriter(path, slots)
    os.symlink(path, link)
    return ring
