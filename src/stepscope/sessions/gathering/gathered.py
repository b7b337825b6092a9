"""What is known of a session that was gathered: the content of its last part."""

from __future__ import annotations

import msgspec

COMPLETE = "complete.json"
"""Name of the last part: the session is whole."""


class SentPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a packed session."""

    name: str
    bytes: int
    sha256: str


class GatheredSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session in parts; together, in their order, they are the packed session."""

    schema: str = "stepscope.gathered/1"
    id: str
    job: str
    """Folder of the job."""
    names: tuple[str, ...] = ()
    """Names of its tasks."""
    started_unix_ns: int = 0
    ended_ns: int = 0
    host: str = ""
    sha256: str = ""
    """Of the whole packed session."""
    parts: tuple[SentPart, ...] = ()
