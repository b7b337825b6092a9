"""Runs one capture at a time, on its own thread, which lasts as long as the capture.

A request that arrives during the first look (``first_look``) waits for it; any other is refused while a capture runs.

The same number of untraced steps around the traced ones is recorded in full, so that the session can tell the cost of
tracing: during a capture there is no gap and nothing is thinned (``agent.duty_cycle``, ``agent.sampling.governor``).
"""

from __future__ import annotations

import json
import os
import time
from _thread import allocate_lock

from stepscope.agent.capture import leaving
from stepscope.agent.capture.first_look import ASKED_BY
from stepscope.agent.capture.orders import CaptureCommand
from stepscope.agent.capture.watch import StepWatch
from stepscope.agent.core import side_thread
from stepscope.agent.core.graph_sizes import GraphSizes
from stepscope.wire.env import CAPTURES_NAME, CONFIG_NAME, RAW_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from stepscope.agent.capture.host import CaptureHost

    class Tracer(Protocol):
        """Interface of a way of tracing."""

        def trace(self, order: CaptureCommand, watch: StepWatch, folder: str) -> dict[str, object]:
            """Trace; returns the fields of the ``capture`` line. Unknown errors are raised."""

        def give_way(self) -> None:
            """The user's own profiler is about to start in this thread: when this returns, ours is not running."""

        def reset(self) -> None:
            """In a forked child: forget the running trace."""


KIND = "ops"
MARGIN_S = 5.0
"""Longest wait for the untraced steps before, and for those after."""
EXIT_S = 1.0
"""Longest wait of an ending job for its running capture."""
UNSAFE_EXIT_S = 60.0
"""Longest wait where a thread that still writes might abort the ending process (``leaving``)."""


