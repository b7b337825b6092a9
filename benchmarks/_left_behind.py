"""What a trial has left behind: changed files, new files elsewhere, processes, mounts, shared memory."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.collector.launch import isolated_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/", "/run", "/root", "/home")
"""Where programs write outside of their folders: what a token names there is left."""

Seen = tuple[object, ...]


def tree(*folders: Path) -> dict[str, Seen]:
    """All that is in some folders, they included: kind, mode, owner, times, links, extended attributes, content."""
    return {str(path): seen(path) for folder in folders for path in (folder, *sorted(folder.rglob("*")))}


def seen(path: Path) -> Seen:
    """One file, without following links."""
    found = path.lstat()
    content = path.readlink() if path.is_symlink() else _digest(path) if stat.S_ISREG(found.st_mode) else ""
    names = sorted(os.listxattr(path, follow_symlinks=False))
    attributes = [(name, os.getxattr(path, name, follow_symlinks=False)) for name in names]
    owner = (found.st_mode, found.st_uid, found.st_gid, found.st_ino, found.st_nlink, found.st_size)
    return (*owner, found.st_mtime_ns, found.st_ctime_ns, str(content), str(attributes))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def differences(before: dict[str, Seen], after: dict[str, Seen], base: Path) -> list[str]:
    """What was made, deleted and changed, in words."""
    found = [f"made {name}" for name in after.keys() - before.keys()]
    found += [f"deleted {name}" for name in before.keys() - after.keys()]
    found += [f"changed {name}" for name in before.keys() & after.keys() if before[name] != after[name]]
    return sorted(text.replace(f"{base}/", "") for text in found)


def named(token: str, uid: int | None) -> list[str]:
    """Files outside that a token names, or that belong to ``uid``; run directories of a user included."""
    return [f"left {path}" for folder in SHARED_FOLDERS for path in _entries(folder) if _is_ours(path, token, uid)]


def _entries(folder: str) -> list[Path]:
    try:
        return list(Path(folder).iterdir())
    except OSError:
        return []


def _is_ours(path: Path, token: str, uid: int | None) -> bool:
    try:
        return token in path.name or (uid is not None and path.lstat().st_uid == uid)
    except OSError:
        return False


def system_v() -> set[str]:
    """Segments, semaphores and queues of System V."""
    tables = {kind: Path("/proc/sysvipc", kind).read_text().splitlines()[1:] for kind in ("shm", "sem", "msg")}
    return {f"{kind} {line.split()[0]}" for kind, lines in tables.items() for line in lines}


def sockets(token: str) -> list[str]:
    """Sockets of this network namespace that a token names."""
    return [line for line in Path("/proc/net/unix").read_text(errors="replace").splitlines() if token in line]


def processes(token: str, uid: int | None) -> list[str]:
    """Processes with a token in their environment or command line, and those of ``uid``."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid() and _belongs(entry, token, uid):
                found.append(f"process {(entry / 'cmdline').read_text(errors='replace')[:80]!r}")
        except OSError:
            continue
    return found


def _belongs(entry: Path, token: str, uid: int | None) -> bool:
    if uid is not None and entry.stat().st_uid == uid:
        return True
    mark = token.encode()
    return mark in (entry / "environ").read_bytes() or mark in (entry / "cmdline").read_bytes()


@dataclass
class Held:
    """Namespaces of a trial, open so that no other gets their numbers."""

    names: frozenset[str] = frozenset()
    descriptors: list[int] = field(default_factory=list)

    def hold(self, pid: int) -> bool:
        """Hold those of a process that are not ours; whether there are any."""
        if not self.names:
            try:
                kinds = ("mnt", "net", "ipc", "user")
                theirs = frozenset(str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for kind in kinds)
                new = theirs - isolated_processes.own_namespaces()
                self.descriptors = isolated_processes.hold(pid, new)
            except OSError:
                return False
            self.names = new
        return bool(self.names)

    def within(self) -> list[int]:
        """Processes that are in them."""
        return isolated_processes.within(self.names) if self.names else []


@contextmanager
def held() -> Iterator[Held]:
    """Hold namespaces until the end."""
    found = Held()
    try:
        yield found
    finally:
        for fd in found.descriptors:
            os.close(fd)
