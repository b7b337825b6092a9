"""Checks every request first: host name, size, origin and token (decision 0020).

Order: the host name (rejects names that an attacker has rebound to this machine), the size of the request, the page it
comes from, then the token. Nothing else runs before all of them are valid.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse

from stepscope.web.problems import RefusedRequest, response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from stepscope.web.settings import Access

MAX_BODY_BYTES = 16 << 10
MAX_PATH = 512
MAX_QUERY = 2_048
HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\s:@/?#\[\]]+)(?::[0-9]{1,5})?")
"""A host name or address with an optional port, and nothing else (RFC 9110, 7.2)."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
"""Headers of every answer that does not override them."""


class Guard:
    """An ASGI application that passes on permitted requests."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        """Guard ``app``."""
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, refuse, or forward the request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # websockets: nothing here speaks them
            await send({"type": "websocket.close", "code": 1008})
            return
        said = _with_headers(send)
        try:
            entering = self._check(scope)
            if entering is not None:
                await entering(scope, receive, said)
                return
            await self._app(scope, _bounded(receive), said)
        except RefusedRequest as refused:
            await response(refused, scope)(scope, receive, said)

    def _check(self, scope: Scope) -> RedirectResponse | None:
        """Validate a request; return a redirect for a browser that sends the token in its address.

        Raises:
            Refused: the request is not permitted.
        """
        headers = Headers(scope=scope)
        self._check_host(headers.get("host", ""))
        _check_size(scope, headers)
        origin = headers.get("origin")
        host = headers.get("host", "")
        if origin is not None and origin not in {f"http://{host}", f"https://{host}"}:
            raise RefusedRequest(
                HTTPStatus.FORBIDDEN, f"the request comes from a page of {origin}; expected http://{host}"
            )
        return self._check_token(scope, headers, origin)

    def _check_host(self, host: str) -> None:
        found = HOST.fullmatch(host)
        if found is None or found["name"].lower() not in self._access.hosts:
            raise RefusedRequest(HTTPStatus.FORBIDDEN, f"host {host!r} is not a name of this server")

    def _check_token(self, scope: Scope, headers: Headers, origin: str | None) -> RedirectResponse | None:
        scheme, _, word = headers.get("authorization", "").partition(" ")
        if scheme:
            if scheme.lower() in {"bearer", "token"} and self._access.knows_token(word.strip()):
                return None
            raise _unknown("the token in the Authorization header is not this server's")
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if given and scope["method"] in SAFE:
            if not self._access.knows_token(given[0]):
                raise _unknown("the token in the address is not this server's")
            return self._enter(scope, [(name, value) for name, value in query if name != "token"])
        if not self._access.knows_cookie(_cookie(headers, self._access.cookie_name)):
            raise _unknown("no token: open the address that `stepscope view` printed, or send Authorization: Bearer")
        if scope["method"] not in SAFE and origin is None:
            raise RefusedRequest(
                HTTPStatus.FORBIDDEN, "a change authorised by cookie must name its page: the Origin header is missing"
            )
        return None

    def _enter(self, scope: Scope, query: list[tuple[str, str]]) -> RedirectResponse:
        """Redirect to the same address without the token, which then stays out of history and shared links."""
        path = "/" + scope["path"].lstrip("/")
        answer = RedirectResponse(path + (f"?{urlencode(query)}" if query else ""), status_code=303)
        answer.set_cookie(
            self._access.cookie_name, self._access.cookie_value, httponly=True, samesite="strict", path="/"
        )
        return answer


def _unknown(detail: str) -> RefusedRequest:
    return RefusedRequest(HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": 'Bearer realm="stepscope"'})


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _check_size(scope: Scope, headers: Headers) -> None:
    path: str = scope["path"]
    if len(path) > MAX_PATH or len(scope["query_string"]) > MAX_QUERY:
        raise RefusedRequest(
            HTTPStatus.REQUEST_URI_TOO_LONG, f"at most {MAX_PATH} characters of path, {MAX_QUERY} of query"
        )
    if any(part in {"..", "."} for part in path.split("/")) or not path.isprintable() or "\\" in path:
        raise RefusedRequest(HTTPStatus.BAD_REQUEST, "the path leaves its folder")
    declared = headers.get("content-length", "0")
    if not (declared.isascii() and declared.isdigit()) or int(declared) > MAX_BODY_BYTES:
        raise _too_large()


def _too_large() -> RefusedRequest:
    return RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body exceeds {MAX_BODY_BYTES} bytes")


def _bounded(receive: Receive) -> Receive:
    """Limit the body while reading it: chunked requests declare no length."""
    read = 0

    async def bounded() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MAX_BODY_BYTES:
            raise _too_large()
        return message

    return bounded


def _with_headers(send: Send) -> Send:
    """Add ``HEADERS`` to every answer that does not set them."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