class Captures:
    """The captures of this process. The probes of the traced frameworks set ``tracers``."""

    def __init__(self, state: CaptureHost) -> None:
        self._state = state
        self.tracers: dict[str, Tracer] = {}
        """Tracers by ``CaptureCommand.way``."""
        self.profiled: Callable[[], bool] = bool
        """Test whether the user's own profiler is running; set by the probe that knows."""
        self.served = False
        """Whether a profiler server was started, whose clients may profile at any moment."""
        self.sizes = GraphSizes()
        """Sizes of the graphs traced so far, for the first look."""
        self.asked = 0
        """Number of captures that were requested."""
        self.recording = False
        """Whether steps are being traced, or the trace is written."""
        self.leave_ns = 0
        """Moment until which an ending job may still work for its captures; 0: it has none, or ends by a signal."""
        self._busy = allocate_lock()
        self._watch: StepWatch | None = None
        self._identity = ""
        """Id of the running capture."""
        self._first = False
        """Whether that is the first look."""
        self._next: CaptureCommand | None = None
        """Request that waits for the end of the first look."""
        self._lost = ""
        """Id of a capture that the job did not wait for."""

    def after_fork(self) -> None:
        """In a forked child: the running capture belongs to the parent."""
        self._busy = allocate_lock()
        self._watch = self._next = None
        for tracer in self.tracers.values():
            tracer.reset()

    def order(self, fields: dict[str, object]) -> None:
        """On the agent's thread: carry out a command, or log why not."""
        self.asked += 1
        try:
            order = CaptureCommand(fields)
        except (ValueError, KeyError) as error:
            self._say(str(fields.get("id", "")), {"outcome": "refused", "text": "not understood: %s" % error})
            return
        if order.way not in self.tracers:
            text = "cannot trace by %s: it is not imported here, or its interface is unknown" % order.way
            self._say(order.identity, {"outcome": "refused", "text": text})
        elif not self._busy.acquire(blocking=False):
            if self._first and self._next is None:
                self._next = order
                self._close("another capture was requested")
                return
            self._say(order.identity, {"outcome": "refused", "text": "another capture is in progress"})
        else:
            self._begin(order)

    def _begin(self, order: CaptureCommand) -> None:
        self._identity = order.identity
        self._first = order.echo["asked_by"] == ASKED_BY and not order.echo["request"]
        watch = self._watch = StepWatch(order.anchors, order.thread, order.usual)
        self._state.duty_cycle.hold(self._state.now())
        try:
            side_thread.start(self._run, order, watch)
        except RuntimeError as error:
            self._end()
            self._say(order.identity, {"outcome": "failed", "text": str(error)})

    def enough(self, fields: dict[str, object]) -> None:
        """On the agent's thread: end the capture that a command names and keep the steps that it has."""
        watch = self._watch
        if watch is not None and fields.get("capture") == self._identity:
            watch.end()

    def stop(self, why: str) -> bool:
        """End the running capture as soon as possible. Returns whether one was running."""
        watch = self._watch
        if watch is not None:
            watch.stop(why)
        return watch is not None

    def give_way(self) -> None:
        """In a thread that is about to start the user's own profiler: when this returns, ours is gone."""
        for tracer in self.tracers.values():
            tracer.give_way()

    def _close(self, why: str) -> None:
        """End the running capture with the steps that it has."""
        watch = self._watch
        if watch is not None:
            watch.close(why)

    def finish(self) -> None:
        """At exit: end the running capture with the steps that it has, and wait for its files, but not long."""
        if not self.asked:
            return
        now = self._state.now()
        waits = not leaving.interrupted(self._state.lines.run)
        self.leave_ns = now + int(EXIT_S * 1e9) if waits else 0
        if self._watch is None:
            return
        self._next = None
        self._close("the job ended first")
        if self._busy.acquire(timeout=EXIT_S if waits else 0):
            return
        self._lost = self._identity
        why = "it waits at most %g s for a trace to be written" % EXIT_S if waits else "by a signal"
        self._say(self._identity, {"outcome": "failed", "text": "the job ended first: " + why})
        if not leaving.let_go():
            self._busy.acquire(timeout=UNSAFE_EXIT_S)

    def _run(self, order: CaptureCommand, watch: StepWatch) -> None:
        state = self._state
        try:
            state.records.tap(watch.record)
            self._capture(order, watch)
            if not watch.stopped:
                watch.wait(order.margin, MARGIN_S, lambda: watch.closed or watch.away)
        except Exception as error:
            state.failures.add("captures.run", error)
        finally:
            state.records.tap(None)
            self._end()

    def _end(self) -> None:
        self._watch = None
        following, self._next = self._next, None
        if following is None:
            self._state.duty_cycle.release()
            self._busy.release()
        else:
            self._begin(following)
            self._state.duty_cycle.release()

    def _capture(self, order: CaptureCommand, watch: StepWatch) -> None:
        line: dict[str, object] = {"outcome": "failed"}
        try:
            folder = self._folder(order)
            if order.aim is not None:
                watch.follow(order.aim)
            if order.anchors:
                watch.wait(order.before, MARGIN_S, lambda: watch.closed)
            if watch.stopped:
                line = {"outcome": "gave-way", "text": watch.stopped}
            else:
                self.recording = True
                line = self.tracers[order.way].trace(order, watch, folder)
        except Exception as error:
            self._state.failures.add("captures.trace", error)
            line["text"] = "%s: %s" % (type(error).__name__, error)
        finally:
            self.recording = False
        if order.aim is not None and order.aim.begin_ns:
            line["ends"] = watch.ends_ns[: 1 + int(str(line.get("steps", 0)))]
        line.update(way=order.way, anchors=[list(pair) for pair in order.anchors], thread=watch.thread, **order.echo)
        self._say(order.identity, line)

    def _folder(self, order: CaptureCommand) -> str:
        """Make the folder in the session for the capture's files.

        Raises:
            OSError: no session yet, no space, no rights.
        """
        with open(os.path.join(self._state.lines.run, CONFIG_NAME), encoding="utf-8") as stream:
            session = json.load(stream).get("session")
        if not session or not os.path.isdir(session):
            raise FileNotFoundError("there is no session %r" % session)
        folder = os.path.join(session, CAPTURES_NAME, RAW_PREFIX + order.identity)
        os.makedirs(folder, 0o700)
        return folder

    def _say(self, identity: str, fields: dict[str, object]) -> None:
        if identity == self._lost and fields["outcome"] != "failed":  # the log has it, and its files are not taken
            return
        self._state.lines.log({"t": "capture", "at": time.monotonic_ns(), "id": identity, "kind": KIND, **fields})
