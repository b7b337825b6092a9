"""Refusals and failures as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response

from stepscope.model.api.rest_api import Problem
from stepscope.report.marked import Html
from stepscope.server.session_catalogue import shown

if TYPE_CHECKING:
    from starlette.types import Scope

MEDIA = "application/problem+json"
_PAGE = Html("""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title} - stepscope</title></head>
<body><h1>{title}</h1><p>{detail}</p><p><a href="/">All sessions and running jobs</a></p></body>
</html>
""")
"""Without style or script: who has no token gets none of the page's files."""


class RefusedRequest(Exception):  # noqa: N818 - a refusal is an answer, not an error of ours
    """A request that is refused."""

    def __init__(self, status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> None:
        """Refuse with a status and one clear sentence."""
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}


def _is_read_by_people(scope: Scope) -> bool:
    """Whether a browser shows the answer: it asks for a document, and not below the REST interface's addresses."""
    path: str = scope["path"]
    asked = Headers(scope=scope).get("accept", "")
    return "text/html" in asked and not path.startswith(("/api/", "/assets/", "/metrics"))


def response(refused: RefusedRequest, scope: Scope | None = None) -> Response:
    """The answer that explains a refusal or failure: as a page for somebody who reads it, else as JSON."""
    status = refused.status
    if scope is not None and _is_read_by_people(scope):
        page = _PAGE.format(title=status.phrase, detail=shown(refused.detail))
        return Response(page, status_code=status, media_type="text/html; charset=utf-8", headers=refused.headers)
    said = Problem(type="about:blank", title=status.phrase, status=int(status), detail=shown(refused.detail))
    return Response(msgspec.json.encode(said), status_code=status, media_type=MEDIA, headers=refused.headers)
