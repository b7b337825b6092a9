"""What a trial has left behind: changed files, new files elsewhere, processes, mounts, shared memory. And what any mode
of stepscope has: ``there`` before, ``left`` after, or ``nothing_stays`` around a benchmark's ``main``.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.collector import host_members
from stepscope.launcher import run_directories
from stepscope.sandbox import isolated_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/", "/run", "/root", "/home")
"""Where programs write outside of their folders: what a token names there is left."""

OURS = "stepscope"
"""What all our files outside of sessions, and our sockets, have in their names."""
MARK = f"left-behind-{os.getpid()}-{time.time_ns():x}"
"""In the environment of all that a benchmark starts."""
PATIENCE_S = 60.0
"""How long what still ends is waited for: a report is written after the job."""
_MOST_BYTES = 1 << 20

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


def there() -> frozenset[str]:
    """All that a mode of stepscope could have left on this host, in words, without processes."""
    temporary = os.environ.get("TMPDIR", "/tmp")
    files = [path for folder in {*SHARED_FOLDERS, temporary} for path in _entries(folder) if OURS in path.name]
    found = {f"file {path}" for path in files if not _in_use(path)}
    mounts = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
    found |= {f"mount {line.split()[1]}" for line in mounts}
    return frozenset(found | system_v() | {f"socket {line.split()[-1]}" for line in sockets(OURS)})


def _in_use(path: Path) -> bool:
    """Whether a run directory, or a file of a job's members, is that of a job which runs: another's, beside us."""
    if run_directories.owner_of(path.name) >= 0:
        return not run_directories.abandoned(path)
    if not path.name.startswith(host_members.PREFIX):
        return False
    text = _text(path)
    return any(str(run) in text and not run_directories.abandoned(run) for run in run_directories.listed())


def _text(path: Path) -> str:
    """What a file says; of a run directory, what its files about the job say."""
    files = [path] if path.is_file() else [path / name for name in ("config.json", "job.json")]
    try:
        return "".join(file.read_bytes()[:_MOST_BYTES].decode(errors="replace") for file in files if file.is_file())
    except OSError:
        return ""


def left(before: frozenset[str], mark: str, *, only_marked: bool = False, patience_s: float = PATIENCE_S) -> list[str]:
    """What is there now and was not before, and processes that the mark names; what still ends is waited for.

    Args:
        before: what ``there`` gave.
        mark: a text in the environment or command line of all processes that were started.
        only_marked: count files only if they name the mark: others run stepscope here, too.
        patience_s: how long is waited for.
    """
    end = time.monotonic() + patience_s
    while True:
        running = processes(mark, None)  # looked at first: a run directory is left when its last process has ended
        new = there() - before
        if only_marked:
            new = frozenset(one for one in new if one.startswith("file ") and _names(Path(one[5:]), mark))
        found = [*sorted(new), *running]
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.1)


def _names(path: Path, mark: str) -> bool:
    return mark in path.name or mark in _text(path)


@contextmanager
def nothing_stays() -> Iterator[None]:
    """Around a benchmark, or as a decorator of its ``main``: it fails if it leaves anything behind."""
    before = there()
    os.environ["LEFT_BEHIND"] = MARK
    try:
        yield
    finally:
        os.environ.pop("LEFT_BEHIND")
        found = left(before, MARK)
        for line in found:
            print(f"left behind: {line}", flush=True)
        if found:
            raise SystemExit(1)


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
