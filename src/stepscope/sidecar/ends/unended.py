"""Says that a process has not ended although its program has, and what it waits for.

The agent has no thread by then, or has left: exit handlers run, or only threads that are no daemons keep the process
alive. Seen from outside: the last line of its log, else the main thread's outermost function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stepscope.native.waiting import look
from stepscope.tables.units import format_ns
from stepscope.wire.env import unended_ns

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.collector.recording.drain import WorkerDrain
    from stepscope.tables.hang import HangFrame, HangThread

CODE = "DX103"
_MOST_BETWEEN_NS = 600_000_000_000
"""Between two looks at an idle process: it doubles from look to look."""
_MOST_THREADS = 4


class _Found(NamedTuple):
    """What a process waits for whose program ended at ``since_ns`` of CLOCK_MONOTONIC, or before."""

    since_ns: int
    waits: str


class UnendedProcesses:
    """Looks at the processes of one recording that record nothing any more."""

    def __init__(self, recording: Recording) -> None:
        """No program has ended."""
        self._recording = recording
        self._least_ns = unended_ns()
        self._next: dict[str, tuple[int, int]] = {}
        """(time of the next look, time until the one after), by key of the worker."""
        self._found: dict[str, _Found] = {}

    def tick(self, now_ns: int, state: str) -> None:
        """What is due at this moment."""
        del state
        said: dict[str, str] = {}
        for worker in self._recording.drainer.workers.values():
            if worker.closed or not self._is_quiet(worker, now_ns) or not worker.alive():
                self._next.pop(worker.key, None)
                self._found.pop(worker.key, None)
                continue
            due_ns, between_ns = self._next.get(worker.key, (0, self._least_ns))
            if now_ns >= due_ns:
                self._next[worker.key] = (now_ns + between_ns, min(2 * between_ns, _MOST_BETWEEN_NS))
                self._look(worker, now_ns)
            if worker.key in self._found:
                said[worker.key] = _text(worker, self._found[worker.key], now_ns)
        self._recording.drainer.ends.unended = said

    def _is_quiet(self, worker: WorkerDrain, now_ns: int) -> bool:
        newest_ns = max(worker.info.started_ns, worker.info.ended_ns) + self._recording.manifest.origin_monotonic_ns
        return now_ns - max(worker.recent.worked_ns, newest_ns) >= self._least_ns

    def _look(self, worker: WorkerDrain, now_ns: int) -> None:
        threads, _ = look.at_threads([worker.pid])
        main = next((thread for thread in threads if thread.tid == worker.pid), None)
        if main is None:
            return
        if worker.info.clean_exit:
            since_ns = worker.info.ended_ns + self._recording.manifest.origin_monotonic_ns
            found = _Found(since_ns, f"its main thread waits {_place(main)}")
            self._recording.drainer.ends.stuck.add(worker.key)
        elif main.frames and _is_shutdown(main.frames[-1]):
            others = [thread for thread in threads if thread is not main and thread.frames][:_MOST_THREADS]
            places = ", ".join(f"thread {thread.tid} {_place(thread)}" for thread in others)
            found = _Found(worker.recent.worked_ns or now_ns, f"it waits for its threads ({places})")
        else:
            return
        if worker.key not in self._found:
            self._recording.note(CODE, _text(worker, found, now_ns))
        self._found[worker.key] = found


def _text(worker: WorkerDrain, found: _Found, now_ns: int) -> str:
    ago = format_ns(now_ns - found.since_ns)
    return f"the program of process {worker.pid} ended {ago} ago, its process has not: {found.waits}"


def _is_shutdown(frame: HangFrame) -> bool:
    """Whether the interpreter has called this: the program's own code is over."""
    return frame.function.rpartition(".")[2] == "_shutdown" and frame.file.endswith("/threading.py")


def _place(thread: HangThread) -> str:
    """Where a thread is: in the user's function, else in Python's, else in the kernel."""
    frame = next((frame for frame in thread.frames if frame.own), thread.frames[0] if thread.frames else None)
    if frame is not None:
        return f"in {frame.function}, {frame.file.rpartition('/')[2]}:{frame.line}"
    return f"outside of Python, in {thread.call or 'native code'}{' on ' + thread.on if thread.on else ''}"
