"""Starts a job so that it leaves nothing behind: no file, process, mount or connection (decision 0046).

The launcher starts ``isolated_job``, which puts itself into namespaces and then becomes the job. Nothing is mounted
outside of them, so that the kernel removes everything with the last process in them; ``IsolatedJob.end`` ends that one.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from stepscope.native import process_stat
from stepscope.sandbox import isolated_calls as calls
from stepscope.sandbox import isolated_processes
from stepscope.tables.errors import TargetError
from stepscope.wire import run_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_CODE = (
    "import sys; sys.path.append(sys.argv.pop(1)); from stepscope.sandbox.isolated_job import main; main(sys.argv[1:])"
)
_STAGE = Path(__file__).resolve().parent
"""The directory that the tmpfs of the trial is mounted over, in its namespace only: any one that exists."""
_SOURCE = _STAGE.parents[1]
"""The directory from which stepscope is imported."""
_LIBRARIES = "LD_LIBRARY_PATH"
_LOOK_S = 0.1
"""Time between looks at whether a process that says nothing is stopped."""
_FORBIDDEN = (
    "; see the limits on user namespaces: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
    "kernel.apparmor_restrict_unprivileged_userns; in a container: --cap-add SYS_ADMIN"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """How a job is isolated."""

    keep: tuple[Path, ...] = ()
    """Directories that stay real and writable; session and run directory are added."""
    network: bool = False
    """Whether the job has the network as it is; else it has a loopback interface alone."""
    replaced: tuple[tuple[str, str], ...] = ()
    """Files that the job sees with another content: (path, file that holds it)."""
    tmpfs_bytes: int = 2 << 30
    """Bound of what the job may write, all files together; then its disk is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedJob:
    """A job that was started isolated."""

    pid: int
    namespaces: frozenset[str]
    """Those made for it, as ``kind:[inode]``."""
    guard: int
    """Pid of the process that ends what is left if this process is killed."""
    notes: tuple[str, ...]
    """Lines for the user: what differs from a run that is not isolated."""
    held: tuple[int, ...]
    """Descriptors of the namespaces, and our end of the guard's pipe, which closes however this process ends."""
    others: frozenset[int]
    """Children that this process had before."""
    adopted_before: bool
    """Whether this process was the parent of orphans before."""

    def reap(self, *others: int) -> None:
        """Take the exit codes of the job's orphans, as init would; ``others``: children that are not the job's."""
        for pid in _children() - self.others - {self.pid, self.guard, *others}:
            _reap(pid)

    def end(self, *others: int) -> list[str]:
        """End all that is left of the job after its end; return lines about what could not be ended."""
        stuck = isolated_processes.end_all(self.namespaces)
        for fd in self.held:
            os.close(fd)
        if self.guard and self.guard not in stuck:
            _reap(self.guard, 0)
        self.reap(*others)
        calls.adopt_orphans(wanted=self.adopted_before)
        return [f"process {pid} of the trial does not end" for pid in stuck]


class _Facts(TypedDict, total=False):
    """What the process says that becomes the job."""

    guard: int
    namespaces: list[str]
    notes: list[str]
    problem: str
    errno: int
    not_started: int


def problem(wanted: Isolation | None = None) -> str:
    """Why this machine or user cannot isolate a job, found by trying; "" if it can."""
    pid, facts = _Pipes(guarded=False).start(_order((), {}, (), wanted or Isolation(), ()))
    _reap(pid, 0)
    return _why_not(facts)


def start(
    argv: Sequence[str], environment: Mapping[str, str], mask: Iterable[int], how: Isolation, keep: Iterable[Path]
) -> IsolatedJob:
    """Start a job isolated.

    Args:
        argv: its command line.
        environment: its environment.
        mask: its signal mask; the caller has blocked all signals that the job must not lose.
        how: the isolation.
        keep: further directories that stay real.

    Raises:
        TargetError: it cannot be isolated.
        OSError: its program cannot be started.
    """
    others, adopted_before = _children(), calls.adopt_orphans(wanted=True)
    pipes = _Pipes(guarded=True)
    pid, facts = pipes.start(_order(argv, environment, mask, how, keep))
    namespaces, guard = frozenset(facts.get("namespaces", ())), facts.get("guard", 0)
    try:
        held = isolated_processes.hold(guard, namespaces)
    except OSError as error:
        os.kill(pid, signal.SIGKILL)
        namespaces, held, facts = frozenset(), [], {"problem": f"its guard: {error.strerror}"}
    job = IsolatedJob(
        pid=pid,
        namespaces=namespaces,
        guard=guard,
        notes=tuple(facts.get("notes", ())),
        held=(pipes.guard_end, *held),
        others=frozenset(others),
        adopted_before=adopted_before,
    )
    if _why_not(facts) or "not_started" in facts:
        _reap(pid, 0)
        job.end()
    if _why_not(facts):
        raise TargetError(f"the job was not started: {_why_not(facts)}")
    if "not_started" in facts:
        raise OSError(facts["not_started"], os.strerror(facts["not_started"]))
    return job


