"""A session's timeline: what is drawn, what is said to be left out, what can be asked; when it is built anew."""

from __future__ import annotations

import os
import struct
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, Job, S
from tests.web import recorded
from tests.web.timeline_sessions import MB, OP, SPIKE_AT, STEP, add_trace, session, stored

from stepscope.model.log.events import Name
from stepscope.server.session_catalogue import ListedSession
from stepscope.server.timelines import kept_timelines, timeline_build, timeline_series, timeline_tiles
from stepscope.server.timelines import timeline_queries as queries
from stepscope.server.timelines.kept_timelines import Timelines
from stepscope.store import optrace
from stepscope.store.span_cache import MappedCache
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from stepscope.model.api.timeline import Timeline


def opened(path: Path, tmp_path: Path) -> MappedCache:
    """Its timeline."""
    said: list[float] = []
    timeline_build.build(path, tmp_path / "cache", lambda ratio, _: said.append(ratio))
    assert said == sorted(said)
    return MappedCache(tmp_path / "cache")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> MappedCache:
    """The timeline of the session with an op trace."""
    folder = tmp_path_factory.mktemp("traced")
    return opened(stored(folder, traced=True), folder)


def test_every_thread_and_stream_has_a_track(reader: MappedCache) -> None:
    """The steps first; lanes by depth; names with their lines; what is not drawn is counted."""
    timeline = reader.index.timeline
    assert [(t.title.partition(" (")[0], t.kind, t.lanes) for t in timeline.tracks[:3]] == [
        ("Steps", "steps", 1),
        ("Parts of the step", "derived", 1),
        ("main thread", "thread", 3),  # the loop holds calls and callbacks, a call the tracing
    ]
    assert {(t.title, t.kind) for t in timeline.tracks if t.trace} == {
        ("python", "thread"),
        ("Stream #1(Compute)", "stream"),
    }
    assert {one.group for one in timeline.series} == {"resources"}
    callback = next(name for name in reader.index.names if name.text == "Plot.on_train_batch_end")
    assert (callback.category, callback.file, callback.line) == ("callbacks", "train.py", 30)
    assert {left.what.partition(":")[0]: left.count for left in timeline.left_out} == {
        "stack samples": 40,
        "calls too short to be recorded one by one": 400,
    }
    assert timeline.end_ns >= 200 * STEP
    assert timeline.spans == sum(track.spans for track in timeline.tracks)


def marks(data: bytes) -> tuple[list[tuple[int, int]], dict[str, np.ndarray], int, int]:
    """A tile: (lane, marks), columns, its begin and the unit of its times."""
    magic, lanes, total, unit, begin, _bucket = struct.unpack_from("<IIIIqq", data)
    assert magic == timeline_tiles.MAGIC
    table = np.frombuffer(data, "<u4", 2 * lanes, 32).reshape(-1, 2)
    at = 32 + 8 * lanes
    columns = {}
    for name, kind in (("start", "<i4"), ("dur", "<u4"), ("name", "<u4"), ("count", "<u4"), ("row", "<u4")):
        columns[name] = np.frombuffer(data, kind, total, at)
        at += 4 * total
    assert at == len(data)
    return [tuple(row) for row in table.tolist()], columns, begin, 1 << unit


