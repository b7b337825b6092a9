"""The base class of a report's parts."""

from __future__ import annotations

import msgspec


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    """Base of everything in a report: immutable, written with every field."""
