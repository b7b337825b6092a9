"""Runs one capture at a time, on its own thread, which lasts as long as the capture.

The same number of untraced steps around the traced ones is recorded in full, so that the session can tell the cost of
tracing: during a capture there is no gap and nothing is thinned (``agent.duty_cycle``, ``agent.sampling.governor``).
"""

from __future__ import annotations

import json
import os
import time
from _thread import allocate_lock

from stepscope.agent.capture.orders import Order
from stepscope.agent.capture.watch import StepWatch
from stepscope.agent.core import side_thread
from stepscope.wire.env import CAPTURES_NAME, CONFIG_NAME, RAW_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from stepscope.agent.capture.host import Host

    class Tracer(Protocol):
        """Interface of a way of tracing."""

        def trace(self, order: Order, watch: StepWatch, folder: str) -> dict[str, object]:
            """Trace; returns the fields of the ``capture`` line. Unknown errors are raised."""

        def give_way(self) -> None:
            """The user's own profiler is about to start in this thread: when this returns, ours is not running."""

        def reset(self) -> None:
            """In a forked child: forget the running trace."""


KIND = "ops"
MARGIN_S = 5.0
"""Longest wait for the untraced steps before, and for those after."""
EXIT_S = 60.0
"""Longest wait of an ending job for a trace that is being written: what TensorFlow does at exit would end it."""


class Captures:
    """The captures of this process. The probes of the traced frameworks set ``tracers``."""

    def __init__(self, state: Host) -> None:
        self._state = state
        self.tracers: dict[str, Tracer] = {}
        """Tracers by ``Order.way``."""
        self.profiled: Callable[[], bool] = bool
        """Test whether the user's own profiler is running; set by the probe that knows."""
        self._busy = allocate_lock()
        self._watch: StepWatch | None = None
        self._identity = ""
        """Id of the running capture."""

    def after_fork(self) -> None:
        """In a forked child: the running capture belongs to the parent."""
        self._busy = allocate_lock()
        self._watch = None
        for tracer in self.tracers.values():
            tracer.reset()

    def order(self, fields: dict[str, object]) -> None:
        """On the agent's thread: carry out a command, or log why not."""
        try:
            order = Order(fields)
        except (ValueError, KeyError) as error:
            self._say(str(fields.get("id", "")), {"outcome": "refused", "text": "not understood: %s" % error})
            return
        if order.way not in self.tracers:
            text = "this process has no %s that is known: it did not import it, or it looks otherwise" % order.way
            self._say(order.identity, {"outcome": "refused", "text": text})
        elif not self._busy.acquire(blocking=False):
            self._say(order.identity, {"outcome": "refused", "text": "another capture goes on"})
        else:
            self._begin(order)

    def _begin(self, order: Order) -> None:
        self._identity = order.identity
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

    def finish(self) -> None:
        """At exit: end the running capture and wait for files that are being written."""
        if self.stop("the job ended first"):
            self._busy.acquire(timeout=EXIT_S)

    def _run(self, order: Order, watch: StepWatch) -> None:
        state = self._state
        try:
            state.records.tap(watch.record)
            self._capture(order, watch)
            if not watch.stopped:
                watch.wait(order.margin, MARGIN_S)
        except Exception as error:
            state.failures.add("captures.run", error)
        finally:
            state.records.tap(None)
            self._end()

    def _end(self) -> None:
        self._watch = None
        self._state.duty_cycle.release()
        self._busy.release()

    def _capture(self, order: Order, watch: StepWatch) -> None:
        line: dict[str, object] = {"outcome": "failed"}
        try:
            folder = self._folder(order)
            if order.aim is not None:
                watch.follow(order.aim)
            if order.anchors:
                watch.wait(order.margin, MARGIN_S)
            if watch.stopped:
                line = {"outcome": "gave-way", "text": watch.stopped}
            else:
                line = self.tracers[order.way].trace(order, watch, folder)
        except Exception as error:
            self._state.failures.add("captures.trace", error)
            line["text"] = "%s: %s" % (type(error).__name__, error)
        line.update(way=order.way, anchors=[list(pair) for pair in order.anchors], thread=watch.thread, **order.echo)
        self._say(order.identity, line)

    def _folder(self, order: Order) -> str:
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
        self._state.lines.log({"t": "capture", "at": time.monotonic_ns(), "id": identity, "kind": KIND, **fields})
