"""``stepscope gather serve``: takes parts of sessions into a folder, from who has the key, and gives them out again.

Every request is proven first (``sessions.gathering.signing``); its body is read only then, and no further than its size
and digest say. Nothing that comes is opened, executed or listed in a page.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from stepscope.sessions.gathering import signing
from stepscope.sessions.gathering.folder_target import FolderTarget
from stepscope.sessions.gathering.server_target import PARTS
from stepscope.sessions.gathering.target import NAME, PART_BYTES
from stepscope.tables.errors import TargetError
from stepscope.tables.units import format_bytes
from stepscope.web import listening
from stepscope.web.half_open import Impatient
from stepscope.web.problems import RefusedRequest, response

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.requests import Request

MIN_FREE_BYTES = 1 << 30
"""Space that parts leave free on the disk."""
MAX_CONNECTIONS = 256
_NICE = 5
_IDLE_S = 15


def serve(
    folder: Path, host: str, port: int, key: bytes, say: Callable[[str], object], certificate: Path | None = None
) -> None:
    """Serve until interrupted.

    Args:
        folder: for the parts.
        host: address to listen at, as the user gave it, and no other.
        port: 0: any free one.
        key: what the senders share.
        say: called with the address.
        certificate: file with that of this host and its private key; None: plain http.

    Raises:
        UsageError: the address is not available.
    """
    bound = listening.listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    say(f"{'http' if certificate is None else 'https'}://{shown}:{bound.getsockname()[1]}")
    config = uvicorn.Config(
        application(folder, key),
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http=Impatient,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=2,
        ssl_certfile=certificate,
    )
    os.nice(max(0, _NICE - os.nice(0)))
    try:
        uvicorn.Server(config).run(sockets=[bound])
    except KeyboardInterrupt:
        return


def application(folder: Path, key: bytes) -> Starlette:
    """The server, for parts in a folder."""
    place = FolderTarget(folder)

    async def listed(request: Request) -> Response:
        _check(request, key)
        names = await run_in_threadpool(_names, place)
        return Response(msgspec.json.encode({"parts": names}), media_type="application/json")

    async def part(request: Request) -> Response:
        _check(request, key)
        name = request.path_params["name"]
        if not NAME.fullmatch(name):
            raise RefusedRequest(HTTPStatus.NOT_FOUND, "no name of a part; expected JOB/SESSION/PART")
        if request.method == "GET":
            data = await run_in_threadpool(place.get, name)
            return Response(data, media_type="application/octet-stream")
        body = await _body(request)
        await run_in_threadpool(_store, place, name, body)
        return PlainTextResponse("")

    def refused(request: Request, error: Exception) -> Response:
        del request
        why = (
            error if isinstance(error, RefusedRequest) else RefusedRequest(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        )
        return response(why)

    def not_stored(request: Request, error: Exception) -> Response:
        status = HTTPStatus.NOT_FOUND if request.method == "GET" else HTTPStatus.INSUFFICIENT_STORAGE
        return refused(request, RefusedRequest(status, str(error)))

    return Starlette(
        routes=[Route(PARTS, listed, methods=["GET"]), Route(PARTS + "/{name:path}", part, methods=["GET", "PUT"])],
        exception_handlers={RefusedRequest: refused, TargetError: not_stored},
    )


def _check(request: Request, key: bytes) -> None:
    """Raise Refused unless the request comes from who has the key, now."""
    given = {name: request.headers.get(name, "") for name in (signing.TIME, signing.DIGEST, signing.MAC)}
    if not signing.verified(key, request.method, request.scope["raw_path"].decode("ascii", "replace"), given):
        raise RefusedRequest(HTTPStatus.UNAUTHORIZED, "not signed with the key of this server")
    apart = time.time() - int(given[signing.TIME])
    if abs(apart) > signing.MAX_APART_S:
        raise RefusedRequest(
            HTTPStatus.UNAUTHORIZED,
            f"the clocks of the two hosts differ by {abs(apart):.0f} s; expected at most {signing.MAX_APART_S}",
        )


async def _body(request: Request) -> bytes:
    """The body, if it is what was signed."""
    parts, size = [], 0
    async for data in request.stream():
        size += len(data)
        if size > PART_BYTES:
            raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {PART_BYTES} bytes")
        parts.append(data)
    body = b"".join(parts)
    if not hmac.compare_digest(hashlib.sha256(body).hexdigest(), request.headers[signing.DIGEST]):
        raise RefusedRequest(HTTPStatus.BAD_REQUEST, "the body is not what was signed")
    return body


def _names(place: FolderTarget) -> list[str]:
    return place.names() if place.folder.is_dir() else []


def _store(place: FolderTarget, name: str, body: bytes) -> None:
    folder = place.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise TargetError(f"{folder}: {error.strerror or error}") from error
    if free < MIN_FREE_BYTES + len(body):
        said = f"its disk has {format_bytes(free)} free, and parts leave {format_bytes(MIN_FREE_BYTES)}"
        raise RefusedRequest(HTTPStatus.INSUFFICIENT_STORAGE, said)
    place.put(name, body)
