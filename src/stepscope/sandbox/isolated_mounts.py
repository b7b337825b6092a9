"""Builds the file system of a trial: all files as they are; what is written goes to one bounded tmpfs.

A new root is put together below ``stage`` and entered. Each file system of the old root is there as an overlay whose
upper part lies in the tmpfs, except

- file systems of the kernel and /dev, which are the real ones, without the sockets in it; /dev/shm is a new one;
- file systems that are mounted read-only: they stay as they are, but those that are likely to hold sockets of services
  are overlays that are read-only, since a socket below an overlay does not lead to its service;
- what an overlay cannot stand on (vfat, a third overlay): read-only, with a line that says so.

An overlay shows nothing of what is mounted below its lower directory: each such mount is covered separately. In a user
namespace the kernel refuses a lower directory with mounts below it, since it would show what they hide. There a folder
is made in the tmpfs, and each of its entries is covered (``_in_pieces``). It also refuses to copy what belongs to other
users or groups to the upper part, the folders above a new file included: those are made before (``_premake``).

Runs in the process that becomes the job: standard library only. Sources: mount_namespaces(7), user_namespaces(7),
linux/Documentation/filesystems/overlayfs.rst.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from stepscope.sandbox import isolated_calls as calls

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEVICES = "/dev"
SHARED_MEMORY = _DEVICES + "/shm"
_REAL = frozenset({"/proc", "/sys", _DEVICES})
_KERNEL_KINDS = frozenset(
    (
        *("autofs", "binder", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "cpuset", "debugfs", "devpts"),
        *("devtmpfs", "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs"),
        *("securityfs", "selinuxfs", "sysfs", "tracefs"),
    )
)
"""Types of file systems that hold no files of users. Source: /proc/filesystems, lines with "nodev"."""
_FLAGS = {
    "nosuid": calls.MS_NOSUID,
    "nodev": calls.MS_NODEV,
    "noexec": calls.MS_NOEXEC,
    "noatime": calls.MS_NOATIME,
}
_HOLD_SOCKETS = frozenset(("tmpfs", "ext2", "ext3", "ext4", "xfs", "btrfs", "overlay"))
"""Types of file systems that containers are given folders of services from (/run of the host)."""
_MAX_ENTRIES = 4096
"""Entries of a folder that is covered in pieces: each is a mount."""
_COPIED_BYTES = 1 << 20
"""Size of a writable file up to which it is copied where its folder is covered in pieces; larger ones are read-only."""
_UNKNOWN_ID = 65534
"""What a user namespace shows in place of users and groups that it does not know (/proc/sys/kernel/overflowuid)."""
_MAX_COPIES = 20_000
"""Entries of folders of other users or groups that are looked at: some tenths of a second."""


class Mount(NamedTuple):
    """One line of /proc/self/mountinfo (proc(5))."""

    point: str
    kind: str
    options: frozenset[str]
    """Those of the mount, and "ro" if the whole file system is read-only."""


class RootPlace(NamedTuple):
    """Where the new root is built."""

    stage: str
    """An existing directory of any kind: the tmpfs is mounted over it, in this namespace only."""
    tmpfs_bytes: int
    user_namespace: bool
    """Whether this process has its rights by a user namespace only."""
    writable: tuple[str, ...] = ()
    """Directories in which the job is likely to write."""


class CoverError(OSError):
    """A directory cannot be covered, and must not stay writable."""


def read_mounts() -> dict[str, Mount]:
    """The mounts of this process by mount point; of several at one point the topmost."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        return {mount.point: mount for mount in map(parse, lines)}


