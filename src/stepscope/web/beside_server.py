"""The server process of ``run --ui``: serves the job's session until the job has ended and no client is left.

Once the job is gone and its report is written, it ends ``LINGER_S`` after the last request, or at once if there was
none. A visible page sends a request every 20 seconds. Requests of Prometheus do not count.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.native import process_stat
from stepscope.store.manifests import read_manifest
from stepscope.tables.errors import SessionError
from stepscope.web import listening
from stepscope.web.job_operations import METRICS
from stepscope.web.server import Server
from stepscope.web.settings import Access

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

LINGER_S = 60.0
REPORT_S = 150.0
"""Time after the job's end from which no report is expected any more."""
LOOK_S = 1.0


class RequestClock:
    """An ASGI application that records the time of its last request."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        """Watch ``app``."""
        self._app = app
        self._clock = clock
        self._open = 0
        self._last: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request."""
        if scope["type"] == "http" and scope["path"] == METRICS.path:
            await self._app(scope, receive, send)
            return
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1
            self._last = self._clock()

    def lately(self, seconds: float) -> bool:
        """Whether a request is in progress, or was within these seconds."""
        return self._open > 0 or (self._last is not None and self._clock() - self._last < seconds)


class Ending:
    """Whether the server has nothing left to do."""

    def __init__(
        self, runs: Callable[[], bool], reported: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``runs``: whether the job runs; ``reported``: whether its session is complete."""
        self._runs = runs
        self._reported = reported
        self._clock = clock
        self._gone: float | None = None

    def come(self, looks: RequestClock) -> bool:
        """Whether to exit now."""
        if self._gone is None:
            if self._runs():
                return False
            self._gone = self._clock()
        done = self._clock() - self._gone > REPORT_S or self._reported()
        return done and not looks.lately(LINGER_S)


def main(words: Sequence[str]) -> None:
    """Serve the session ``words[0]`` of the job with pid ``words[1]`` and start time ``words[2]`` on the
    inherited socket (standard input).
    """
    session, pid, ticks = Path(words[0]), int(words[1]), int(words[2])
    bound = socket.socket(fileno=os.dup(0))
    access = Access(port=int(bound.getsockname()[1]), token=os.environ[listening.VARIABLE])
    watched: list[RequestClock] = []

    def within(app: ASGIApp) -> ASGIApp:
        watched.append(RequestClock(app))
        return watched[0]

    server = Server([session], access, within)
    ending = Ending(lambda: process_stat.alive(pid, ticks), lambda: _complete(session))

    def watch() -> None:
        while not ending.come(watched[0]):
            time.sleep(LOOK_S)
        server.exit()

    threading.Thread(target=watch, daemon=True, name="ending").start()
    server.run(bound)


def _complete(session: Path) -> bool:
    try:
        return read_manifest(session).state != "running"
    except SessionError:  # it is gone: there is nothing to wait for
        return True
