"""The fields common to all lines of the agent's log; the lines themselves are in ``model.log.events``."""

from __future__ import annotations

import msgspec

Frame = tuple[str, str, int]
"""A frame: (file, function, line)."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", omit_defaults=True):
    """Base: a moment in one process."""

    at: int = 0
