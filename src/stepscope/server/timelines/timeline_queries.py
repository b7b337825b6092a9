"""Queries on a timeline: one span, names, statistics, location of evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.optrace.device.event_links import LinkKind
from stepscope.model.api.timeline import (
    EvidencePlace,
    Span,
    SpanDetail,
    SpanHits,
    SpanLink,
    SpanNames,
    SpanPart,
    SpanStatistic,
    SpanStatistics,
    Track,
)
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.api.timeline import SpanName
    from stepscope.store.span_cache import Column, Columns, MappedCache
    from stepscope.tables.records import Bool

MOST_LINKS = 40
"""Most links per direction; more would not be legible."""
_MOST_READ = 10_000
_LINKS: dict[int, str] = {
    LinkKind.LAUNCH: "launch",
    LinkKind.FLOW: "flow",
    LinkKind.TRANSFER: "transfer",
    LinkKind.DATA: "data",
}
_CHUNK = 1 << 18
_FEW = 1 << 13
"""Rows that are summed together. Columns above 128 KiB are freshly mapped by the system each time: ten million spans
took 0.17 s in lanes of 98,000, and take 0.06 s in these blocks (one of two busy cores)."""
PARTS = "parts"
"""Key of the track with the parts of the steps."""
_AROUND = 0.25
"""Share of a step that is shown before and after it."""


def _rows(columns: Columns, begin: int, end: int) -> slice:
    """Rows that start in a range, and the preceding one if it reaches into it."""
    first, last = np.searchsorted(columns["start"], (begin, end), "left").tolist()
    if first and int(columns["end"][first - 1]) > begin:
        first -= 1
    return slice(first, last)


def names(reader: MappedCache, offset: int, limit: int) -> SpanNames:
    """A page of names."""
    every = reader.index.names
    return SpanNames(
        items=every[offset : offset + limit],
        total=len(every),
        offset=offset,
        next_offset=offset + limit if offset + limit < len(every) else None,
    )


def span(reader: MappedCache, lane: int, row: int | None, at_ns: int) -> SpanDetail:
    """One span by its number, or the last one of the lane that started by a given time.

    Raises:
        UsageError: there is no such lane or span.
    """
    base, track = reader.base(_checked(reader, lane)), track_of(reader, lane)
    start, end = base["start"], base["end"]
    if row is None:
        row = max(0, int(np.searchsorted(start, at_ns, "right")) - 1)
    if row >= len(start):
        raise UsageError(f"span {row} of lane {lane}: there are {len(start)}")
    begin = int(start[row])
    before, behind = int(np.searchsorted(start, begin, "left")) - 1, int(np.searchsorted(start, begin, "right"))
    found = _span(reader, lane, row)
    links, links_total = _links(reader, found)
    return SpanDetail(
        span=found,
        name=reader.index.names[found.name],
        track=track.key,
        depth=lane - track.first_lane,
        spans=len(start),
        previous_ns=int(start[before]) if before >= 0 else None,
        next_ns=int(start[behind]) if behind < len(start) else None,
        parent_ns=_around(reader, lane - 1, begin) if lane > track.first_lane else None,
        child_ns=_inside(reader, lane + 1, begin, int(end[row])) if lane + 1 < track.first_lane + track.lanes else None,
        step=_step_at(reader, begin),
        step_parts=_parts_at(reader, begin),
        links=links,
        links_total=links_total,
    )


def _links(reader: MappedCache, of: Span) -> tuple[tuple[SpanLink, ...], int]:
    """The nearest links of a span, and their total number."""
    shown: list[SpanLink] = []
    total = 0
    for out in (False, True):
        ends = reader.links(of.lane, of.row, out=out)
        total += len(ends)
        found = [(kind, _span(reader, lane, row)) for lane, row, kind in ends[:_MOST_READ]]
        found.sort(key=lambda link: abs(link[1].start_ns - of.start_ns))
        shown += [
            SpanLink(out=out, kind=_LINKS[kind], span=span, text=reader.index.names[span.name].text)
            for kind, span in found[:MOST_LINKS]
        ]
    return tuple(shown), total


def _span(reader: MappedCache, lane: int, row: int) -> Span:
    base = reader.base(lane)
    begin = int(base["start"][row])
    return Span(lane=lane, row=row, name=int(base["name"][row]), start_ns=begin, dur_ns=int(base["end"][row]) - begin)


def _around(reader: MappedCache, lane: int, at: int) -> int | None:
    base = reader.base(lane)
    row = int(np.searchsorted(base["start"], at, "right")) - 1
    return int(base["start"][row]) if row >= 0 and int(base["end"][row]) >= at else None


def _inside(reader: MappedCache, lane: int, begin: int, end: int) -> int | None:
    start = reader.base(lane)["start"]
    row = int(np.searchsorted(start, begin, "left"))
    return int(start[row]) if row < len(start) and int(start[row]) < end else None


def track_of(reader: MappedCache, lane: int) -> Track:
    """The track of a lane."""
    tracks = reader.index.timeline.tracks
    return next(track for track in reversed(tracks) if track.lanes and track.first_lane <= lane)


def _checked(reader: MappedCache, lane: int) -> int:
    if lane >= reader.lanes:
        raise UsageError(f"lane {lane}: there are {reader.lanes}")
    return lane


def search(reader: MappedCache, words: str, offset: int, limit: int) -> SpanHits:
    """Spans whose names hold all words, by time."""
    sought = words.lower().split()
    texts = [name.text.lower() for name in reader.index.names]
    matching = np.array([bool(sought) and all(word in text for word in sought) for text in texts], np.bool_)
    total = int(np.array(reader.index.counts, np.int64)[matching].sum())
    wanted = min(total, offset + limit)
    found: list[tuple[int, int, int]] = []
    if offset < total:
        for lane in range(reader.lanes):
            base = reader.base(lane)
            found += [(int(base["start"][row]), lane, row) for row in _first_hits(base["name"], matching, wanted)]
    items = tuple(_span(reader, lane, row) for _, lane, row in sorted(found)[offset : offset + limit])
    return SpanHits(
        items=items,
        names={item.name: reader.index.names[item.name].text for item in items},
        total=total,
        offset=offset,
        next_offset=offset + limit if offset + limit < total else None,
    )


def _first_hits(column: Column, matching: Bool, wanted: int) -> Iterator[int]:
    left = wanted
    for first in range(0, len(column), _CHUNK):
        rows = np.flatnonzero(matching[column[first : first + _CHUNK].astype(np.intp)])[:left]
        yield from (rows + first).tolist()
        left -= len(rows)
        if not left:
            return


def statistics(reader: MappedCache, begin: int, end: int, lanes: range, offset: int, limit: int) -> SpanStatistics:
    """Names by their total time within a range, for some lanes.

    Raises:
        UsageError: there is no such lane.
    """
    size = len(reader.index.names)
    count, total, most = np.zeros(size, np.int64), np.zeros(size), np.zeros(size, np.int64)
    for lane in lanes:
        base = reader.base(_checked(reader, lane))
        rows = _rows(base, begin, end)
        if rows == slice(0, len(base["start"])) and _within(base, begin, end):
            sums = reader.sums(lane)
            count[sums["name"]] += sums["count"]
            total[sums["name"]] += sums["total"]
            most[sums["name"]] = np.maximum(most[sums["name"]], sums["most"])
            continue
        for at in range(rows.start, rows.stop, _FEW):
            part = slice(at, min(rows.stop, at + _FEW))
            name = base["name"][part].astype(np.intp)
            inside = np.minimum(base["end"][part], end) - np.maximum(base["start"][part], begin)
            count += np.bincount(name, minlength=size)
            total += np.bincount(name, weights=inside.astype(np.float64), minlength=size)
            np.maximum.at(most, name, inside)
    order = np.flatnonzero(count)
    order = order[np.lexsort((-count[order], -total[order]))]
    return SpanStatistics(
        items=tuple(
            SpanStatistic(
                name=i,
                text=reader.index.names[i].text,
                category=reader.index.names[i].category,
                count=int(count[i]),
                total_ns=int(total[i]),
                mean_ns=int(total[i] / count[i]),
                max_ns=int(most[i]),
            )
            for i in order[offset : offset + limit].tolist()
        ),
        total=len(order),
        spans=int(count.sum()),
        offset=offset,
        next_offset=offset + limit if offset + limit < len(order) else None,
    )


def _within(base: Columns, begin: int, end: int) -> bool:
    """Whether a lane lies entirely in a range."""
    return not len(base["start"]) or (int(base["start"][0]) >= begin and int(base["end"][-1]) <= end)


def evidence(reader: MappedCache, ref: str) -> EvidencePlace:
    """Location of a finding's evidence: the span of median length, with its step."""
    kind, _, which = ref.partition(":")
    if kind == "capture":
        traces = reader.index.timeline.traces
        taken = next((t for t in traces if t.ref == ref), None)
        if taken is None:
            return EvidencePlace(found=False)
        return EvidencePlace(found=True, from_ns=taken.begin_ns, to_ns=taken.end_ns)
    if kind in {"name", "trace", "span"}:
        return _of_span(reader, which) if kind == "span" else _of_name(reader, ref)
    steps = _steps(reader)
    if steps is None or not len(steps["start"]):
        return EvidencePlace(found=False)
    if kind == "step":
        row = int(which) if which.isdecimal() and int(which) < len(steps["start"]) else None
    elif kind == "component":
        row = _middle(steps["end"] - steps["start"])
    else:
        row = None
    if row is None:
        return EvidencePlace(found=False)
    begin, end = int(steps["start"][row]), int(steps["end"][row])
    low, high = _widened(begin, end)
    return EvidencePlace(found=True, from_ns=low, to_ns=high, lane=0, start_ns=begin)


