"""Values of trace events: JSON of any type, where the format wants a number, a text or a key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from stepscope.tables import nesting

if TYPE_CHECKING:
    from stepscope.readers.chrome.trace_json import Json
    from stepscope.tables.optrace_stats import PlainStat

NUMBER = re.compile(r"-?\d{1,18}")
_FAR_US = 1e17


def plain(value: Json) -> PlainStat | None:
    """An argument as a stat; numeric strings become numbers, lists and objects JSON."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return int(value) if NUMBER.fullmatch(value) else value
    if isinstance(value, int | float):
        return value
    return None if value is None else msgspec.json.encode(value).decode()


def number(value: Json, missing: float = 0.0) -> float:
    """A number, also as text; ``missing`` for anything else, and for what no clock shows."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return missing
    if not isinstance(value, int | float) or not abs(value) < _FAR_US:
        return missing
    return float(value)


def text(value: Json) -> str:
    """A text; "" for null."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def key(value: Json) -> str:
    """A process, thread or id as text: files write numbers or names."""
    return str(value)


@nesting.bounded()
def decoded(args: Json) -> dict[str, Json]:
    """An event's arguments by name; empty if they are no object."""
    return {name: msgspec.json.decode(value) for name, value in args.items()} if isinstance(args, dict) else {}
