"""A running job's changes as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

``job``: its status, whenever its sidecar has published a new one. ``ended``: it runs no more; nothing follows. Nothing
but the status file is read, when it has changed, and only for who listens.
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from anyio import to_thread
from starlette.responses import StreamingResponse

from stepscope.app import jobs
from stepscope.app.library import job_of
from stepscope.web import job_operations, parameters
from stepscope.web.parameters import Number
from stepscope.web.problems import Refused
from stepscope.wire.env import STATUS_NAME

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio import CapacityLimiter
    from starlette.requests import Request

    from stepscope.app.jobs import RunningJob
    from stepscope.web.operation import Hub

MEDIA = "text/event-stream"
LOOK_S = 0.5
SURE_S = 5.0
"""A status that stands still is read so often all the same: its job may have ended."""
HEARTBEAT_S = 15.0
MAX_STREAMS = 32
LIMIT = Number(name="limit", about="End after so many events; 0: when the job does.", default=0, most=1_000_000)


class Events:
    """The streams of one server."""

    def __init__(self, hub: Hub, limiter: CapacityLimiter) -> None:
        """No stream yet; files are read under ``limiter``."""
        self._hub = hub
        self._limiter = limiter
        self._open = 0

    async def answer(self, request: Request) -> StreamingResponse:
        """A stream of one job's changes.

        Raises:
            Refused: there is no such job, or there are too many streams.
        """
        declared = (job_operations.PID, LIMIT)
        arguments = parameters.read(declared, request.path_params, request.query_params.multi_items())
        job = await to_thread.run_sync(job_operations.job_by, arguments.number("pid"), limiter=self._limiter)
        if self._open >= MAX_STREAMS:
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, f"{MAX_STREAMS} streams are open; expected one a page")
        return StreamingResponse(
            self._stream(job, arguments.number("limit")),
            media_type=MEDIA,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _stream(self, job: RunningJob, limit: int) -> AsyncIterator[bytes]:
        self._open += 1
        try:
            async for event in self._events(job, limit):
                yield event
        finally:
            self._open -= 1

    async def _events(self, job: RunningJob, limit: int) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        told, number, quiet_since = b"", 0, time.monotonic()
        now: RunningJob | None = job
        stamp, read_s = _stamp(job), time.monotonic()
        while not self._hub.stopping():
            if now is None:
                yield _event(number, "ended", b"{}")
                return
            data = msgspec.json.encode(job_of(now))
            if data != told:
                told, number, quiet_since = data, number + 1, time.monotonic()
                yield _event(number, "job", data)
                if number == limit:
                    return
            elif time.monotonic() - quiet_since > HEARTBEAT_S:
                quiet_since = time.monotonic()
                yield b": still here\n\n"
            await asyncio.sleep(LOOK_S)
            newest = _stamp(job)
            if newest != stamp or time.monotonic() - read_s > SURE_S:
                stamp, read_s = newest, time.monotonic()
                now = await to_thread.run_sync(jobs.again, job, limiter=self._limiter)


def _stamp(job: RunningJob) -> int:
    """When its status was written; 0 when that is gone. Cost: one ``stat`` in memory."""
    try:
        return (job.run / STATUS_NAME).stat().st_mtime_ns
    except OSError:
        return 0


def _event(number: int, name: str, data: bytes) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), data)
