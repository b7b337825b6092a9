"""The page: one document for every address of the front end, and the built files beside it."""

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
from stepscope.web.problems import Refused
from stepscope.web.session_operations import KEY

if TYPE_CHECKING:
    from starlette.requests import Request

INDEX = "index.html"
ROUTES = ("/", "/compare", "/sessions/{key:str}", "/sessions/{key:str}/{page:str}")
"""Addresses that the front end knows."""
FIRST = {"": "", "timeline": "/timeline"}
"""What the pages of a session ask for as soon as their script runs, by page: of all pages the session's brief."""
FOREVER = "private, max-age=31536000, immutable"


@cache
def files() -> dict[str, bytes]:
    """The built files by name: a request can name no others."""
    folder = resources.files("stepscope") / "assets"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} if folder.is_dir() else {}


def index(request: Request) -> Response:
    """The document, and what its page will ask for first: browsers load that beside the script."""
    answer = _file(INDEX, "private, no-cache")
    key, page = (str(request.path_params.get(name, "")) for name in ("key", "page"))
    if re.fullmatch(KEY.pattern, key):
        asked = [part for name, part in FIRST.items() if name in {"", page}]
        answer.headers["Link"] = ", ".join(
            f"<{PREFIX}/sessions/{key}{part}>; rel=preload; as=fetch; crossorigin" for part in asked
        )
    return answer


def asset(request: Request) -> Response:
    """A built file; all but the document have a name that changes with what is in them.

    Raises:
        Refused: there is none of that name.
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
        raise Refused(HTTPStatus.NOT_FOUND, f"no file {name[:80]!r} of the page")
    media = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(content, media_type=media, headers={"Cache-Control": keep})


@cache
def _packed(name: str) -> bytes:
    """A built file, compressed once."""
    return gzip.compress(files()[name], PACK_LEVEL)
