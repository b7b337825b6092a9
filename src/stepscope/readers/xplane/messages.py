"""The messages of an XSpace around its events: planes, metadata. Events and their stats are read in bulk elsewhere.

Source: ``xla/tsl/profiler/protobuf/xplane.proto`` (openxla/xla), with unchanged numbers and types since TensorFlow
2.4::

    XSpace          planes = 1, errors = 2, warnings = 3, hostnames = 4
    XPlane          id = 1, name = 2, lines = 3, event_metadata = 4 (map), stat_metadata = 5 (map), stats = 6
    XLine           id = 1, name = 2, timestamp_ns = 3, events = 4, duration_ps = 9, display_id = 10, display_name = 11
    XEvent          metadata_id = 1, offset_ps = 2, duration_ps = 3, stats = 4, num_occurrences = 5
    XEventMetadata  id = 1, name = 2, metadata = 3, display_name = 4, stats = 5, child_id = 6
    XStatMetadata   id = 1, name = 2, description = 3
    XStat           metadata_id = 1, double = 2, uint64 = 3, int64 = 4, str = 5, bytes = 6, ref = 7
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.readers.byte_source import ByteSource, Windows
from stepscope.readers.protobuf.codec import BYTES, FIXED64, VARINT, signed
from stepscope.readers.protobuf.varints import bytes_field, number_field
from stepscope.readers.protobuf.wire_fields import double, fields
from stepscope.readers.xplane import record_heads
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.readers.protobuf.varints import Buffer
    from stepscope.readers.protobuf.wire_fields import Field
    from stepscope.tables.optrace_stats import PlainStat
    from stepscope.tables.records import I64

Span = tuple[int, int]
"""First byte, and the byte after the last."""

_PLANES, _ERRORS, _WARNINGS, _HOSTNAMES = 1, 2, 3, 4
_PLANE_NAME, _PLANE_LINES, _PLANE_METAS, _PLANE_STAT_NAMES, _PLANE_STATS = 2, 3, 4, 5, 6
_MAP_KEY, _MAP_VALUE = 1, 2
_META_ID, _META_NAME, _META_DISPLAY_NAME, _META_STATS = 1, 2, 4, 5
_WINDOW_BYTES, _MAX_WINDOW_BYTES, _GROWTH = 1 << 16, 1 << 22, 4
"""Bytes of metadata read at a time: more as long as there is more."""
LINE_EVENTS = 4
EVENT_STATS = 4
STAT_ID, STAT_DOUBLE, STAT_UINT, STAT_INT, STAT_TEXT, STAT_BYTES, STAT_REF = 1, 2, 3, 4, 5, 6, 7
EVENT_ID, EVENT_OFFSET, EVENT_DURATION, EVENT_OCCURRENCES = 1, 2, 3, 5


def tag(number: int, wire: int) -> int:
    """The byte that begins a field (numbers below 16)."""
    return number << 3 | wire


_VALUE_TAG = tag(_MAP_VALUE, BYTES)


class WireMetas(Struct):
    """The XEventMetadata of a plane, in file order."""

    ids: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Names; for one without a name, its display name."""
    stats: dict[int, Sequence[Span]] = field(default_factory=dict)
    """Stats by position, of those that have some."""

    def __len__(self) -> int:
        """The number of entries."""
        return len(self.ids)


class WirePlane(Struct):
    """One XPlane."""

    name: str = ""
    lines: list[Span] = field(default_factory=list)
    metas: WireMetas = field(default_factory=WireMetas)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: list[Span] = field(default_factory=list)


class WireSpace(Struct):
    """One XSpace."""

    planes: list[WirePlane] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hostnames: list[str] = field(default_factory=list)


_UNDECODED = "\ufffd"
"""Character in a text in place of bytes that are no text."""


def read_space(source: ByteSource) -> WireSpace:
    """The structure of an XSpace; for its lines only their positions.

    Raises:
        FormatError: it is not an XSpace, or is damaged.
    """
    space = WireSpace()
    view = source.view
    for number, wire, first, last in fields(view, 0, source.size):
        if wire != BYTES:
            continue
        if number == _PLANES:
            space.planes.append(_plane(source, view, first, last))
        elif number == _ERRORS:
            space.errors.append(source.text(first, last))
        elif number == _WARNINGS:
            space.warnings.append(source.text(first, last))
        elif number == _HOSTNAMES:
            space.hostnames.append(source.text(first, last))
    if not any(plane.name.isprintable() and plane.name and _UNDECODED not in plane.name for plane in space.planes):
        raise FormatError(f"no plane with a name in its {source.size} bytes")
    return space


def _plane(source: ByteSource, view: memoryview, first: int, last: int) -> WirePlane:
    plane = WirePlane()
    names = WireMetas()
    entries = {tag(_PLANE_METAS, BYTES): plane.metas, tag(_PLANE_STAT_NAMES, BYTES): names}
    at = first
    while at < last:
        if view[at] in entries:
            at = _add_metas(source, at, last, entries[view[at]])
            continue
        number, wire, begin, at = next(fields(view, at, last))
        if wire != BYTES:
            continue
        if number == _PLANE_NAME:
            plane.name = source.text(begin, at)
        elif number == _PLANE_LINES:
            plane.lines.append((begin, at))
        elif number == _PLANE_STATS:
            plane.stats.append((begin, at))
    plane.stat_names = dict(zip(names.ids, names.names, strict=True))
    return plane


