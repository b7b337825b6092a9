"""Puts its process into new namespaces and then runs the job's program in it: same pid, nothing else changed.

The launcher starts it (``sandbox.isolation``) with signals blocked and without the job's environment, which
could load libraries and their threads into it. It says what it does on a pipe that closes when the program starts.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from typing import NoReturn

from stepscope.sandbox import isolated_calls as calls
from stepscope.sandbox import isolated_descriptors as descriptors
from stepscope.sandbox import isolated_mounts as mounts
from stepscope.sandbox import isolated_processes as processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class JobOrder(TypedDict):
        """What the launcher asks for."""

        launcher: int
        status: int
        """Descriptor for lines of JSON about the start."""
        guard: tuple[int, int]
        """Both ends of the pipe of ``isolated_processes.guard``; (-1, -1): this is only a try."""
        argv: list[str]
        environment: dict[str, str]
        mask: list[int]
        """The job's signal mask."""
        keep: list[str]
        writable: list[str]
        network: bool
        stage: str
        tmpfs_bytes: int
        replaced: list[tuple[str, str]]


def main(argv: list[str]) -> NoReturn:
    """Isolate this process and run the job; ``argv``: the descriptor from which to read the order."""
    with open(int(argv[0]), "rb") as stream:
        order: JobOrder = json.load(stream)
    for fd in (order["status"], *order["guard"]):
        if fd >= 0:
            os.set_inheritable(fd, False)
    _follow(order["launcher"])
    try:
        user_namespace = _isolate(order)
    except OSError as error:
        _say(order, problem=f"{error.strerror or error}", errno=error.errno)
        os._exit(1)
    if order["guard"][0] < 0:
        _try(order, user_namespace=user_namespace)
    _become(order)


def _follow(launcher: int) -> None:
    """Die with the launcher, which may have died already."""
    calls.die_with_parent(signal.SIGKILL)
    if os.getppid() != launcher:
        os._exit(1)


def _say(order: JobOrder, **facts: object) -> None:
    os.write(order["status"], json.dumps(facts).encode() + b"\n")


def _isolate(order: JobOrder) -> bool:
    """Do everything but the job; return whether it took a user namespace."""
    cwd = _cwd()
    before = processes.own_namespaces()
    user_namespace = _unshare(network=order["network"])
    _follow(order["launcher"])  # a change of rights forgets it
    new = sorted(processes.own_namespaces() - before)
    _start_guard(order, frozenset(new))
    place = mounts.RootPlace(order["stage"], order["tmpfs_bytes"], user_namespace, tuple(order["writable"]))
    opened = descriptors.writable()
    notes = mounts.build(place, order["keep"]) + descriptors.reopen(opened)
    _replace(order["replaced"])
    if cwd:
        os.chdir(cwd)
    if not order["network"]:
        calls.loopback_up()
    _say(order, namespaces=new, notes=notes)
    return user_namespace


def _replace(files: list[tuple[str, str]]) -> None:
    """Give files another content in the overlay; the real ones stay as they are."""
    for path, source in files:
        with open(source, "rb") as stream:
            content = stream.read()
        with open(path, "wb") as stream:
            stream.write(content)


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # deleted: nothing can be written there
        return ""


def _start_guard(order: JobOrder, new: frozenset[str]) -> None:
    """Start the guard, as no child of the job's."""
    pipe, end = order["guard"]
    if pipe < 0:
        return
    child = os.fork()
    if not child:
        if not os.fork():
            os.close(end)
            _say(order, guard=os.getpid())
            os.close(order["status"])
            processes.guard(pipe, new)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(pipe)


def _unshare(*, network: bool) -> bool:
    """Enter new namespaces, with those of users only if it takes them; return whether it did."""
    flags = calls.CLONE_NEWNS | calls.CLONE_NEWIPC | (0 if network else calls.CLONE_NEWNET)
    try:
        calls.unshare(flags)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    else:
        return False
    uid, gid = os.getuid(), os.getgid()
    calls.unshare(flags | calls.CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    return True


def _try(order: JobOrder, *, user_namespace: bool) -> NoReturn:
    """Try what jobs do and old kernels cannot, and say what failed."""
    try:
        os.close(os.pidfd_open(os.getpid()))  # Linux 5.3: without it, processes cannot be ended safely
        mounts.replace_a_folder(user_namespace=user_namespace)
    except OSError as error:
        _say(order, problem=f"Linux {os.uname().release} is too old: {error.strerror}", errno=error.errno)
    os._exit(0)


def _become(order: JobOrder) -> NoReturn:
    """Run the job's program with its environment and signals."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these two in itself
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    argv, environment = order["argv"], order["environment"]
    signal.pthread_sigmask(signal.SIG_SETMASK, order["mask"])
    try:
        try:
            os.execvpe(argv[0], argv, environment)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            os.execve("/bin/sh", ["/bin/sh", *argv], environment)  # no "#!": a shell would run it as a shell script
    except OSError as error:
        _say(order, not_started=error.errno)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