def parse(line: str) -> Mount:
    """Read a line of mountinfo."""
    fields = line.split()
    dash = fields.index("-", 6)
    options = frozenset(fields[5].split(",")) | ({"ro"} & set(fields[dash + 3].split(",")))
    return Mount(_unescaped(fields[4]), fields[dash + 1], options)


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def below(path: str, points: Iterable[str]) -> list[str]:
    """The points strictly below ``path`` that are not below another of them."""
    inside = [point for point in points if point != path and point.startswith(path.rstrip("/") + "/")]
    inside.sort(key=lambda point: point.split("/"))  # what is below a point follows it
    tops: list[str] = []
    for point in inside:
        if not tops or not point.startswith(tops[-1] + "/"):
            tops.append(point)
    return tops


def build(place: RootPlace, keep: Iterable[str]) -> list[str]:
    """Build the new root, with ``keep`` as they are, and enter it; return lines for the user.

    Raises:
        OSError: something cannot be covered; nothing outside of this namespace has changed.
    """
    tree = _Tree(place, read_mounts())
    tree.cover("/")
    tree.renew_shared_memory()
    tree.hide_sockets()
    for path in sorted(keep):
        tree.keep(path)
    calls.enter_root(tree.root)
    return tree.notes


class _Tree:
    """The new root while it is being built."""

    def __init__(self, place: RootPlace, mounts: dict[str, Mount]) -> None:
        self.mounts = mounts
        self.notes: list[str] = []
        self.stage = place.stage
        self.root = place.stage + "/root"
        self._in_user_namespace = place.user_namespace
        self._writable = place.writable
        self._copies_left = _MAX_COPIES
        self._folders = 0
        calls.mount("none", "/", flags=calls.MS_REC | calls.MS_PRIVATE)
        calls.mount("tmpfs", self.stage, "tmpfs", calls.MS_NODEV, f"mode=755,size={place.tmpfs_bytes}")
        os.mkdir(self.root)
        calls.mount(self.root, self.root, flags=calls.MS_BIND)

    def target(self, path: str) -> str:
        """Where ``path`` of the old root is made; it exists, except in a folder that is covered in pieces."""
        return self.root if path == "/" else self.root + path

    def cover(self, path: str) -> None:
        """Make ``path`` and all below it visible, so that writing does not change it."""
        mount = self.mounts.get(path)
        if path in _REAL or (mount is not None and mount.kind in _KERNEL_KINDS):
            self._bind(path, calls.MS_REC)
        elif not os.path.isdir(path):
            self._file_mount(path)
        elif not self._whole(path, real=mount is not None and "ro" in mount.options):
            self._in_pieces(path)
        else:
            for point in below(path, self.mounts):
                if os.path.lexists(point):  # others are hidden by a mount above them
                    self.cover(point)

    def _whole(self, path: str, *, real: bool) -> bool:
        """Cover a directory without what is mounted below it; False if that must be done in pieces."""
        try:
            if real:
                self._fixed(path)
            else:
                self._overlay(path)
        except OSError as error:
            if below(path, self.mounts):
                return False
            self._read_only(path)
            self.notes.append(f"{path} is read-only in this trial ({error.strerror})")
        return True

    def _fixed(self, path: str) -> None:
        """Cover a file system that is read-only."""
        if self.mounts[path].kind in _HOLD_SOCKETS:
            try:
                self._lower_only(path)
            except OSError:  # a third overlay
                pass
            else:
                return
        self._bind(path)

    def _lower_only(self, path: str) -> None:
        """Cover a file system by an overlay without an upper part, which takes a second lower one: an empty folder."""
        options = f"lowerdir={_escaped(path)}:{_escaped(self._new_folder())}"
        options += ",userxattr" if self._in_user_namespace else ""
        calls.mount("overlay", self.target(path), "overlay", self._flags_at(path) | calls.MS_RDONLY, options)

    def _file_mount(self, path: str) -> None:
        """Cover a file that is mounted; not the socket of a service, which containers are given so."""
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            self._read_only(path)

    def hide_sockets(self) -> None:
        """Let no socket in /dev lead to its service (/dev/log, say)."""
        for entry in os.scandir(_DEVICES):
            if stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                calls.mount(self._empty_file(), self.target(entry.path), flags=calls.MS_BIND)

    def _empty_file(self) -> str:
        path = self.stage + "/empty"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        return path

    def _overlay(self, path: str) -> None:
        layer = self._new_folder()
        upper, work = layer + "/upper", layer + "/work"
        os.mkdir(upper)
        os.mkdir(work)
        if self._in_user_namespace:
            self._premake(path, upper)
        _look_like(path, upper)
        options = _options(path, upper, work, user_namespace=self._in_user_namespace)
        calls.mount("overlay", self.target(path), "overlay", self._flags_at(path), options)

    def _premake(self, path: str, upper: str) -> None:
        """Make the folders of an overlay's upper part that the kernel would not copy, down to the writable ones."""
        for place in self._writable:
            if place == path or place.startswith(path.rstrip("/") + "/"):
                at, target = path, upper
                for name in place[len(path) :].strip("/").split("/") if place != path else ():
                    at, target = f"{at.rstrip('/')}/{name}", f"{target}/{name}"
                    if not os.path.isdir(target):
                        os.mkdir(target)
                        _look_like(at, target)
                self._take(place, target)

    def _take(self, path: str, target: str) -> None:
        """Copy what the user may change in a folder of another user or group and belongs to such a one as well."""
        if not _foreign(os.stat(path)) or not os.access(path, os.R_OK | os.W_OK):
            return
        for entry in os.scandir(path):
            self._copies_left -= 1
            copy = f"{target}/{entry.name}"
            if self._copies_left < 0 or os.path.lexists(copy) or entry.is_symlink():
                continue
            seen = entry.stat()
            if not _foreign(seen) or not os.access(entry.path, os.W_OK):
                continue
            if entry.is_dir():
                os.mkdir(copy)
                self._take(entry.path, copy)
                _look_like(entry.path, copy)
            elif entry.is_file() and seen.st_size <= _COPIED_BYTES:
                _copy(entry.path, copy)

    def _flags_at(self, path: str) -> int:
        """What the file system that holds ``path`` forbids."""
        while path not in self.mounts and path != "/":
            path = os.path.dirname(path)
        options = self.mounts[path].options if path in self.mounts else frozenset()
        return sum(flag for name, flag in _FLAGS.items() if name in options)

    def _bind(self, path: str, recursive: int = 0) -> None:
        calls.mount(path, self.target(path), flags=calls.MS_BIND | recursive)

    def _read_only(self, path: str) -> None:
        self._bind(path)
        calls.make_read_only(self.target(path))

    def _in_pieces(self, path: str) -> None:
        """Make a folder in the tmpfs whose entries are covered one by one."""
        closed = not (os.access(path, os.R_OK) or os.access(path, os.X_OK))
        names = [] if closed else os.listdir(path)  # a user who may not enter it sees nothing of it here either
        if len(names) > _MAX_ENTRIES:
            raise CoverError(errno.E2BIG, f"{path} holds mounts and {len(names)} entries; at most {_MAX_ENTRIES}")
        target = self.target(path)
        if path != "/":
            calls.mount(self._new_folder(), target, flags=calls.MS_BIND)
        for name in names:
            self._piece(f"{path.rstrip('/')}/{name}", f"{target}/{name}")
        _look_like(path, target)

    def _piece(self, path: str, target: str) -> None:
        try:
            kind = os.lstat(path).st_mode
        except OSError:  # deleted meanwhile, or a mount of FUSE that only its owner may see
            return
        if stat.S_ISLNK(kind):
            os.symlink(os.readlink(path), target)
        elif stat.S_ISDIR(kind):
            os.mkdir(target)
            self.cover(path)
        elif stat.S_ISREG(kind):
            self._file(path, target)

    def _file(self, path: str, target: str) -> None:
        writable = os.access(path, os.W_OK)
        if writable and path not in self.mounts and os.stat(path).st_size <= _COPIED_BYTES:
            _copy(path, target)
            return
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
        if writable:
            self._read_only(path)
        else:
            self._bind(path)

    def _new_folder(self) -> str:
        self._folders += 1
        folder = f"{self.stage}/{self._folders}"
        os.mkdir(folder)
        return folder

    def renew_shared_memory(self) -> None:
        """Give the trial a new, empty /dev/shm of the old one's size."""
        if os.path.islink(SHARED_MEMORY) or not os.path.isdir(SHARED_MEMORY):
            return
        old = os.statvfs(SHARED_MEMORY)
        data = f"mode=1777,size={old.f_blocks * old.f_frsize}"
        calls.mount("tmpfs", self.target(SHARED_MEMORY), "tmpfs", calls.MS_NOSUID | calls.MS_NODEV, data)

    def keep(self, path: str) -> None:
        """Show the real directory ``path``, writable as it is."""
        os.makedirs(self.target(path), mode=0o700, exist_ok=True)
        try:
            self._bind(path)
        except OSError:  # in a user namespace what is mounted below it must come along
            self._bind(path, calls.MS_REC)


