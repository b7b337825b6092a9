"""An operation of the interface: an address, its parameters, and its handler."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, field

from stepscope.server.timelines.kept_timelines import Timelines
from stepscope.web.parameters import Arguments, Number, Parameter
from stepscope.web.problems import RefusedRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.server.open_sessions import OpenSessions
    from stepscope.server.session_catalogue import SessionCatalogue

PREFIX = "/api/v1"
JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
MAX_PAGE = 1_000
OFFSET = Number(name="offset", about="Number of items to skip.", default=0, most=1_000_000_000)
LIMIT = Number(name="limit", about="Maximum number of items.", default=100, least=1, most=MAX_PAGE)

PACK_FROM_BYTES = 4_096
PACK_LEVEL = 1
"""On loopback compression costs more than it saves; through a tunnel it does not."""

Lane = Literal["quick", "light", "heavy"]
"""Where an operation runs, so that reading small files never waits behind the analysis of a session. A quick operation
takes no longer than a hand-over to a thread and does no disk access; otherwise it returns ``Later``."""


class Hub(Struct, frozen=True, kw_only=True):
    """The state that operations work on."""

    catalogue: SessionCatalogue
    open_sessions: OpenSessions
    timelines: Timelines = field(default_factory=Timelines)
    stopping: Callable[[], bool] = lambda: False
    """Set when streams should end."""


class ValidRequest(Struct, frozen=True, kw_only=True):
    """One validated request."""

    arguments: Arguments = field(default_factory=Arguments)
    body: msgspec.Struct | None = None
    seen: str = ""
    """Tags of the versions that the client already has (If-None-Match)."""
    packs: bool = False
    """Whether the client accepts gzip."""

    def pass_unless_new(self, tag: str) -> None:
        """Stop here if the client already has this version.

        Raises:
            Refused: not modified.
        """
        if tag in (part.strip() for part in self.seen.split(",")):
            raise RefusedRequest(HTTPStatus.NOT_MODIFIED, "", {"ETag": tag})


class Answer(Struct, frozen=True, kw_only=True):
    """The response: ``content``, or the file at ``file``, deleted afterwards if ``delete``."""

    content: bytes = b""
    media: str = JSON
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    file: Path | None = None
    delete: bool = False


class Later(Struct, frozen=True):
    """An answer that takes too long to compute inline."""

    make: Callable[[], Answer]


class Operation(Struct, frozen=True, kw_only=True):
    """One address and method."""

    name: str
    path: str
    """Below ``prefix``."""
    about: str
    serve: Callable[[Hub, ValidRequest], Answer | Later] | None = None
    """The handler; None: a stream (``web.events``)."""
    prefix: str = PREFIX
    method: str = "GET"
    tag: str = "sessions"
    parameters: Sequence[Parameter] = ()
    body: type[msgspec.Struct] | None = None
    answer: type[msgspec.Struct] | None = None
    """Type of JSON answers."""
    media: Sequence[str] = (JSON,)
    status: int = 200
    refusals: Sequence[int] = ()
    """Status codes of refusals, in addition to those that every operation has."""
    lane: Lane = "light"


def struct(value: msgspec.Struct, call: ValidRequest, *, tag: str = "", status: int = 200) -> Answer:
    """A struct as JSON; its tag is computed from its bytes unless one is given.

    Raises:
        Refused: not modified.
    """
    content = msgspec.json.encode(value)
    if not tag and status == HTTPStatus.OK:
        tag = f'W/"{hashlib.sha256(content).hexdigest()[:20]}"'
        call.pass_unless_new(tag)
    return Answer(content=content, status=status, headers={"ETag": tag} if tag else {})
