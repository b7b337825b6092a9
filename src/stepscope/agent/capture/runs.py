"""Traces the next runs of one task in full: ``RunOptions(FULL_TRACE)`` of a Session.run, with its RunMetadata saved.

The run is identified by its fetches, as its record is named. Its arguments are copied: hooks and the user see options
without a trace, and the RunMetadata that they would have got otherwise. A run that the user traces is left to the user.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from _thread import allocate_lock

from stepscope.agent.capture.profiler import GIVE_WAY_S, STARTED, USERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

    from stepscope.agent.capture.host import CaptureHost
    from stepscope.agent.capture.orders import CaptureCommand
    from stepscope.agent.capture.watch import StepWatch
    from stepscope.agent.core.foreign import Foreign

    Run = Callable[..., Foreign]
    Said = tuple[int, int, int, Foreign]
    """(start on one clock, start on the other, end, RunMetadata) of one run."""

PATIENCE_S = 120.0
"""Longest wait for a run of the task, in seconds."""
CONFIG = "tensorflow.core.protobuf.config_pb2"
STEP_STATS = "step_stats"


class SessionRuns:
    """Traces runs of sessions. ``task`` is read in every run; the other attributes only while it is set."""

    def __init__(self, state: CaptureHost) -> None:
        self._state = state
        self.reset()

    def reset(self) -> None:
        """Request nothing: initially, and in a forked child."""
        self.task: Optional[str] = None
        """Fetches whose next run is traced; None if no run is."""
        self._left = 0
        self._turn = allocate_lock()
        self._asked: Optional[str] = None
        self._said: list[Said] = []
        self._in_run = allocate_lock()
        """Held while a run is traced: TensorFlow profiles it, and a process has only one profiler."""
        self._watch: Optional[StepWatch] = None

    def claim(self, original: Run, text: str) -> Run:
        """The function to call instead of ``original`` for a run that fetches ``text``. One run is traced at a time."""
        if text != self.task or not self._turn.acquire(blocking=False):
            return original
        try:
            if self._left <= 0 or CONFIG not in sys.modules or self._state.captures.profiled():
                return original
            self._left -= 1
            if not self._left:
                self.task = None
        finally:
            self._turn.release()
        return functools.partial(self._traced, original)

    def _traced(
        self,
        original: Run,
        session: object,
        fetches: object,
        feed_dict: object = None,
        options: Foreign = None,
        run_metadata: Foreign = None,
    ) -> Foreign:
        ours = said = None
        with self._state.guard("session.traced"):
            ours, said = _prepared(options)
        if ours is None or not self._in_run.acquire(blocking=False):
            self._give_back()
            return original(session, fetches, feed_dict, options, run_metadata)
        at, unix_ns = time.monotonic_ns(), time.time_ns()
        try:
            result = original(session, fetches, feed_dict, ours, said)
        except BaseException:
            self._give_back()
            raise
        finally:
            self._in_run.release()
        with self._state.guard("session.traced"):
            self._said.append((at, unix_ns, time.monotonic_ns(), said))
            if run_metadata is not None:
                _hand_over(said, run_metadata)
            if self._watch is not None and self._left <= 0:  # woken earlier, it would contend with the remaining runs
                self._watch.wake()
        return result

    def _give_back(self) -> None:
        """Give up this run, which is the user's to trace or failed; the next one is ours."""
        with self._turn:
            self._left += 1
            self.task = self._asked

    def give_way(self) -> None:
        """See ``controller.Tracer``: waits for a run that is being traced."""
        watch = self._watch
        if watch is not None:
            watch.stop(STARTED)
        if self._in_run.acquire(timeout=GIVE_WAY_S):
            self._in_run.release()

    def trace(self, order: CaptureCommand, watch: StepWatch, folder: str) -> dict[str, object]:
        """Trace the next runs of the task and write their metadata; returns the fields of the ``capture`` line."""
        if self._state.captures.profiled():
            return {"outcome": "refused", "text": USERS}
        self._said = []
        self._watch = watch
        with self._turn:
            self._left = order.steps
            self.task = self._asked = order.task
        at = time.monotonic_ns()
        try:
            watch.until(lambda: len(self._said) >= order.steps, PATIENCE_S)
        finally:
            with self._turn:
                self.task = self._asked = None
                self._left = 0
            self._watch = None
        if not self._said:
            why = watch.stopped or "no run of %s in %g s" % (order.task, PATIENCE_S)
            return {"at": at, "outcome": "gave-way" if watch.stopped else "failed", "text": why}
        return _write(self._said, folder)


def _prepared(options: Foreign) -> tuple[Foreign, Foreign]:
    """(options with a full trace, an empty RunMetadata) for a run with ``options``; Nones if the user traces it."""
    config: Foreign = sys.modules[CONFIG]
    if options is not None and options.trace_level != config.RunOptions.NO_TRACE:
        return None, None
    ours = config.RunOptions()
    if options is not None:
        ours.CopyFrom(options)
    ours.trace_level = config.RunOptions.FULL_TRACE
    return ours, config.RunMetadata()


def _hand_over(said: Foreign, theirs: Foreign) -> None:
    """Fill the user's RunMetadata with what it would have got without a trace."""
    for field, _ in said.ListFields():
        if field.name == STEP_STATS:
            continue
        value = getattr(said, field.name)
        mine = getattr(theirs, field.name)
        (mine.extend if hasattr(mine, "extend") else mine.CopyFrom)(value)


def _write(said: list[Said], folder: str) -> dict[str, object]:
    began, used = time.monotonic_ns(), time.thread_time_ns()
    files, size = [], 0
    for number, (_, _, _, metadata) in enumerate(said, 1):
        data = metadata.SerializeToString()
        name = "run-%04d.runmetadata.pb" % number
        with open(os.path.join(folder, name), "wb") as stream:
            stream.write(data)
        files.append(name)
        size += len(data)
    at, unix_ns = said[0][:2]
    line: dict[str, object] = {"at": at, "unix_ns": unix_ns, "recorded_ns": said[-1][2] - at, "steps": len(said)}
    line.update(export_ns=time.monotonic_ns() - began, cpu_ns=time.thread_time_ns() - used)
    if not size:
        return {**line, "outcome": "failed", "text": "the traced runs returned no RunMetadata"}
    return {**line, "outcome": "done", "files": files, "bytes": size}