def replace_a_folder(*, user_namespace: bool) -> None:
    """Delete a folder of the lower part of an overlay on tmpfs and make it again, as jobs do.

    Call it inside of the new root. In a user namespace it takes Linux 6.6: before, tmpfs has no attributes of users.

    Raises:
        OSError: the kernel cannot do it.
    """
    if not os.path.isdir(SHARED_MEMORY):
        return
    base = SHARED_MEMORY + "/try"
    for name in ("", "/lower", "/lower/folder", "/upper", "/work", "/merged"):
        os.mkdir(base + name)
    options = _options(base + "/lower", base + "/upper", base + "/work", user_namespace=user_namespace)
    calls.mount("overlay", base + "/merged", "overlay", 0, options)
    os.rmdir(base + "/merged/folder")
    os.mkdir(base + "/merged/folder")


def _options(lower: str, upper: str, work: str, *, user_namespace: bool) -> str:
    """The options of an overlay."""
    layers = f"lowerdir={_escaped(lower)},upperdir={_escaped(upper)},workdir={_escaped(work)}"
    return layers + (",userxattr" if user_namespace else ",redirect_dir=on")


def _foreign(seen: os.stat_result) -> bool:
    """Whether a file may belong to a user or group that this user namespace does not know."""
    ids = (seen.st_uid, seen.st_gid)
    return ids != (os.getuid(), os.getgid()) or _UNKNOWN_ID in ids


