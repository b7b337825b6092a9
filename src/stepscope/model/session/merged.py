"""The member sessions that a joint session lists (docs/decisions/0069)."""

from __future__ import annotations

import msgspec


class MergedMember(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a joint session's manifest."""

    folder: str
    """Folder below ``members/``."""
    id: str = ""
    """Id of the member's session."""
    name: str = ""
    """Names of its tasks: "worker 1", "ps 0, worker 0"."""
