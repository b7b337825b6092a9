"""Builds the timeline of a session in a separate process, so that its memory is released afterwards.

Reports progress on stdout as lines "RATIO WORDS", with the CPU time in seconds at ratio 1; the last line of stderr is
the reason for a failure.
"""

from __future__ import annotations

import sys
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stepscope import store
from stepscope.derive.view import SessionView
from stepscope.model.api.timeline import LeftOut, Timeline, TimelineSeries, TraceRange, Track
from stepscope.store import span_cache
from stepscope.tables.errors import StepscopeError
from stepscope.timeline import joint_steps, joint_tracks, levels, series_tracks
from stepscope.timeline.span_track import DistinctNames
from stepscope.timeline.tracks import Spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.timeline.series_tracks import SeriesTrack
    from stepscope.timeline.span_track import Say, SpanTrack

LANES_PER_TILE = 32
MOST_NS = 1 << 53
OPENED_RATIO = 0.2
"""Share of the work that reading the session takes."""


def main(arguments: Sequence[str]) -> int:
    """Build; the arguments are the session's path and the cache folder to create."""
    session, folder = (Path(argument) for argument in arguments)
    try:
        build(session, folder, _say)
        _say(1.0, f"{time.process_time():.3f}")
    except (StepscopeError, OSError, MemoryError) as error:
        sys.stderr.write(f"{error or type(error).__name__}\n")
        return 1
    return 0


def _say(ratio: float, words: str) -> None:
    sys.stdout.write(f"{ratio:.3f} {words}\n")
    sys.stdout.flush()


def build(session: Path, folder: Path, say: Say) -> None:
    """Build a session's timeline into a new folder.

    Raises:
        SessionError: the session is damaged.
        OSError: no space or no rights; nothing is left behind.
    """
    say(0.0, "opening the session")
    view = SessionView(store.open_session(session))
    parts = joint_tracks.of(view)
    names, tracks = DistinctNames(), list[Track]()
    left_out, traces = list[LeftOut](), list[TraceRange]()
    deep = 0
    with span_cache.Writer(folder) as writer:
        for number, part in enumerate(parts):
            spans = Spans(part.view, _progress(say, number, len(parts)), names)
            for track in chain(spans.of_processes(), spans.of_traces()):
                made, deeper = _add(writer, part.placed(track))
                deep += deeper
                tracks.append(made)
            for linked in spans.linked:
                writer.add_links(*linked.placed())
            left_out += [LeftOut(what=part.group(left.what), count=left.count) for left in spans.left_out]
            traces += [part.placed_trace(trace) for trace in spans.traces]
        for track in chain(joint_tracks.lost(parts, names), joint_steps.tracks(parts, names)):
            tracks.append(_add(writer, track)[0])
        resources = joint_tracks.links(parts)
        resources += [part.placed_series(one) for part in parts for one in series_tracks.tracks(part.view.session)]
        series = tuple(_add_series(writer, track) for track in resources)
        more = len(view.session.peers.members) - len(parts)
        if more > 0:
            left_out.append(LeftOut(what="members of the job", count=more))
        if deep:
            left_out.append(LeftOut(what=f"spans nested in more than {levels.MAX_LANES} others", count=deep))
        ended = view.session.manifest.ended_ns
        steps = view.steps
        writer.finish(
            Timeline(
                state="ready",
                progress_ratio=1.0,
                begin_ns=min([0, *(track.begin_ns for track in tracks)]),
                end_ns=max(
                    [1, ended, *(track.end_ns for track in tracks), *(int(track.held.end[-1]) for track in resources)]
                ),
                lanes_per_tile=LANES_PER_TILE,
                steps_worker=steps.worker.info.key if steps is not None else "",
            ),
            tuple(names.items),
            tracks=tuple(tracks),
            series=series,
            left_out=tuple(left_out),
            traces=tuple(traces),
        )


def _progress(say: Say, number: int, parts: int) -> Say:
    """Reports the progress of one of several parts."""
    return lambda ratio, words: say(OPENED_RATIO + (1 - OPENED_RATIO) * (number + ratio) / parts, words)


def _add(writer: span_cache.Writer, track: SpanTrack) -> tuple[Track, int]:
    """Write a track's lanes; return the number of spans nested too deep."""
    first = writer.lanes
    before = writer.spans
    begin = np.clip(track.start, -MOST_NS, MOST_NS)  # of damaged or hostile files: sums must stay numbers
    stop = begin + np.clip(track.dur, 0, MOST_NS)
    lanes, deeper = levels.by_depth(begin, stop - begin)
    for rows in lanes:
        start, end = begin[rows], stop[rows]
        name = track.name[rows].astype(np.int32, copy=False)
        marks = levels.single(start, end, name)
        lane = writer.add({"start": start, "end": end, "name": name})
        if track.linked is not None:
            track.linked.place(lane, track.first_event + rows)
        for exponent, reduced in levels.levels(marks):
            writer.add_level(lane, exponent, reduced.columns())
    made = Track(
        key=track.key,
        group=track.group,
        title=track.title,
        kind=track.kind,
        first_lane=first,
        lanes=writer.lanes - first,
        spans=writer.spans - before,
        begin_ns=int(begin.min()) if len(begin) else 0,
        end_ns=int(stop.max()) if len(stop) else 0,
        worker=track.worker,
        trace=track.trace,
        bound_ns=track.bound_ns,
    )
    return made, deeper


def _add_series(writer: span_cache.Writer, track: SeriesTrack) -> TimelineSeries:
    held = track.held
    writer.add_series(span_cache.SeriesColumns(held.start, held.end, held.value))
    return TimelineSeries(
        key=track.key,
        group=track.group,
        title=track.title,
        unit=track.unit,
        about=track.about,
        samples=len(held),
        most=float(held.value.max()),
    )