def _add_metas(source: ByteSource, at: int, last: int, metas: WireMetas) -> int:
    """Add the consecutive entries from ``at`` onwards; return the end of the last.

    They are entries of a map from id to XEventMetadata or XStatMetadata, whose id and name have the same numbers.
    """
    windows, tag_, size = Windows(source), source.view[at], _WINDOW_BYTES
    while at < last and source.view[at] == tag_:
        end = min(last, at + size)
        window = windows.at(at, min(last, end + record_heads.MARGIN))
        heads = record_heads.find(window, end - at, record_heads.Look(tag_, _VALUE_TAG))
        reached = at + int(heads[-1])
        if reached > last:
            raise FormatError(f"an entry reaches to byte {reached}, its plane ends at byte {last}")
        if reached > at + window.size:
            window = windows.at(at, reached)
        _, begin, _ = number_field(window, heads[:-1], heads[1:], tag_, small=True)
        _add_entries(source, window, begin, heads[1:], metas)
        at, size = reached, min(_GROWTH * size, _MAX_WINDOW_BYTES)
    return at


def _add_entries(source: ByteSource, window: Buffer, begin: I64, ends: I64, metas: WireMetas) -> None:
    """Find the names of all entries at once; entries in an unusual order are read one by one."""
    key, at, keyed = number_field(window, begin, ends, tag(_MAP_KEY, VARINT))
    inner, inner_end, valued = bytes_field(window, at, ends, _VALUE_TAG)
    _, at, _ = number_field(window, inner, inner_end, tag(_META_ID, VARINT))
    first, at, named = bytes_field(window, at, inner_end, tag(_META_NAME, BYTES))
    shown, rest, _ = bytes_field(window, at, inner_end, tag(_META_DISPLAY_NAME, BYTES))
    has_name = first < at
    from_, to = np.where(has_name, first, shown).tolist(), np.where(has_name, at, rest).tolist()
    content, base = bytes(window.content), len(metas)
    metas.ids += key.tolist()
    metas.names += _texts(content, from_, to)
    usual = keyed & valued & named & (inner_end == ends)
    for i in np.flatnonzero((rest < inner_end) | ~usual).tolist():
        if usual[i]:
            name, other, stats = _meta_fields(source, int(rest[i]) + window.base, int(inner_end[i]) + window.base)
            metas.names[base + i] = name or metas.names[base + i] or other
        else:
            metas.ids[base + i], metas.names[base + i], stats = _meta(
                source, int(begin[i]) + window.base, int(ends[i]) + window.base
            )
        if stats:
            metas.stats[base + i] = stats


def _texts(content: bytes, begin: Sequence[int], end: Sequence[int]) -> list[str]:
    try:
        return [content[a:b].decode() for a, b in zip(begin, end, strict=True)]  # faster than with an errors argument
    except UnicodeDecodeError:
        return [content[a:b].decode("utf-8", "replace") for a, b in zip(begin, end, strict=True)]


def _meta(source: ByteSource, first: int, last: int) -> tuple[int, str, list[Span]]:
    """One entry in any order of its fields: its id, its name, its stats."""
    key, name = 0, ""
    stats: list[Span] = []
    for number, wire, at, end in fields(source.view, first, last):
        if number == _MAP_KEY and wire == VARINT:
            key = signed(at)
        elif number == _MAP_VALUE and wire == BYTES:
            said, shown, more = _meta_fields(source, at, end)
            name, stats = said or name or shown, stats + more
    return key, name, stats


def _meta_fields(source: ByteSource, first: int, last: int) -> tuple[str, str, list[Span]]:
    """Its name, its display name, its stats."""
    name, shown = "", ""
    stats: list[Span] = []
    for number, wire, at, end in fields(source.view, first, last):
        if wire != BYTES:
            continue
        if number == _META_NAME:
            name = source.text(at, end)
        elif number == _META_DISPLAY_NAME:
            shown = source.text(at, end)
        elif number == _META_STATS:
            stats.append((at, end))
    return name, shown, stats


def plain_stats(source: ByteSource, spans: Sequence[Span], stat_names: Mapping[int, str]) -> dict[str, PlainStat]:
    """Stats of a plane or a kind of event, by name; bytes are omitted.

    Raises:
        FormatError: one is damaged.
    """
    found: dict[str, PlainStat] = {}
    for first, last in spans:
        key, value = 0, None
        for one in fields(source.view, first, last):
            if one[:2] == (STAT_ID, VARINT):
                key = signed(one[2])
            else:
                value = _plain(source, one, stat_names)
        if value is not None:
            found[stat_names.get(key, str(key))] = value
    return found


def _plain(source: ByteSource, one: Field, stat_names: Mapping[int, str]) -> PlainStat | None:
    number, wire, at, end = one
    if wire == VARINT and number == STAT_REF:
        return stat_names.get(signed(at), "")
    if wire == VARINT and number in {STAT_UINT, STAT_INT}:
        return signed(at) if number == STAT_INT else at
    if wire == FIXED64 and number == STAT_DOUBLE:
        return double(source.view, at)
    if wire == BYTES and number == STAT_TEXT:
        return source.text(at, end)
    return None
