"""The ASGI application: operations, streams and pages behind the guard."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from stepscope.web import openapi, pages, parameters, problems
from stepscope.web.events import EVENTS, Events
from stepscope.web.guard import Guard
from stepscope.web.job_operations import JOBS, METRICS
from stepscope.web.operation import (
    JSON,
    PACK_FROM_BYTES,
    PACK_LEVEL,
    PREFIX,
    Answer,
    Hub,
    Lane,
    Later,
    Operation,
    ValidRequest,
)
from stepscope.web.page_operations import PAGES
from stepscope.web.problems import RefusedRequest
from stepscope.web.session_operations import SESSIONS
from stepscope.web.timeline_operations import TIMELINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from stepscope.web.settings import Access

OPERATIONS = (*JOBS, *SESSIONS, *PAGES, *TIMELINE)
DESCRIBED = (*OPERATIONS, EVENTS, METRICS)
MAX_LIGHT = 8
Work = Callable[[], Answer | Later]
Run = Callable[[Work], Awaitable[Answer]]


def create(hub: Hub, access: Access, within: Callable[[ASGIApp], ASGIApp] = lambda app: app) -> ASGIApp:
    """The application; ``within`` wraps everything behind the guard."""
    light = CapacityLimiter(MAX_LIGHT)
    lanes: dict[Lane, Run] = {"quick": _quick(light), "light": _pooled(light), "heavy": _alone()}
    events = Events(hub, light)
    first = sorted(DESCRIBED, key=lambda op: op.lane != "quick")  # routes are tried one after the other
    routes = [_route(op, op.serve, hub, lanes[op.lane]) for op in first if op.serve is not None]
    routes.append(Route(_path(EVENTS), events.answer, methods=["GET"]))
    routes.append(Route(PREFIX + "/openapi.json", _document, methods=["GET"]))
    routes.append(Route("/assets/{name:str}", pages.asset, methods=["GET"]))
    routes += [Route(path, pages.index, methods=["GET"]) for path in pages.ROUTES]
    app = Starlette(
        routes=_merged(routes),
        exception_handlers={RefusedRequest: _refused, HTTPException: _http_error, Exception: _failed},
    )
    app.add_middleware(GZipMiddleware, minimum_size=PACK_FROM_BYTES, compresslevel=PACK_LEVEL)
    app.router.redirect_slashes = False
    return Guard(within(app), access)


def _quick(limiter: CapacityLimiter) -> Run:
    """Run directly; deferred work runs in a thread."""

    async def run(work: Work) -> Answer:
        made = work()
        return made if isinstance(made, Answer) else await to_thread.run_sync(made.make, limiter=limiter)

    return run


def _pooled(limiter: CapacityLimiter) -> Run:
    """Run in any thread, with limited concurrency."""

    async def run(work: Work) -> Answer:
        return await to_thread.run_sync(_made, work, limiter=limiter)

    return run


def _alone() -> Run:
    """Run in one thread: several analyses would only delay each other.

    First imports and first decoding then happen in one thread (see ``launcher.jobs``). The thread lives as long as the
    server: pyarrow crashes in later threads after the thread that loaded it has ended (source:
    https://github.com/apache/arrow/issues/50908, with pyarrow 25).
    """
    thread = ThreadPoolExecutor(1, "stepscope-analysis")

    async def run(work: Work) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(thread, _made, work)

    return run


def _made(work: Work) -> Answer:
    made = work()
    return made if isinstance(made, Answer) else made.make()


def _merged(routes: Sequence[Route]) -> list[Route]:
    """Merge the routes of one path, so that a wrong method is answered with the allowed ones."""
    by_path: dict[str, list[Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, []).append(route)
    return [same[0] if len(same) == 1 else _several(path, same) for path, same in by_path.items()]


def _several(path: str, routes: list[Route]) -> Route:
    ends = {method: route.endpoint for route in routes for method in route.methods or ()}

    async def chosen(request: Request) -> Response:
        answer: Response = await ends[request.method](request)
        return answer

    return Route(path, chosen, methods=list(ends))


def _path(operation: Operation) -> str:
    return (operation.prefix + operation.path).replace("}", ":str}")


def _route(operation: Operation, serve: Callable[[Hub, ValidRequest], Answer | Later], hub: Hub, run: Run) -> Route:
    async def endpoint(request: Request) -> Response:
        query = request.query_params.multi_items()
        arguments = parameters.read(operation.parameters, request.path_params, query)
        body = await _body(request, operation.body) if operation.body is not None else None
        call = ValidRequest(
            arguments=arguments,
            body=body,
            seen=request.headers.get("if-none-match", ""),
            packs="gzip" in request.headers.get("accept-encoding", ""),
        )
        return _response(await run(partial(serve, hub, call)))

    return Route(_path(operation), endpoint, methods=[operation.method])


async def _body(request: Request, kind: type[msgspec.Struct]) -> msgspec.Struct:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != JSON:  # also what a form of another page could send without asking
        raise RefusedRequest(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content type of the body is {media or 'missing'}; expected {JSON}"
        )
    try:
        return msgspec.convert(_whole(msgspec.json.decode(await request.body())), type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:  # ValueError: it is no UTF-8
        raise RefusedRequest(HTTPStatus.BAD_REQUEST, f"the body is invalid: {error}") from error


def _whole(body: object) -> object:
    """Treat 5.0 as the integer 5, as JSON schema and some clients do."""
    if not isinstance(body, dict):
        return body
    return {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in body.items()}


def _response(answer: Answer) -> Response:
    if answer.file is None:
        response = Response(answer.content, status_code=answer.status, headers=answer.headers)
        response.headers["content-type"] = answer.media
        return response
    after = BackgroundTask(shutil.rmtree, answer.file.parent, ignore_errors=True) if answer.delete else None
    headers = {**answer.headers, "Content-Encoding": "identity"}  # stored Parquet: nothing is left to compress
    return FileResponse(answer.file, media_type=answer.media, headers=headers, background=after)


async def _document(request: Request) -> Response:
    del request
    return Response(openapi.document(DESCRIBED), media_type=JSON)


async def _refused(request: Request, refused: Exception) -> Response:
    if not isinstance(refused, RefusedRequest):
        raise refused
    if refused.status == HTTPStatus.NOT_MODIFIED:
        return Response(status_code=int(refused.status), headers=refused.headers)
    return problems.response(refused, request.scope)


async def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    status = HTTPStatus(error.status_code)
    detail = {
        HTTPStatus.NOT_FOUND: f"nothing is at {request.url.path[:200]}; expected an address in {PREFIX}/openapi.json",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not allowed here",
    }.get(status, status.phrase)
    return problems.response(RefusedRequest(status, detail, dict(error.headers or {})), request.scope)


async def _failed(request: Request, error: Exception) -> Response:
    """An internal error: the client gets its type; the traceback goes to the server's terminal."""
    detail = f"{request.url.path[:200]} failed: {type(error).__name__}; the server's terminal shows the traceback"
    return problems.response(RefusedRequest(HTTPStatus.INTERNAL_SERVER_ERROR, detail), request.scope)
