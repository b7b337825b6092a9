"""Hosts that can die as a whole: besides those of ``_hosts`` each has its own processes, memory files, name and boot.

A host's first process is a shell; when it is killed the kernel ends all others of the host at once (pid_namespaces(7)).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from _hosts import Host

_SCRIPT = """
mount --bind "$1" /dev/shm && mount -t proc proc /proc && mount --bind "$2" /proc/sys/kernel/random/boot_id &&
hostname "$3" || exit 99
left=$4
shift 4
"$@"
code=$?
for _ in 1 2 3 4 5 6 7 8 9 10; do
    set -- /proc/[0-9]*
    [ $# -eq 1 ] && exit $code
    sleep 0.1
done
for one; do tr '\\0' ' ' <"$one/cmdline" && echo; done >"$left"
exit $code
"""
_APART = ["--mount", "--propagation", "private", "--pid", "--uts", "--fork", "--kill-child"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeHost:
    """One host."""

    host: Host
    disk: Path
    """What outlives its death."""
    memory: Path
    """Its /dev/shm; here a folder in ours."""

    @property
    def session(self) -> Path:
        """The session of its worker."""
        return self.disk / "w.stepscope"

    def started(self, words: Sequence[str], name: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start the host with a program; what both say is in ``NAME.out`` on its disk."""
        clock = ["unshare", "--time", "--monotonic", str(self.host.skew_s), "--boottime", "0", *_APART]
        about = [str(self.memory), str(self.disk / "boot"), f"host-{self.host.index}", str(self.disk / f"{name}.left")]
        line = ["nsenter", f"--net=/run/netns/{self.host.namespace}", *clock, "sh", "-c", _SCRIPT, "sh", *about]
        with self.out(name).open("wb") as said:
            return subprocess.Popen([*line, *words], cwd=self.disk, env=environment, stdout=said, stderr=said)

    def out(self, name: str) -> Path:
        """What a program of ``started`` said."""
        return self.disk / f"{name}.out"

    def left(self, name: str) -> list[str]:
        """Processes that were there a second after the program, and run folders that are there now."""
        file = self.disk / f"{name}.left"
        processes = file.read_text(errors="replace").splitlines() if file.exists() else []
        return [*processes, *(path.name for path in self.memory.iterdir() if path.is_dir())]

    def reboot(self) -> None:
        """Lose what a reboot loses."""
        shutil.rmtree(self.memory)
        self.memory.mkdir()
        (self.disk / "boot").write_text(f"{uuid.uuid4()}\n")


def made(host: Host, folder: Path) -> WholeHost:
    """A host with an empty disk below a folder."""
    disk = folder / f"host-{host.index}"
    memory = Path(f"/dev/shm/{folder.name}-{host.index}")
    for path in (disk, memory):
        path.mkdir()
    (disk / "boot").write_text(f"{uuid.uuid4()}\n")
    return WholeHost(host=host, disk=disk, memory=memory)


def below(pid: int) -> Iterator[tuple[int, list[str]]]:
    """A process, and all that it and its children started, with their command lines."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    yield pid, words
    for child in children:
        yield from below(int(child))


def first_process(started: subprocess.Popen[bytes]) -> int:
    """The first process of a host; 0: it has none any more."""
    found = [pid for pid, words in below(started.pid) if words[:1] == ["sh"]]
    return found[0] if found else 0


def worker(started: subprocess.Popen[bytes]) -> int:
    """The worker's process on a host; 0: there is none."""
    found = [pid for pid, words in below(started.pid) if words[1:2] and words[1].endswith("goes_on.py")]
    return found[0] if found else 0


def collector(started: subprocess.Popen[bytes]) -> int:
    """The worker's collector; 0: there is none."""
    found = [pid for pid, words in below(started.pid) if any("stepscope.sidecar.sidecar" in w for w in words)]
    return found[0] if found else 0


def kill(pid: int) -> bool:
    """SIGKILL; whether the process was there."""
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        return False
    return True
