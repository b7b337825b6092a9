"""What can be read of trace events whose JSON is broken in places: one bad name costs its event, not the file.

Writers put names into their files as they are: bytes that are not UTF-8, control characters, a line of source code with
its quotes and line break (pytorch issues 113001, 136180, 130622). A job that dies leaves a cut event. Each event is an
object, so that those around a broken one are whole.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_BETWEEN = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id|s|bp)"\s*:)')
"""The end of an event and the beginning of another. Objects in an event's arguments rarely begin so."""
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_CUTS = 64
"""Number of object ends that are tried, from the end, for the last event that is whole."""
_TRIES = 1_000
"""Number of object ends that are tried, from the end, for the last one between two events."""
_PLAIN = bytes(max(code, ord(" ")) for code in range(256))
"""Control characters as blanks: JSON allows none within a text, and reads all that it allows elsewhere as blanks."""


class Repaired(Struct, frozen=True, kw_only=True):
    """The whole events of a broken text."""

    before: bytes
    """What comes before the events: ``[``, or an object up to its array of events."""
    after: bytes
    """What comes after them, with the end of their array; if that is cut, just an end."""
    broken: int
    """Number of events that are left out."""
    cut_bytes: int
    """Bytes that are left out at the end."""


def text_of(content: bytes) -> tuple[bytes, str]:
    """UTF-8 text without control characters, and what was replaced for that; "" for nothing."""
    try:
        content.decode()
    except UnicodeDecodeError:
        known = content.count("\N{REPLACEMENT CHARACTER}".encode())
        content = content.decode("utf-8", "replace").encode()
        bad = content.count("\N{REPLACEMENT CHARACTER}".encode()) - known
        return content.translate(_PLAIN), f"{bad:,} bytes or sequences that are not UTF-8 text were replaced"
    return content.translate(_PLAIN), ""


def begin_of_events(text: bytes) -> int | None:
    """Where the first event begins, or an object would have it; None if the text has no array of events."""
    opened = re.match(rb"\[", text) or _EVENTS.search(text)
    return None if opened is None else opened.end()


def last_bound(text: bytes) -> tuple[int, int] | None:
    """The end of an event near the end of a text and the beginning of the next one; None for none."""
    end = len(text)
    for _ in range(_TRIES):
        end = text.rfind(b"}", 0, end)
        if end < 0:
            break
        between = _BETWEEN.match(text, end)
        if between:
            return end + 1, between.end()
    return None


def read(text: bytes, read_array: Callable[[bytes], list[T]], earlier: int = 0) -> tuple[list[T], Repaired] | None:
    """The events of a text that is no JSON as a whole, and what was left out; None if none of its parts is an event.

    Args:
        text: without control characters.
        read_array: reads a JSON array of events; raises msgspec.DecodeError.
        earlier: number of whole events that stood before those of the text.
    """
    begin = begin_of_events(text)
    if begin is None:
        return None
    bounds = [(one.start() + 1, one.end()) for one in _BETWEEN.finditer(text, begin)]
    starts = [begin, *(start for _, start in bounds)]
    ends = [end for end, _ in bounds]
    found: list[T] = []
    broken = _read_between(text, (starts, ends), (0, len(ends)), read_array, found)
    tail, after, cut = _last(text[starts[-1] :], read_array, array=text[:1] == b"[")
    found += tail
    if earlier + len(found) <= broken:
        return None
    return found, Repaired(before=text[:begin], after=after, broken=broken, cut_bytes=cut)


def _read_between(
    text: bytes,
    places: tuple[list[int], list[int]],
    which: tuple[int, int],
    read_array: Callable[[bytes], list[T]],
    found: list[T],
) -> int:
    """Read some of the events between the first and the last; returns how many cannot be read."""
    (starts, ends), (first, last) = places, which
    if first == last:
        return 0
    try:
        found += read_array(b"[" + text[starts[first] : ends[last - 1]] + b"]")
    except msgspec.DecodeError:
        if last - first == 1:
            return 1
        middle = (first + last) // 2
        return _read_between(text, places, (first, middle), read_array, found) + _read_between(
            text, places, (middle, last), read_array, found
        )
    return 0


def _last(text: bytes, read_array: Callable[[bytes], list[T]], *, array: bool) -> tuple[list[T], bytes, int]:
    """The last event, what follows the array of events, and the number of bytes that are cut."""
    closing = b"]" if array else b"]}"
    end = len(text)
    for _ in range(_CUTS):
        end = text.rfind(b"}", 0, end)
        if end < 0:
            break
        try:
            events = read_array(b"[" + text[: end + 1] + b"]")
        except msgspec.DecodeError:
            continue
        after = text[end + 1 :]
        if after.lstrip().startswith(b"]"):
            return events, after, 0
        return events, closing, len(after.strip(b", \t\r\n"))
    return [], closing, len(text.strip())
