"""Runs TensorFlow's own profiler for some steps outside the training thread: nothing listens, nothing waits for it.

``ProfilerSession.export_to_tb`` releases the interpreter lock, so on its own thread it stalls no other: the largest gap
of a loop running at the same time was one switch interval, while ``tf.profiler.experimental.stop`` in the training
thread stalls it for as long as there is data to write (docs/decisions/0014-captures.md). A profiler that the user
starts wins: ours is dropped before theirs begins.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock

from stepscope.agent.capture import framework_log, split_activities

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from stepscope.agent.capture.orders import CaptureCommand
    from stepscope.agent.capture.watch import StepWatch
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.core.lines import AgentLog

GIVE_WAY_S = 30.0
"""Longest wait of a user's profiler for ours, which may have to write what it has."""
USERS = "the user's own profiler runs"
STARTED = "the user's own profiler has started"
PATIENCE_S = 120.0
"""Longest wait for a single step, in seconds."""
TRIES = 3
"""Number of attempts: if an evaluation begins before the first whole step, the next step starts a new trace."""
NO_STEPS = "no complete step was seen between evaluations, or no step within %g s" % PATIENCE_S
MAX_GROWTH_BYTES = 256 << 20
"""Growth above the earlier peak memory at which recording ends with the steps so far. A step's own tensors come and
go."""
MIN_FREE_BYTES = 256 << 20
"""Free space required on the file system that takes the trace."""
HONOURS_OPTIONS_BEFORE = (2, 19)
"""First TensorFlow version given no options: from 2.20 on each is refused with a line on stderr; 2.19 was not
examined."""
_LOOKS = 5
"""Number of times that the clocks are read."""
_SUFFIX = ".xplane.pb"
_FIRST_BYTES = (b"\n", b"\x12", b"\x1a", b'"')
"""First bytes that an XSpace message may have: the tags of its four fields. Source: xplane.proto."""


class Profiler:
    """Coordinates our profiler with the user's."""

    def __init__(self, lines: AgentLog, module: Foreign) -> None:
        """``module``: tensorflow.python.profiler.profiler_v2."""
        self._lines = lines
        self._module = module
        self._sessions = module._pywrap_profiler.ProfilerSession
        self.reset()

    def reset(self) -> None:
        """Mark our profiler as not running: initially, and in a forked child."""
        self._turn = allocate_lock()
        """Held while deciding who profiles."""
        self._ours = allocate_lock()
        """Held while our session exists."""
        self._watch: Optional[StepWatch] = None
        self._starting = 0

    # -- the user's ----------------------------------------------------------------------------------------------

    def give_way(self) -> None:
        """In a thread that is about to start its own profiler: when this returns, ours is gone."""
        self._starting += 1  # from here on none of ours starts; one that is just starting holds _turn
        if self._turn.acquire(timeout=GIVE_WAY_S):
            self._turn.release()
        watch = self._watch
        if watch is None:
            return
        watch.stop(STARTED)
        if self._ours.acquire(timeout=GIVE_WAY_S):
            self._ours.release()
        else:
            self._lines.diagnostic(
                "DX914", "stepscope's profiler did not give way to the program's in %g s" % GIVE_WAY_S
            )

    def started(self) -> None:
        """The user's start has returned, or failed."""
        self._starting -= 1

    def of_user(self) -> bool:
        """Whether a profiler of the user's is running or being started."""
        return bool(self._starting or getattr(self._module, "_profiler", None) is not None)

    # -- ours ----------------------------------------------------------------------------------------------------

    def trace(self, order: CaptureCommand, watch: StepWatch, folder: str) -> dict[str, object]:
        """Record the steps of ``order`` and write them into ``folder``; returns the fields of the ``capture`` line."""
        free = os.statvfs(folder)
        if free.f_bavail * free.f_frsize < MIN_FREE_BYTES:
            return {"outcome": "refused", "text": "less than %d MB are free in %s" % (MIN_FREE_BYTES >> 20, folder)}
        used = time.thread_time_ns()
        for _ in range(TRIES):
            seen = not order.anchors or watch.wait(1, PATIENCE_S)
            if watch.stopped:
                return {"outcome": "gave-way", "text": watch.stopped}
            if not seen:
                break
            line = self._attempt(order, watch, folder)
            if line is not None:
                line.setdefault("cpu_ns", time.thread_time_ns() - used)
                return line
        return {"outcome": "failed", "text": NO_STEPS}

    def _attempt(self, order: CaptureCommand, watch: StepWatch, folder: str) -> Optional[dict[str, object]]:
        """Trace from now on. Returns None, and keeps nothing, if an evaluation began before there was a whole step."""
        self._ours.acquire()
        try:
            with split_activities.without():
                return self._session(order, watch, folder)
        except split_activities.CannotPreventError as error:
            return {"outcome": "refused", "text": str(error)}
        finally:
            self._ours.release()

    def _session(self, order: CaptureCommand, watch: StepWatch, folder: str) -> Optional[dict[str, object]]:
        """One session of TensorFlow's profiler, which has ended when this returns."""
        with framework_log.without_info():
            session = self._sessions()
        try:
            refused = self._begin(session, folder, order, watch)
            if refused:
                return {"outcome": "refused", "text": refused}
            line = self._record(order, watch)
            if watch.stopped:
                return {**line, "outcome": "gave-way", "text": watch.stopped}
            if watch.left and not watch.marked:
                return None
            if "outcome" in line:
                return line
            began = time.monotonic_ns()
            with framework_log.without_info():
                line.update(_export(session, folder))
                session = None  # gives back what it held, on this thread but on the job's CPU
            return {**line, "export_ns": time.monotonic_ns() - began}
        finally:
            with framework_log.without_info():
                session = self._watch = None  # the last reference: if the session was not exported, it ends here

    def _begin(self, session: Foreign, folder: str, order: CaptureCommand, watch: StepWatch) -> str:
        """Start recording; returns the reason for a failure, else ""."""
        with self._turn:
            if self.of_user():
                return USERS
            try:
                with framework_log.without_info():
                    session.start(folder, options(order.level))
            except (
                Exception
            ) as error:  # raised by TensorFlow: another session is running, which a profiler server may have started
                return "TensorFlow's profiler cannot be started: %s: %s" % (type(error).__name__, error)
            self._watch = watch
        return ""

    def _record(self, order: CaptureCommand, watch: StepWatch) -> dict[str, object]:
        """Wait for the steps. ``at`` and ``unix_ns`` are one moment on two clocks: TensorFlow uses the second."""
        at, unix_ns = moment()
        size = max(_resident(), _peak())
        until = at + int(order.seconds * 1e9)
        grown: list[int] = []

        def enough() -> bool:
            if _resident() - size > MAX_GROWTH_BYTES:
                grown.append(1)
            return bool(grown) or watch.enough or watch.left or (watch.marked > 0 and time.monotonic_ns() > until)

        trace_me = getattr(sys.modules.get("tensorflow.python.profiler.internal._pywrap_traceme"), "TraceMe", None)
        if order.anchors:
            watch.mark(trace_me, order.steps, order.aim.mark_ns if order.aim is not None else 0)
            if trace_me is None:
                watch.wait(order.steps + 1, max(order.seconds, PATIENCE_S), enough)
            else:
                watch.wait_marked(max(order.seconds, PATIENCE_S), enough)
        else:
            watch.wait(1, order.seconds, enough)
        line: dict[str, object] = {"at": at, "unix_ns": unix_ns, "recorded_ns": time.monotonic_ns() - at}
        line.update(steps=watch.marked, level=order.level if options(order.level) else 0)
        if watch.left:
            line["text"] = "an evaluation began after %d of %d steps" % (watch.marked, order.steps)
        elif grown:
            line["text"] = "the job grew by %d MB while it was traced" % (MAX_GROWTH_BYTES >> 20)
            if order.anchors and trace_me is not None and not watch.marked:  # nothing to write
                line["outcome"] = "failed"
        elif order.anchors and trace_me is None:
            line["text"] = "this TensorFlow has no TraceMe: steps are not marked"
        return line


