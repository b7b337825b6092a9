"""What a job that does nothing waits for: the wait of the thread on which the others depend.

A wait is recognised by what must be so while it lasts: the system call and its file (a connection, a pipe), else the
function of Python's library or TensorFlow's in which the thread is. A main thread that waits for another thread of its
process is not the one to look at: it is the thread that waits for something outside, or the one that makes the input.

Serves HNG001, and the live status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.python.framework_files import framework_of
from stepscope.tables.hang import HangFrame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.model.log.program import RunWaits
    from stepscope.tables.hang import ChildEnded, HangThread

_NETWORK_CALLS = frozenset(
    {"read", "readv", "recvfrom", "recvmsg", "recvmmsg", "poll", "ppoll", "select", "pselect6", "epoll_wait"}
    | {"epoll_pwait", "epoll_pwait2", "connect", "sendto", "write", "writev", "sendmsg"}
)
_SLEEPS = frozenset({"nanosleep", "clock_nanosleep", "restart_syscall"})
_TIMED = frozenset({"select", "pselect6", "poll", "ppoll"})
"""Calls that are a sleep if they wait for no file."""
_FOR_WORK = frozenset({"accept", "serve_forever", "run_forever", "input", "pause", "sigwait", "_run_once", "mainloop"})
"""Functions in which servers, notebooks and consoles wait."""
_SERVERS = ("/training/server_lib.py", "/data/experimental/service/server_lib.py")
"""Modules of servers, of a cluster and of tf.data's service, whose ``join`` waits for requests."""
_JOIN = frozenset({"join"})
_ASKS = ("pdb.py", "cmd.py", "code.py", "bdb.py", "codeop.py")
"""Modules that wait for a person."""
_QUEUES = ("/queue.py", "/multiprocessing/queues.py", "/ops/data_flow_ops.py")
_OF_PROCESSES = ("/multiprocessing/queues.py",)
_QUEUE_CALLS = frozenset({"get", "put", "join", "dequeue", "enqueue", "dequeue_many", "dequeue_up_to", "enqueue_many"})
_PROCESSES = (
    "/multiprocessing/pool.py",
    "/multiprocessing/connection.py",
    "/multiprocessing/popen_fork.py",
    "/multiprocessing/popen_spawn_posix.py",
    "/multiprocessing/process.py",
    "/multiprocessing/synchronize.py",
    "/multiprocessing/queues.py",
    "/multiprocessing/managers.py",
    "/concurrent/futures/process.py",
    "/subprocess.py",
)
_THREADS = ("/threading.py", "/concurrent/futures/_base.py", "/concurrent/futures/thread.py")
_NETWORK = ("/socket.py", "/ssl.py", "/http/client.py", "/urllib/request.py", "/urllib3/connection.py")
_INPUT = ("/data/ops/iterator_ops.py", "/data/ops/dataset_ops.py", "/data/ops/multi_device_iterator_ops.py")
_MEETINGS = ("/distribute/collective_all_reduce_strategy.py", "/eager/remote.py", "/training/server_lib.py")
_MEETS = frozenset({"ensure_initialized", "enable_collective_ops", "get_config_key_value", "wait_at_barrier"})
_SESSION = "/client/session.py"
_INSIDE = frozenset({"dataset", "framework", "queue", "lock", "thread"})
"""Waits for another thread of the same process."""
_FIRST = ("network", "process", "queue", "lock", "thread", "sleep")
"""Which wait of another thread explains the main thread's, the first one first."""
KINDS = {"thread": "lock", "framework": "other", "sleep": "other"}
"""Kinds as they are shown, where they differ."""


class Wait(Struct, frozen=True, kw_only=True):
    """What one thread waits for."""

    kind: str
    """queue | dataset | process | lock | thread | network | framework | sleep | work (for requests) | running"""
    text: str
    frame: HangFrame
    """The user's innermost line, else the innermost frame."""
    thread: HangThread


def of_thread(thread: HangThread) -> Wait | None:
    """The wait of one thread; None if none of its functions is the user's."""
    own = next((frame for frame in thread.frames if frame.own), None)
    if own is None:
        return None
    inner = thread.frames[: thread.frames.index(own)]
    kind, text = _kind(thread, own, inner)
    return Wait(kind=kind, text=text, frame=own, thread=thread)


def _kind(thread: HangThread, own: HangFrame, inner: Sequence[HangFrame]) -> tuple[str, str]:
    function = inner[-1].function.rpartition(".")[2] if inner else ""
    if thread.state == "R" and not thread.call:
        return "running", f"computes{f' in {function}' if function else ''}"
    if any(frame.file.endswith(_ASKS) for frame in inner) or _waits_for_work(thread, own, inner):
        return "work", "waits for requests"
    if thread.on.startswith("TCP ") and thread.call in _NETWORK_CALLS:
        return "network", f"waits for the network: {thread.on[4:]} ({thread.call})"
    if any(_meets(frame) for frame in inner):
        return "network", f"waits for the other tasks of its cluster ({function})"
    return _by_function(thread, inner, function)


def _waits_for_work(thread: HangThread, own: HangFrame, inner: Sequence[HangFrame]) -> bool:
    named = {frame.function.rpartition(".")[2] for frame in (*inner, own)}
    if thread.on.startswith(("listening TCP", "served TCP")) or named & _FOR_WORK:
        return True
    if _is_in(inner, _SERVERS, _JOIN):
        return True
    return any(frame.file.endswith("/selectors.py") for frame in inner) and not thread.on.startswith("TCP ")