@pytest.mark.parametrize("level", [10, 18, 22, 26, 30])
def test_tiles_show_every_span_once(reader: MappedCache, level: int) -> None:
    """At any level the counts of what begins in each tile add up to all spans of each lane."""
    size = 1 << (level + timeline_tiles.TILE_LOG2)
    tiles = range(min(400, reader.index.timeline.end_ns // size + 1))
    found = np.zeros(reader.lanes, np.int64)
    for index in tiles:
        table, columns, _, _ = marks(timeline_tiles.find(reader, level, index, 0).encoded())
        at = 0
        for lane, count in table:
            begins = columns["start"][at : at + count] >= 0  # what reaches in from before is owned by the tile before
            found[lane] += int(columns["count"][at : at + count][begins].sum())
            at += count
    last = len(tiles) * size
    expected = [int((reader.base(lane)["start"] < last).sum()) for lane in range(reader.lanes)]
    assert found.tolist() == expected


def test_a_tile_within_a_span_shows_it(reader: MappedCache) -> None:
    """The loop, which begins long before."""
    table, columns, begin, unit = marks(timeline_tiles.find(reader, 14, 60, 0).encoded())
    lane = reader.index.timeline.tracks[2].first_lane
    first = sum(count for number, count in table if number < lane)
    assert dict(table)[lane] == 1
    start = begin + int(columns["start"][first]) * unit
    assert start <= 0 < begin
    assert start + int(columns["dur"][first]) * unit >= begin + (1 << 24)


def curves(data: bytes) -> tuple[list[tuple[int, int]], dict[str, np.ndarray]]:
    """A tile of curves: (series, points), columns."""
    magic, series, total, _unit, _begin, _bucket = struct.unpack_from("<IIIIqq", data)
    assert magic == timeline_series.MAGIC
    table = np.frombuffer(data, "<u4", 2 * series, 32).reshape(-1, 2)
    at = 32 + 8 * series
    columns = {}
    for name in ("start", "dur", "low", "high", "mean", "count"):
        kind = {"start": "<i4", "low": "<f4", "high": "<f4", "mean": "<f4"}.get(name, "<u4")
        columns[name] = np.frombuffer(data, kind, total, at)
        at += 4 * total
    assert at == len(data)
    return [tuple(row) for row in table.tolist()], columns


def test_a_span_says_what_led_to_it(reader: MappedCache) -> None:
    """A kernel its launch, the launch its kernel: by lane and row, of the right one of fifty; others have none."""
    stream = next(t for t in reader.index.timeline.tracks if t.kind == "stream")
    kernel = queries.span(reader, stream.first_lane, 7, 0)
    (link,) = kernel.links
    assert (link.out, link.kind, link.text, kernel.links_total) == (False, "launch", "cudaLaunchKernel", 1)
    assert kernel.span.start_ns - link.span.start_ns == 30_000
    launch = queries.span(reader, link.span.lane, link.span.row, 0)
    assert [(one.out, one.text, one.span) for one in launch.links] == [(True, "sgemm", kernel.span)]
    assert queries.span(reader, 0, 5, 0).links == ()


def test_many_links_are_counted(tmp_path: Path) -> None:
    """The nearest are told, and how many there are."""
    path = recorded.write(session(), tmp_path / "job.stepscope").path
    maker = Maker()
    other = maker.thread("other")
    maker.span(maker.main, "run", 10, 5, _p=1, _pt=4)
    for number in range(100):
        maker.span(other, "op", 20 + 2 * number, 1, _c=1, _ct=4)
    optrace.write(path, "ops-001", maker.trace(), worker="")
    reader = opened(path, tmp_path)
    track = next(t for t in reader.index.timeline.tracks if t.title == "python")
    run = queries.span(reader, track.first_lane, 0, 0)
    assert run.links_total == 100
    assert [link.span.row for link in run.links] == list(range(queries.MOST_LINKS))


@pytest.mark.parametrize("level", [14, 20, 24, 28, 34])
def test_a_spike_is_in_every_level(reader: MappedCache, level: int) -> None:
    """However far away: the highest point of the network is the one ms with 300 MB/s; all looks are counted."""
    series = reader.index.timeline.series
    number = next(i for i, one in enumerate(series) if one.key == "net-in")
    size = 1 << (level + timeline_tiles.TILE_LOG2)
    counted, highest, place = 0, 0.0, -1
    for index in range(reader.index.timeline.end_ns // size + 1):
        table, columns = curves(timeline_series.curves(reader, level, index))
        first = sum(count for at, count in table if at < number)
        mine = slice(first, first + dict(table)[number])
        owned = columns["start"][mine] >= 0
        counted += int(columns["count"][mine][owned].sum())
        tops = columns["high"][mine][owned]
        if len(tops) and float(tops.max()) > highest:
            highest, place = float(tops.max()), index
    assert counted == series[number].samples
    assert highest == series[number].most == pytest.approx(300 * MB)
    assert place == SPIKE_AT // size


def test_resources_of_a_range(reader: MappedCache) -> None:
    """Lowest, mean and highest; nothing of what was not sampled there."""
    whole = {row.key: row for row in timeline_series.ranges(reader, 0, 4_000_000_000).items}
    assert whole["net-in"].mean == pytest.approx(9.3 * MB / 4)
    assert whole["cpu"].low == whole["cpu"].high == pytest.approx(1.0)
    spike = {row.key: row for row in timeline_series.ranges(reader, SPIKE_AT + 1, SPIKE_AT + 2).items}["net-in"]
    assert spike.low == pytest.approx(300 * MB)
    assert spike.samples == 1
    assert timeline_series.ranges(reader, 1 << 50, 1 << 51).items == ()
    assert timeline_series.ranges(reader, 5, 5).items == ()


def test_search_finds_all_and_says_how_many(reader: MappedCache) -> None:
    """By words in any case, by time, page by page."""
    found = queries.search(reader, "MATMUL dense", 10, 5)
    assert found.total == 50
    assert found.next_offset == 15
    assert [item.start_ns for item in found.items] == [STEP + 1000 * (100 + n * 200) for n in range(10, 15)]
    assert set(found.names.values()) == {OP}
    assert queries.search(reader, "no such thing", 0, 5).total == 0
    assert queries.search(reader, "matmul", 1_000, 5).items == ()


def test_statistics_of_a_range_clip_what_reaches_out_of_it(reader: MappedCache) -> None:
    """Half a callback counts half; lanes can be chosen."""
    begin = 5 * STEP
    found = queries.statistics(reader, begin, begin + 2 * STEP - 6 * MS, range(reader.lanes), 0, 100)
    by_name = {item.text: item for item in found.items}
    callback = by_name["Plot.on_train_batch_end"]
    assert (callback.count, callback.total_ns, callback.max_ns) == (2, 10 * MS, 7 * MS)
    assert by_name["fit"].total_ns == 2 * STEP - 6 * MS
    only = queries.statistics(reader, 0, S, range(1), 0, 100)
    assert [item.category for item in only.items] == ["step"]
    with pytest.raises(UsageError, match="lane 99"):
        queries.statistics(reader, 0, S, range(99, 100), 0, 10)


def test_statistics_of_all_are_those_of_every_span(reader: MappedCache) -> None:
    """Of whole lanes they are stored; one nanosecond less is added up of what is left."""
    end = reader.index.timeline.end_ns
    whole = queries.statistics(reader, 0, end, range(reader.lanes), 0, 100)
    lengths: dict[int, list[int]] = {}
    for lane in range(reader.lanes):
        base = reader.base(lane)
        for name, dur in zip(base["name"].tolist(), (base["end"] - base["start"]).tolist(), strict=True):
            lengths.setdefault(name, []).append(dur)
    assert {item.name: (item.count, item.total_ns, item.max_ns) for item in whole.items} == {
        name: (len(of), sum(of), max(of)) for name, of in lengths.items()
    }
    assert whole.spans == reader.index.timeline.spans
    loop = next(item for item in whole.items if item.text == "fit")
    less = queries.statistics(reader, 1, end, range(reader.lanes), 0, 100)
    assert next(item for item in less.items if item.text == "fit").total_ns == loop.total_ns - 1


def test_one_span_and_what_is_beside_it(reader: MappedCache) -> None:
    """Before, behind, above, below, and its step."""
    thread = reader.index.timeline.tracks[2]
    found = queries.span(reader, thread.first_lane + 1, None, 5 * STEP + 3 * MS)
    assert (found.span.start_ns, found.span.dur_ns) == (5 * STEP, 10 * MS)
    assert found.step == 5
    assert found.previous_ns == 4 * STEP + 11 * MS
    assert found.next_ns == 5 * STEP + 11 * MS
    assert found.parent_ns == 0
    assert found.child_ns is None
    assert queries.span(reader, thread.first_lane + 1, found.span.row, 0) == found
    with pytest.raises(UsageError, match="span 999999"):
        queries.span(reader, thread.first_lane, 999_999, 0)


def test_evidence_leads_to_its_place(reader: MappedCache) -> None:
    """A name to a span of it in its step, a capture to its range, a step and a part of it to steps."""
    name = next(n for n in reader.index.names if n.text.startswith("Plot"))
    place = queries.evidence(reader, name.ref)
    assert place.lane is not None
    assert place.start_ns is not None
    found = queries.span(reader, place.lane, None, place.start_ns)
    assert found.name.text == "Plot.on_train_batch_end"
    assert place.from_ns < place.start_ns < place.start_ns + 7 * MS < place.to_ns
    assert place.to_ns - place.from_ns < 2 * STEP
    taken = queries.evidence(reader, "capture:1")
    assert taken.found
    assert STEP <= taken.from_ns < taken.to_ns <= 2 * STEP + MS
    step = queries.evidence(reader, "step:7")
    assert step.start_ns == 7 * STEP
    assert queries.evidence(reader, "component:callbacks").found
    for unknown in ("name:99999", "step:99999", "step:x", "capture:9", "what", ""):
        assert not queries.evidence(reader, unknown).found


def test_a_timeline_is_built_once_and_kept(tmp_path: Path) -> None:
    """In the folder of the server that asked first; the next one opens it."""
    path = stored(tmp_path)
    entry = ListedSession(key="0" * 16, path=path)
    cache = tmp_path / "timelines"
    cache.mkdir()
    first = Timelines(cache)
    made = ready(first, entry)
    assert made.spans > 400
    assert [folder.name for folder in cache.iterdir()] == [made.build]
    assert first.reader(entry.key, made.build).lanes == 5
    assert Timelines(cache).state(entry) == made
    with pytest.raises(UsageError, match="no timeline"):
        first.reader(entry.key, "0" * 20)


def ready(opener: Timelines, entry: ListedSession) -> Timeline:
    """The timeline when it is built."""
    while (found := opener.state(entry, 10.0)).state == "building":
        pass
    assert found.state == "ready", found.doing
    return found


def test_a_new_op_trace_renews_it(tmp_path: Path) -> None:
    """The one before answers meanwhile."""
    path = stored(tmp_path)
    entry = ListedSession(key="0" * 16, path=path)
    (cache := tmp_path / "timelines").mkdir()
    opener = Timelines(cache)
    before = ready(opener, entry)
    add_trace(path, "")
    renewing = opener.state(entry)
    assert (renewing.build, renewing.renewing) == (before.build, True)
    assert opener.reader(entry.key, before.build).lanes == 5
    while (after := opener.state(entry)).renewing:
        time.sleep(0.05)
    assert any(track.trace == "ops-001" for track in after.tracks)


def test_a_session_that_is_none_says_why(tmp_path: Path) -> None:
    """Nothing is left of the attempt."""
    path = stored(tmp_path)
    (path / "manifest.json").write_text("{")
    (cache := tmp_path / "timelines").mkdir()
    opener = Timelines(cache)
    entry = ListedSession(key="0" * 16, path=path)
    while (found := opener.state(entry, 10.0)).state == "building":
        pass
    assert found.state == "failed"
    assert "manifest.json" in found.doing
    assert list(cache.iterdir()) == []


def test_names_without_an_event_are_drawn(tmp_path: Path) -> None:
    """A record whose name line was lost is drawn by its kind."""
    made = session(40)
    worker = made.workers[0]
    worker = replace(worker, events=[e for e in worker.events if not isinstance(e, Name) or "Plot" not in e.text])
    path = recorded.write(replace(made, workers=[worker]), tmp_path / "lost.stepscope").path
    names = {name.text for name in opened(path, tmp_path).index.names}
    assert "callback" in names


def test_what_is_unused_for_longest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When more is kept than may be; what somebody was killed over goes after a day."""
    (cache := tmp_path / "timelines").mkdir()
    for number, name in enumerate(("old", "new", ".half.1.tmp")):
        (cache / name).mkdir()
        (cache / name / "base.start").write_bytes(b"x" * 1000)
        os.utime(cache / name, (1_000_000 + number, 1_000_000 + number))
    os.utime(cache / "new")
    monkeypatch.setattr(kept_timelines, "MAX_BYTES", 1500)
    ready(Timelines(cache), ListedSession(key="0" * 16, path=stored(tmp_path)))
    assert not (cache / "old").exists()
    assert (cache / "new").exists()
    assert not (cache / ".half.1.tmp").exists()


def test_a_cache_that_others_may_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the server's own is, until it ends."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shared = tmp_path / "stepscope" / "timelines"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    mine = Timelines()
    ready(mine, ListedSession(key="0" * 16, path=stored(tmp_path)))
    assert list(shared.iterdir()) == []
    assert len(list(tmp_path.glob("stepscope-timelines-*/*"))) == 1
    mine.close()
    assert list(tmp_path.glob("stepscope-timelines-*")) == []


def test_a_step_that_stands_for_many_says_so(tmp_path: Path) -> None:
    """In gaps, steps were only counted: the span is called another thing, and has another colour."""
    job = Job(ended_ns=40 * STEP)
    job.framework()
    job.loop().at(0, 40 * STEP)
    execution = job.execution().every(STEP, 20, dur=10 * MS)
    execution.every(STEP, 10, dur=10 * MS, start=30 * STEP)
    job.gap(20 * STEP, 10 * STEP, calls=10)
    path = recorded.write(job.session(), tmp_path / "rest.stepscope").path
    reader = opened(path, tmp_path)
    names = [reader.index.names[name] for name in reader.base(0)["name"].tolist()]
    assert [name.category for name in names].count("other") == 1
    assert any("only counted" in left.what for left in reader.index.timeline.left_out)


def test_parts_of_a_step_lie_below_it(reader: MappedCache) -> None:
    """Call, callback and the loop's own time, each where it was; every span of the step says how the step divides."""
    (track,) = [track for track in reader.index.timeline.tracks if track.key == queries.PARTS]
    base = reader.base(track.first_lane)
    texts = [reader.index.names[name].text for name in base["name"].tolist()]
    assert set(texts) == {"compute", "callbacks", "framework"}
    assert (base["end"][:-1] <= base["start"][1:]).all()
    found = queries.span(reader, 0, None, 100 * STEP)
    assert [part.text for part in found.step_parts] == ["compute", "callbacks", "framework"]
    assert sum(part.ns for part in found.step_parts) == found.span.dur_ns
    assert found.step_parts[0].ns == STEP // 2
