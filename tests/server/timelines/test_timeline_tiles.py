"""A tile holds what each of its lanes shows alone: short lanes, stored levels and empty lanes side by side."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stepscope.model.api.timeline import SpanName, Timeline
from stepscope.server.timelines import timeline_tiles
from stepscope.store import span_cache
from stepscope.timeline import levels

if TYPE_CHECKING:
    from stepscope.timeline.levels import Marks

NAMES = 7
SPANS = (300, 9_000, 0, 30_000, 1, 5_000)
"""Of each lane: too few for levels, enough for some, none."""
LANES_PER_TILE = 4


def lane(rng: np.random.Generator, spans: int) -> Marks:
    """Spans of 1 to 60 us with gaps of up to 40 us, some of them moments, one in a hundred of 5 ms."""
    dur = rng.integers(0, 60_000, spans) // 500 * 500  # often as long as a neighbour
    dur[::100] += 5_000_000
    start = np.cumsum(rng.integers(0, 40_000, spans) + np.append(0, dur[:-1]))
    return levels.single(start, start + dur, rng.integers(0, NAMES, spans).astype(np.int32))


@pytest.fixture(scope="module")
def lanes() -> list[Marks]:
    """The spans."""
    rng = np.random.default_rng(7)
    return [lane(rng, spans) for spans in SPANS]


@pytest.fixture(scope="module")
def reader(lanes: list[Marks], tmp_path_factory: pytest.TempPathFactory) -> span_cache.MappedCache:
    """The same on disk, with the levels that are worth it."""
    folder = tmp_path_factory.mktemp("tiles") / "cache"
    with span_cache.Writer(folder) as writer:
        for number, spans in enumerate(lanes):
            writer.add({"start": spans.start, "end": spans.end, "name": spans.name})
            for exponent, marks in levels.levels(spans):
                writer.add_level(number, exponent, marks.columns())
        names = tuple(SpanName(text=f"{i}", category="op") for i in range(NAMES))
        timeline = Timeline(state="ready", lanes_per_tile=LANES_PER_TILE)
        writer.finish(timeline, names, tracks=(), series=(), left_out=(), traces=())
    return span_cache.MappedCache(folder)


def drawn(data: bytes) -> dict[int, list[list[int]]]:
    """Start, duration, name with fill, count and row of the marks of each lane."""
    magic, lanes, total, _unit, _begin, _bucket = struct.unpack_from("<IIIIqq", data)
    assert magic == timeline_tiles.MAGIC
    table = np.frombuffer(data, "<u4", 2 * lanes, 32).reshape(-1, 2).tolist()
    columns = np.frombuffer(data, "<u4", 5 * total, 32 + 8 * lanes).reshape(5, total)
    assert len(data) == 32 + 8 * lanes + columns.nbytes
    made, at = {}, 0
    for number, count in table:
        rows = columns[:, at : at + count].T.astype(np.int64)
        rows[:, 0] = rows[:, 0].astype(np.uint32).astype(np.int32)
        made[number] = rows.tolist()
        at += count
    assert at == total
    return made


def alone(spans: Marks, exponent: int, begin: int, end: int) -> list[list[int]]:
    """What a lane shows of what begins in a range, made of its spans without any level."""
    rows = slice(*np.searchsorted(spans.start, (begin, end)).tolist())
    part = levels.single(spans.start[rows], spans.end[rows], spans.name[rows], rows.start)
    found = levels.merged(part, 1 << exponent)
    unit = max(0, exponent - 4)
    marks = []
    for start, stop, name, count, busy, _longest, row in zip(
        *(c.tolist() for c in found.columns().values()), strict=True
    ):
        first, last = (start - begin) >> unit, (stop - begin + (1 << unit) - 1) >> unit
        fill = max(1, min(255, busy * 255 // max(1, stop - start))) if count > 1 else 255
        marks.append([first, max(0, last - first), name | fill << 24, count, row])
    return marks


@pytest.mark.parametrize("many", [50, timeline_tiles.MANY], ids=["apart", "together"])
@pytest.mark.parametrize("exponent", [0, 9, 14, 16, 17, 18, 19, 20, 23, 28, 46])
def test_a_tile_is_what_its_lanes_show_alone(
    reader: span_cache.MappedCache, lanes: list[Marks], exponent: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At stored levels, between them and below them; what reaches in from before stands first, once."""
    monkeypatch.setattr(timeline_tiles, "MANY", many)
    size = 1 << (exponent + timeline_tiles.TILE_LOG2)
    whole = max(int(spans.end[-1]) for spans in lanes if len(spans))
    last = whole // size
    for index in sorted({0, last // 3, last // 2, last}):
        begin, end = index * size, (index + 1) * size
        for group in range(-(-len(lanes) // LANES_PER_TILE)):
            tile = drawn(timeline_tiles.find(reader, exponent, index, group).encoded())
            assert list(tile) == list(range(group * LANES_PER_TILE, min(len(lanes), (group + 1) * LANES_PER_TILE)))
            for number, marks in tile.items():
                reaching = [mark for mark in marks if mark[0] < 0]
                assert marks[len(reaching) :] == alone(lanes[number], exponent, begin, end)
                inside = (lanes[number].start < begin) & (lanes[number].end > begin)
                assert len(reaching) <= 1
                assert len(reaching) >= int(inside.any())


def test_some_lanes_have_levels_and_some_have_none(reader: span_cache.MappedCache) -> None:
    """Else the test above would compare one way with itself."""
    assert [reader.stored(number, 46)[0] != span_cache.WHOLE for number in range(len(SPANS))] == [
        False, True, False, True, False, True,
    ]  # fmt: skip
    levels = sorted(reader.index.levels)
    assert levels[0] <= 18
    assert levels[-1] >= 28