def _of_span(reader: MappedCache, which: str) -> EvidencePlace:
    """A span by its track, begin and duration, ``ops-001.7@1200+50``; of those around each other the innermost."""
    key, _, when = which.rpartition("@")
    begin, _, dur = when.partition("+")
    track = next((track for track in reader.index.timeline.tracks if track.key == key), None)
    if track is None or not begin.isdecimal() or not dur.isdecimal():
        return EvidencePlace(found=False)
    at, end = int(begin), int(begin) + int(dur)
    for lane in reversed(range(track.first_lane, track.first_lane + track.lanes)):
        base = reader.base(lane)
        row = int(np.searchsorted(base["start"], at, "left"))
        if row < len(base["start"]) and (int(base["start"][row]), int(base["end"][row])) == (at, end):
            low, high = _widened(at, max(end, at + 1))
            return EvidencePlace(found=True, from_ns=low, to_ns=high, lane=lane, start_ns=at)
    return EvidencePlace(found=False)


def _of_name(reader: MappedCache, ref: str) -> EvidencePlace:
    timeline = reader.index.timeline
    matching = np.array([name.ref == ref for name in reader.index.names], np.bool_)
    found: list[tuple[int, int, int]] = []
    for track in timeline.tracks:
        if timeline.steps_worker and track.worker != timeline.steps_worker:
            continue
        for lane in range(track.first_lane, track.first_lane + track.lanes):
            base = reader.base(lane)
            rows = np.flatnonzero(matching[base["name"].astype(np.intp)])
            if len(rows):
                row = int(rows[_middle((base["end"] - base["start"])[rows])])
                found.append((len(rows), lane, row))
    if not found:
        return EvidencePlace(found=False)
    _, lane, row = max(found)
    it = _span(reader, lane, row)
    begin, end = it.start_ns, it.start_ns + it.dur_ns
    number, steps = _step_at(reader, begin), _steps(reader)
    if number is not None and steps is not None:
        begin, end = min(begin, int(steps["start"][number])), max(end, int(steps["end"][number]))
    low, high = _widened(begin, end)
    return EvidencePlace(found=True, from_ns=low, to_ns=high, lane=lane, start_ns=it.start_ns)