def _escaped(path: str) -> str:
    """``path`` as a value among the options of an overlay."""
    for char in "\\,:":
        path = path.replace(char, "\\" + char)
    return path


def _look_like(path: str, target: str) -> None:
    """Give a folder the owner, mode and time of another; without the right to give it away, the mode as this user sees
    it.
    """
    seen = os.stat(path)
    mode = stat.S_IMODE(seen.st_mode)
    if not _give(target, seen):
        allowed = sum(bit for bit in (os.R_OK, os.W_OK, os.X_OK) if os.access(path, bit))
        mode = (mode & 0o7077) | (allowed << 6)
    os.chmod(target, mode)
    os.utime(target, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def _give(target: str, seen: os.stat_result) -> bool:
    """Give a folder to the owner of another; False if this user may not, or does not see who that is."""
    try:
        os.chown(target, seen.st_uid, seen.st_gid)
    except OSError:
        return False
    return seen.st_uid != _UNKNOWN_ID


def _copy(path: str, target: str) -> None:
    """Copy a small file with its mode and times."""
    seen = os.stat(path)
    with open(path, "rb") as source, open(target, "wb") as copy:
        copy.write(source.read())
    os.chmod(target, stat.S_IMODE(seen.st_mode))
    os.utime(target, ns=(seen.st_atime_ns, seen.st_mtime_ns))