def _by_function(thread: HangThread, inner: Sequence[HangFrame], function: str) -> tuple[str, str]:
    call = f" ({function})" if function else ""
    inside = next((title for frame in inner if (title := framework_of(frame.file))), "")
    to_end = " to end" if function in {"join", "_wait_for_tstate_lock"} else ""
    rules = (
        (_is_in(inner, _QUEUES, _QUEUE_CALLS) and not _is_in(inner, _OF_PROCESSES), "queue", f"for a queue{call}"),
        (_is_in(inner, _PROCESSES) and not _sleeps(thread), "process", f"for another process{call}"),
        (_is_in(inner, _INPUT), "dataset", "for a batch of its dataset"),
        (bool(inside), "framework", f"inside {inside}{call}"),
        (_is_in(inner, _NETWORK), "network", f"for the network{call}"),
        (_is_in(inner, _THREADS), "thread", f"for another thread{to_end}{call}"),
        (_sleeps(thread), "sleep", "for something in a loop of sleeps"),
        (thread.call == "futex", "lock", f"for a lock{call}"),
        (thread.call in {"wait4", "waitid"} or thread.on in {"pipe", "socket"}, "process", "for another process"),
    )
    found = next((rule for rule in rules if rule[0]), None)
    return (found[1], f"waits {found[2]}") if found else ("lock", f"waits{' in ' + thread.call if thread.call else ''}")


def _is_in(inner: Sequence[HangFrame], modules: tuple[str, ...], functions: frozenset[str] | None = None) -> bool:
    """Whether one of the functions is of these modules, and has one of these names if there are any."""
    mine = [frame for frame in inner if frame.file.endswith(modules)]
    return any(functions is None or frame.function.rpartition(".")[2] in functions for frame in mine)


def _sleeps(thread: HangThread) -> bool:
    return thread.call in _SLEEPS or (thread.call in _TIMED and not thread.on)


def _meets(frame: HangFrame) -> bool:
    return frame.function.rpartition(".")[2] in _MEETS and frame.file.endswith((*_MEETINGS, "/eager/context.py"))


class Root(Struct, frozen=True, kw_only=True):
    """What a job waits for."""

    wait: Wait
    main: Wait
    """Of the main thread; the same as ``wait`` if it waits itself."""
    text: str


def root(threads: Sequence[HangThread], ended: Sequence[ChildEnded] = (), run: RunWaits | None = None) -> Root | None:
    """The wait on which the others depend; None if the main thread runs none of the user's code.

    Args:
        threads: threads of all processes, the main thread first.
        ended: processes of the job that have ended shortly before or since.
        run: what the newest long Session.run may wait for.
    """
    main = of_thread(threads[0]) if threads else None
    if main is None:
        return None
    mine = [wait for wait in map(of_thread, threads[1:]) if wait is not None and wait.kind in (*_FIRST, "running")]
    others = [wait for wait in mine if wait.thread.pid == main.thread.pid]
    children = [wait for wait in mine if wait.thread.pid != main.thread.pid]
    wait = _behind(main, others)
    if wait.kind == "process":
        wait = wait if ended else _first(children, ("network", "lock", "queue")) or wait
    text = wait.text
    if ended and wait.kind in {"process", "sleep"}:
        wait = Wait(kind="process", text=wait.text, frame=wait.frame, thread=wait.thread)
        text = f"{wait.text}; {_ended(ended)}"
    if run is not None and run.ops and wait.kind == "framework" and _is_in(wait.thread.frames, (_SESSION,)):
        kind = "queue" if run.ops[0][0].startswith("Queue") else "dataset"
        wait = Wait(kind=kind, text=wait.text, frame=wait.frame, thread=wait.thread)
        text = f"waits for a {kind}: {run.ops[0][0]} {run.ops[0][1]}{_at(run.ops[0][2], run.ops[0][3], ', made at ')}"
    if wait.kind == "lock":
        text += "".join(f"; {_also(other)}" for other in others if other.kind == "lock" and other is not wait)
    return Root(wait=wait, main=main, text=text)


def _at(file: str, line: int, before: str) -> str:
    return f"{before}{file.rpartition('/')[2]}:{line}" if file else ""


def _also(other: Wait) -> str:
    return f"so does another thread, in {other.frame.function}{_at(other.frame.file, other.frame.line, ' ')}"


def _behind(main: Wait, others: Iterable[Wait]) -> Wait:
    if main.kind not in _INSIDE:
        return main
    external = _first(others, ("network", "process"))
    if external is not None:
        return external
    if main.kind in {"dataset", "framework", "thread"}:
        return _first(others, (*_FIRST, "running")) or main
    return main


def _first(waits: Iterable[Wait], kinds: Sequence[str]) -> Wait | None:
    return min((wait for wait in waits if wait.kind in kinds), key=lambda wait: kinds.index(wait.kind), default=None)


def _ended(ended: Sequence[ChildEnded]) -> str:
    last = ended[-1]
    more = f" (and {len(ended) - 1} more)" if len(ended) > 1 else ""
    return f"process {last.pid}{more} {'was ' if last.how.startswith('killed') else ''}{last.how or 'ended'} before"