def _middle(durations: Column) -> int:
    return int(np.argsort(durations, kind="stable")[len(durations) // 2])


def _widened(begin: int, end: int) -> tuple[int, int]:
    more = max(1, int((end - begin) * _AROUND))
    return max(0, begin - more), end + more


def _steps(reader: MappedCache) -> Columns | None:
    tracks = reader.index.timeline.tracks
    return reader.base(0) if tracks and tracks[0].kind == "steps" and tracks[0].lanes else None


def _parts_at(reader: MappedCache, at: int) -> tuple[SpanPart, ...]:
    """The parts of the step in which a time lies."""
    number, steps = _step_at(reader, at), _steps(reader)
    track = next((one for one in reader.index.timeline.tracks if one.key == PARTS and one.lanes), None)
    if number is None or steps is None or track is None:
        return ()
    base = reader.base(track.first_lane)
    begin, end = int(steps["start"][number]), int(steps["end"][number])
    rows = _rows(base, begin, end)
    took = np.minimum(base["end"][rows], end) - np.maximum(base["start"][rows], begin)
    sums: dict[SpanName, int] = {}
    for name, ns in zip(base["name"][rows].tolist(), took.tolist(), strict=True):
        about = reader.index.names[name]
        sums[about] = sums.get(about, 0) + ns
    found = [SpanPart(text=about.text, category=about.category, ns=ns) for about, ns in sums.items() if ns > 0]
    return tuple(sorted(found, key=lambda part: -part.ns))


def _step_at(reader: MappedCache, at: int) -> int | None:
    steps = _steps(reader)
    if steps is None:
        return None
    row = int(np.searchsorted(steps["start"], at, "right")) - 1
    return row if row >= 0 and int(steps["end"][row]) > at else None
