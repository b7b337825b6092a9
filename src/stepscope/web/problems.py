"""Refusals and failures as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from starlette.responses import Response

from stepscope.app.server.session_catalogue import shown
from stepscope.model.api.rest_api import Problem

MEDIA = "application/problem+json"


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error of ours
    """A request that is refused."""

    def __init__(self, status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> None:
        """Refuse with a status and one clear sentence."""
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}


def response(refused: Refused) -> Response:
    """The answer that explains a refusal or failure."""
    status = refused.status
    said = Problem(type="about:blank", title=status.phrase, status=int(status), detail=shown(refused.detail))
    return Response(msgspec.json.encode(said), status_code=status, media_type=MEDIA, headers=refused.headers)
