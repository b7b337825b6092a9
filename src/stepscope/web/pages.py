"""The page: one document for every address of the front end, and its built files."""

from __future__ import annotations

import gzip
import mimetypes
import re
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import Response

from stepscope.web.operation import PACK_FROM_BYTES, PACK_LEVEL, PREFIX
from stepscope.web.problems import RefusedRequest
from stepscope.web.session_operations import KEY

if TYPE_CHECKING:
    from starlette.requests import Request

INDEX = "index.html"
ROUTES = ("/", "/compare", "/sessions/{key:str}", "/sessions/{key:str}/{page:str}")
"""Addresses of the front end."""
FIRST = {"": "", "timeline": "/timeline"}
"""First requests of each session page; every page requests the session's brief."""
FOREVER = "private, max-age=31536000, immutable"


@cache
def files() -> dict[str, bytes]:
    """The built files by name; a request cannot name others."""
    folder = resources.files("stepscope") / "assets"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} if folder.is_dir() else {}


def index(request: Request) -> Response:
    """The document, with preload links for its page's first requests, so that browsers load them with the script."""
    answer = _file(INDEX, "private, no-cache")
    key, page = (str(request.path_params.get(name, "")) for name in ("key", "page"))
    if re.fullmatch(KEY.pattern, key):
        asked = [part for name, part in FIRST.items() if name in {"", page}]
        answer.headers["Link"] = ", ".join(
            f"<{PREFIX}/sessions/{key}{part}>; rel=preload; as=fetch; crossorigin" for part in asked
        )
    return answer


def asset(request: Request) -> Response:
    """A built file; the names of all but the document change with their content.

    Raises:
        Refused: there is no such file.
    """
    name = str(request.path_params["name"])
    answer = _file(name, FOREVER)
    if len(answer.body) >= PACK_FROM_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        headers = {**answer.headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        del headers["content-length"]
        return Response(_packed(name), headers=headers)
    return answer


def _file(name: str, keep: str) -> Response:
    content = files().get(name)
    if content is None:
        raise RefusedRequest(HTTPStatus.NOT_FOUND, f"the page has no file {name[:80]!r}")
    media = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(content, media_type=media, headers={"Cache-Control": keep})


@cache
def _packed(name: str) -> bytes:
    """A built file, compressed once."""
    return gzip.compress(files()[name], PACK_LEVEL)