def moment() -> tuple[int, int]:
    """This moment on both clocks, read as close together as possible: another thread may run in between."""
    found = []
    for _ in range(_LOOKS):
        before, unix_ns, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        found.append((after - before, (before + after) // 2, unix_ns))
    return min(found)[1:]


def options(level: int) -> dict[str, int]:
    """Options for ``ProfilerSession.start``: none if TensorFlow would refuse them."""
    words = str(getattr(sys.modules.get("tensorflow"), "__version__", "")).split(".")
    try:
        version = (int(words[0]), int(words[1]))
    except (ValueError, IndexError):
        return {}
    if version >= HONOURS_OPTIONS_BEFORE:
        return {}
    return {"host_tracer_level": level, "python_tracer_level": 0, "device_tracer_level": 1}


def _export(session: Foreign, folder: str) -> dict[str, object]:
    """Stop and write; returns the outcome. An empty or damaged file is a failure."""
    failure = ""
    try:
        session.export_to_tb()
    except Exception as error:  # raised by TensorFlow: no space, no rights
        failure = "the trace could not be written: %s: %s" % (type(error).__name__, error)
    path, size = _written(folder)
    if not failure and not path:
        failure = "TensorFlow wrote no trace"
    if not failure:
        failure = _damage(path, size)
    if failure:
        return {"outcome": "failed", "text": failure}
    return {"outcome": "done", "files": [os.path.relpath(path, folder)], "bytes": size}


def _written(folder: str) -> tuple[str, int]:
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(_SUFFIX):
                path = os.path.join(where, name)
                return path, os.stat(path).st_size
    return "", 0


def _damage(path: str, size: int) -> str:
    """Why a file cannot be a trace. TensorFlow leaves an empty file, without an error, if 2 GB do not suffice."""
    if not size:
        return "TensorFlow wrote an empty trace: it was larger than 2 GB, or memory ran out"
    with open(path, "rb") as stream:
        first = stream.read(1)
    return "" if first in _FIRST_BYTES else "TensorFlow wrote a file that is no trace"


def _resident() -> int:
    """Resident memory of this process in bytes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES


def _peak() -> int:
    """Peak resident memory of this process in bytes; 0 if unknown."""
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
