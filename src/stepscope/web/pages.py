"""The page: one document for every address of the front end, and the built files beside it."""

from __future__ import annotations

import mimetypes
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import Response

from stepscope.web.problems import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

INDEX = "index.html"
ROUTES = ("/", "/compare", "/sessions/{key:str}", "/sessions/{key:str}/{page:str}")
"""Addresses that the front end knows."""
FOREVER = "private, max-age=31536000, immutable"


@cache
def files() -> dict[str, bytes]:
    """The built files by name: a request can name no others."""
    folder = resources.files("stepscope") / "assets"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} if folder.is_dir() else {}


def index(request: Request) -> Response:
    """The document."""
    del request
    return _file(INDEX, "private, no-cache")


def asset(request: Request) -> Response:
    """A built file; all but the document have a name that changes with what is in them.

    Raises:
        Refused: there is none of that name.
    """
    return _file(str(request.path_params["name"]), FOREVER)


def _file(name: str, keep: str) -> Response:
    content = files().get(name)
    if content is None:
        raise Refused(HTTPStatus.NOT_FOUND, f"no file {name[:80]!r} of the page")
    media = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(content, media_type=media, headers={"Cache-Control": keep})
