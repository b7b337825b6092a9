"""Queries on the series of a timeline: points of a tile, and statistics of a range."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from stepscope.model.api.timeline import SeriesRange, SeriesRanges
from stepscope.server.timelines.timeline_tiles import LAST_NS, TILE_LOG2, UNITS_LOG2
from stepscope.tables.errors import UsageError
from stepscope.timeline import series_levels
from stepscope.timeline.series_levels import Held

if TYPE_CHECKING:
    from stepscope.store.span_cache import MappedCache
    from stepscope.timeline.series_levels import Points

MAGIC = 0x43545353
_HEAD = struct.Struct("<IIIIqq")


def points(reader: MappedCache, number: int, begin: int, end: int, exponent: int) -> Points:
    """Points that start in a range, and the value at its start, in buckets of 2**exponent ns."""
    return series_levels.merged(_held(reader, number, begin, end), 1 << exponent)


def _held(reader: MappedCache, number: int, begin: int, end: int) -> Held:
    start, stop, value = reader.series(number)
    first, last = np.searchsorted(start, (begin, end), "left").tolist()
    if first and int(stop[first - 1]) > begin:
        first -= 1
    return Held(start[first:last], stop[first:last], value[first:last])


def curves(reader: MappedCache, exponent: int, index: int) -> bytes:
    """Points of all series in one tile, little-endian (docs/rest.md).

    Raises:
        UsageError: it lies after the last possible time.
    """
    bucket = 1 << exponent
    begin = index << (exponent + TILE_LOG2)
    if begin > LAST_NS:
        raise UsageError(f"tile {index}: it starts after {LAST_NS} ns")
    numbers = range(len(reader.index.timeline.series))
    found = [points(reader, number, begin, begin + (bucket << TILE_LOG2), exponent) for number in numbers]
    unit = max(0, exponent - UNITS_LOG2)
    table = np.array([(number, len(part)) for number, part in zip(numbers, found, strict=True)], "<u4")
    columns = []
    for part in found:
        first = np.clip((part.start - begin) >> unit, -(1 << 31), (1 << 31) - 1)
        last = np.maximum(first, (part.end - begin + (1 << unit) - 1) >> unit)
        columns.append((first, np.minimum(last - first, 0xFFFFFFFF), part.low, part.high, part.mean, part.count))
    kinds = ("<i4", "<u4", "<f4", "<f4", "<f4", "<u4")
    return b"".join(
        (
            _HEAD.pack(MAGIC, len(numbers), sum(len(part) for part in found), unit, begin, bucket),
            table.tobytes(),
            *(part[at].astype(kind).tobytes() for at, kind in enumerate(kinds) for part in columns),
        )
    )


def ranges(reader: MappedCache, begin: int, end: int) -> SeriesRanges:
    """Lowest, mean and highest value of each series within a range."""
    items = []
    for number, series in enumerate(reader.index.timeline.series):
        held = _held(reader, number, begin, end)
        if begin >= end or not len(held):
            continue
        inside = (np.minimum(held.end, end) - np.maximum(held.start, begin)).astype(np.float64)
        items.append(
            SeriesRange(
                key=series.key,
                low=float(held.value.min()),
                mean=float((held.value * inside).sum() / inside.sum()),
                high=float(held.value.max()),
                samples=len(held),
            )
        )
    return SeriesRanges(items=tuple(items))