class _Pipes:
    """The pipes between this process and the one that becomes the job."""

    def __init__(self, *, guarded: bool) -> None:
        self._status, self._status_end = os.pipe()
        self._guard, self.guard_end = os.pipe() if guarded else (-1, -1)

    def start(self, order: dict[str, object]) -> tuple[int, _Facts]:
        """Start the process and hear what it says until the job's program starts: (pid, facts)."""
        order.update(status=self._status_end, guard=(self._guard, self.guard_end))
        with os.fdopen(os.memfd_create("order"), "r+b") as file:
            file.write(json.dumps(order).encode())
            file.seek(0)
            for fd in (file.fileno(), self._status_end, self._guard, self.guard_end):
                if fd >= 0:
                    os.set_inheritable(fd, True)
            command = [sys.executable, "-I", "-S", "-c", _CODE, str(_SOURCE), str(file.fileno())]
            pid = os.posix_spawn(sys.executable, command, _own_environment())
        if self.guard_end >= 0:
            os.set_inheritable(self.guard_end, False)
            os.close(self._guard)
        os.close(self._status_end)
        return pid, self._facts(pid)

    def _facts(self, pid: int) -> _Facts:
        """What the process says; also one that is stopped before its program starts must not stop us."""
        text = b""
        while process_stat.state(pid) != "T":
            if select.select([self._status], [], [], _LOOK_S)[0]:
                part = os.read(self._status, 65536)
                if not part:
                    break
                text += part
        os.close(self._status)
        facts: _Facts = {}
        for line in text.splitlines():
            facts.update(json.loads(line))
        return facts


def _order(
    argv: Sequence[str], environment: Mapping[str, str], mask: Iterable[int], how: Isolation, keep: Iterable[Path]
) -> dict[str, object]:
    return {
        "launcher": os.getpid(),
        "argv": list(argv),
        "environment": dict(environment),
        "mask": [int(number) for number in mask],
        "keep": sorted({os.path.realpath(path) for path in (*how.keep, *keep)}),
        "writable": sorted(_writable(argv, environment)),
        "network": how.network,
        "stage": str(_STAGE),
        "tmpfs_bytes": how.tmpfs_bytes,
        "replaced": [(os.path.realpath(path), source) for path, source in how.replaced],
    }


def _writable(argv: Sequence[str], environment: Mapping[str, str]) -> set[str]:
    """Directories in which the job is likely to write: where it starts, at home, and those that it is given."""
    words = [*argv, *(word.partition("=")[2] for word in argv), *environment.values()]
    folders = {word if os.path.isdir(word) else os.path.dirname(word) for word in words}
    folders |= {".", *run_directory.temporary_directories()[1:]}
    return {os.path.realpath(folder) for folder in folders if folder and os.access(folder, os.W_OK)}


def _own_environment() -> dict[str, str]:
    """What this process's Python needs to start, and nothing of the job's."""
    return {_LIBRARIES: os.environ[_LIBRARIES]} if _LIBRARIES in os.environ else {}


def _why_not(facts: _Facts) -> str:
    """Why the process was not isolated; "" if it was."""
    if "problem" in facts:
        hint = _FORBIDDEN if facts.get("errno") in (errno.EPERM, errno.EACCES, errno.ENOSPC) else ""
        return f"it cannot be isolated here ({facts['problem']}){hint}"
    return "" if "namespaces" in facts else "it cannot be isolated here (the attempt ended early)"


def _children() -> set[int]:
    """The children of this process, ended ones that were not waited for included."""
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
                found.update(map(int, file.read().split()))
        except OSError:  # the thread has ended, or the kernel has no such file
            continue
    return found


def _reap(pid: int, options: int = os.WNOHANG) -> None:
    try:
        os.waitpid(pid, options)
    except ChildProcessError:  # it was waited for, or is no child of ours
        return
