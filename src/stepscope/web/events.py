"""Changes of a running job as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

``job``: its status, whenever its sidecar publishes a new one. ``ended``: the job has ended; no further events. Only the
status file is read: when it changes, once for all clients, and only while there are any.
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from anyio import to_thread
from starlette.responses import StreamingResponse

from stepscope.launcher import jobs
from stepscope.server.session_catalogue import job_of
from stepscope.web import job_operations, parameters
from stepscope.web.operation import Operation
from stepscope.web.parameters import Number
from stepscope.web.problems import RefusedRequest
from stepscope.wire.env import STATUS_NAME

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from anyio import CapacityLimiter
    from starlette.requests import Request

    from stepscope.launcher.jobs import RunningJob
    from stepscope.web.operation import Hub

MEDIA = "text/event-stream"
LOOK_S = 0.5
SURE_S = 5.0
"""Interval at which an unchanged status is read anyway: its job may have ended."""
HEARTBEAT_S = 15.0
MAX_STREAMS = 32
LIMIT = Number(name="limit", about="End after this many events; 0: when the job ends.", default=0, most=1_000_000)


EVENTS = Operation(
    name="jobEvents",
    path="/jobs/{pid}/events",
    about="Changes of a job as server-sent events: `job` with each new status (schema of getJob), `ended` at its end.",
    tag="jobs",
    parameters=(job_operations.PID, LIMIT),
    media=(MEDIA,),
    refusals=(404, 429),
)


class _Feed:
    """The status of one job, read and encoded once for all clients."""

    def __init__(self, job: RunningJob) -> None:
        """Start from the job's current state, without clients."""
        self.data = msgspec.json.encode(job_of(job))
        self.ended = False
        self.listeners = 0
        self.watching: asyncio.Task[None] | None = None
        self._job = job
        self._looks = jobs.JobWatch()
        self._changed = asyncio.Event()

    async def watch(self, hub: Hub, limiter: CapacityLimiter) -> None:
        """Poll until the job or the server ends."""
        stamp, read_s = _stamp(self._job), time.monotonic()
        while not self.ended and not hub.stopping():
            await asyncio.sleep(LOOK_S)
            newest = _stamp(self._job)
            if newest == stamp and time.monotonic() - read_s < SURE_S:
                continue
            stamp, read_s = newest, time.monotonic()
            now = await to_thread.run_sync(self._looks.read, self._job.run, limiter=limiter)
            data = msgspec.json.encode(job_of(now)) if now is not None else self.data
            if now is None or data != self.data:
                self.data, self.ended = data, now is None
                self._tell()
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def change(self) -> bool:
        """Wait for an event; False if there was none for a while."""
        try:
            await asyncio.wait_for(self._changed.wait(), HEARTBEAT_S)
        except asyncio.TimeoutError:
            return False
        return True


class Events:
    """The streams of one server."""

    def __init__(self, hub: Hub, limiter: CapacityLimiter) -> None:
        """Start without streams; files are read under ``limiter``."""
        self._hub = hub
        self._limiter = limiter
        self._open = 0
        self._feeds: dict[Path, _Feed] = {}

    async def answer(self, request: Request) -> StreamingResponse:
        """A stream of one job's changes.

        Raises:
            Refused: there is no such job, or there are too many streams.
        """
        arguments = parameters.read(EVENTS.parameters, request.path_params, request.query_params.multi_items())
        job = await to_thread.run_sync(job_operations.job_by, arguments.number("pid"), limiter=self._limiter)
        if self._open >= MAX_STREAMS:
            raise RefusedRequest(
                HTTPStatus.TOO_MANY_REQUESTS, f"{MAX_STREAMS} streams are already open; expected one per page"
            )
        return StreamingResponse(
            self._stream(job, arguments.number("limit")),
            media_type=MEDIA,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _stream(self, job: RunningJob, limit: int) -> AsyncIterator[bytes]:
        feed = self._feeds.get(job.run)
        if feed is None:
            feed = self._feeds[job.run] = _Feed(job)
            feed.watching = asyncio.create_task(feed.watch(self._hub, self._limiter))
        feed.listeners += 1
        self._open += 1
        try:
            async for event in self._events(feed, limit):
                yield event
        finally:
            self._open -= 1
            feed.listeners -= 1
            if not feed.listeners:
                self._feeds.pop(job.run, None)
                if feed.watching is not None:
                    feed.watching.cancel()

    async def _events(self, feed: _Feed, limit: int) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        told, number = b"", 0
        while not self._hub.stopping():
            if feed.ended:
                yield _event(number, "ended", b"{}")
                return
            if feed.data != told:
                told, number = feed.data, number + 1
                yield _event(number, "job", told)
                if number == limit:
                    return
            elif not await feed.change():
                yield b": still here\n\n"


def _stamp(job: RunningJob) -> int:
    """Modification time of the status; 0 if it is gone. Cost: one ``stat`` in memory."""
    try:
        return (job.run / STATUS_NAME).stat().st_mtime_ns
    except OSError:
        return 0


def _event(number: int, name: str, data: bytes) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), data)
