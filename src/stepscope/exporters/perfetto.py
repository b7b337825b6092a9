"""A session's timeline as a Perfetto trace: its tracks of spans by process, thread and device, its counters, its flows.

Source: docs/exporting.md says what the format cannot hold.
"""

from __future__ import annotations

from itertools import chain
from typing import IO, TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.derive.optrace.host import event_nesting
from stepscope.exporters.event_args import EventArgs
from stepscope.exporters.flow_ends import FlowEnds
from stepscope.exporters.perfetto_packets import Arg, PacketWriter, SpanLabel, Spans
from stepscope.exporters.ranges import inside
from stepscope.timeline import joint_steps, joint_tracks, levels, series_tracks
from stepscope.timeline.span_track import DistinctNames
from stepscope.timeline.tracks import Spans as SessionTracks

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView
    from stepscope.exporters.ranges import Range
    from stepscope.model.api.timeline import SpanName
    from stepscope.tables.optrace import I32
    from stepscope.tables.records import I64
    from stepscope.timeline.joint_tracks import ShownSession
    from stepscope.timeline.series_tracks import SeriesTrack
    from stepscope.timeline.span_track import SpanTrack

_MOST_NS = 1 << 53


class TraceContents(Struct, kw_only=True):
    """What a trace holds."""

    tracks: int = 0
    spans: int = 0
    counters: int = 0
    flows: int = 0
    left_out: list[str] = field(default_factory=list)
    """What of the timeline it does not hold, in words."""


def write(view: SessionView, stream: IO[bytes], within: Range | None) -> TraceContents:
    """Write a session; of a range, the spans that lie in it at least partly, whole.

    Raises:
        OSError: no space.
        SessionError: the session is damaged.
    """
    parts = joint_tracks.of(view)
    made = _Trace(stream, parts, within)
    made.writer.clock(made.base_ns, view.session.manifest.started_unix_ns)
    for part in parts:
        spans = SessionTracks(part.view, lambda _ratio, _doing: None, made.names)
        for track in chain(spans.of_processes(), spans.of_traces()):
            made.add(part.placed(track), part)
        made.written.left_out += [f"{one.count:,} {part.group(one.what)}" for one in spans.left_out]
    for track in chain(joint_tracks.lost(parts, made.names), joint_steps.tracks(parts, made.names)):
        made.add(track, parts[0])
    for series in joint_tracks.links(parts):
        made.add_series(series)
    for part in parts:
        for series in series_tracks.tracks(part.view.session):
            made.add_series(part.placed_series(series))
    made.finish()
    return made.written


class _Trace:
    """A trace in the making: its groups, and what was written."""

    def __init__(self, stream: IO[bytes], parts: list[ShownSession], within: Range | None) -> None:
        self.writer = PacketWriter(stream)
        self.names = DistinctNames()
        self.written = TraceContents()
        self.base_ns = max(0, *(-int(part.times(np.zeros(1, np.int64))[0]) for part in parts))
        """What is added to times: members may have begun before the first one's session."""
        self._within = within
        self._groups: dict[str, int] = {}
        self._processes: dict[str, int] = {}
        self._pids: set[int] = set()
        self._flows: dict[int, FlowEnds] = {}
        self._args: EventArgs | None = None
        self._rank = 0
        self._cut = 0

    def add(self, track: SpanTrack, part: ShownSession) -> None:
        """Write a track, if any of it lies in the range."""
        start = np.clip(track.start, -_MOST_NS, _MOST_NS)
        end = start + np.clip(track.dur, 0, _MOST_NS)
        rows = inside(start, end, self._within)
        if not len(rows):
            return
        self._cut += int((start[rows] + self.base_ns < 0).sum())
        start, end = (np.maximum(0, side[rows] + self.base_ns) for side in (start, end))
        self._rank += 1
        lanes = [np.arange(len(rows))]
        if not _nests(start, end):
            lanes, deeper = levels.by_depth(start, end - start)
            if deeper:
                self.written.left_out.append(f"{deeper:,} spans that overlap more than {levels.MAX_LANES} others")
        for lane in lanes:
            number = self._track(track, part, alone=len(lanes) == 1)
            self._add_lane(number, track, part, (rows[lane], start[lane], end[lane]))
        self.written.tracks += 1

    def _add_lane(self, number: int, track: SpanTrack, part: ShownSession, lane: tuple[I64, I64, I64]) -> None:
        rows, start, end = lane
        used, name = distinct(track.name[rows])
        events = track.first_event + rows
        flows = self._flows_of(track, part)
        spans = Spans(
            start=start,
            end=end,
            name=name,
            words=[_words(self.names.items[which]) for which in used.tolist()],
            args=self._args_of(track, events),
            flows=flows.at(events) if flows is not None else (),
        )
        self.writer.add_spans(number, spans)
        self.written.spans += len(spans)

    def _track(self, track: SpanTrack, part: ShownSession, *, alone: bool) -> int:
        info = next((one.info for one in part.view.session.workers if one.info.key == track.worker), None)
        pid = info.pid if info is not None and not part.label else 0
        group = self._group(track, pid)
        if track.native and alone and track.worker in self._processes:
            return self.writer.thread(pid, track.native, track.title)
        return self.writer.track(track.title, group, self._rank)

    def _group(self, track: SpanTrack, pid: int) -> int:
        """The group of a track: a process, what was traced in one, or something else."""
        name = track.group
        if name not in self._groups:
            if pid and pid not in self._pids and not track.trace:
                self._pids.add(pid)
                number = self.writer.process(pid, name.removeprefix(f"process {pid} "), self._rank)
                self._processes[track.worker] = number
            else:
                around = self._processes.get(track.worker, 0) if track.trace else 0
                number = self.writer.group(name, around, self._rank)
            self._groups[name] = number
        return self._groups[name]

    def _args_of(self, track: SpanTrack, events: I64) -> tuple[Arg, ...]:
        if track.optrace is None:
            return ()
        if self._args is None or self._args.trace is not track.optrace:
            self._args = EventArgs(track.optrace)
        return self._args.of(events)

    def _flows_of(self, track: SpanTrack, part: ShownSession) -> FlowEnds | None:
        if track.linked is None:
            return None
        key = id(track.linked)
        if key not in self._flows:
            trace, shown = track.optrace, None
            if trace is not None and self._within is not None:
                shown = np.zeros(len(trace.events), np.bool_)
                begin = part.times(trace.events.start_ns)
                shown[inside(begin, begin + trace.events.dur_ns, self._within)] = True
            self._flows[key] = FlowEnds(track.linked.links, trace, 1 + self.written.flows, shown)
            self.written.flows += len(self._flows[key])
        return self._flows[key]

    def add_series(self, track: SeriesTrack) -> None:
        """Write a counter."""
        held = track.held
        rows = inside(held.start, held.end, self._within)
        if not len(rows):
            return
        if track.group not in self._groups:
            self._groups[track.group] = self.writer.group(track.group, 0, self._rank)
        self._rank += 1
        number = self.writer.counter(track.title, track.unit, self._groups[track.group], self._rank)
        self.writer.add_values(number, np.maximum(0, held.start[rows] + self.base_ns), held.value[rows])
        self.written.counters += 1

    def finish(self) -> None:
        """Say what was changed."""
        if self._cut:
            self.written.left_out.append(f"the part before the session's start, of {self._cut:,} spans")


def distinct(numbers: I32) -> tuple[I64, I64]:
    """As ``np.unique`` with the inverse, of small numbers: without a sort."""
    used = np.flatnonzero(np.bincount(numbers))
    place = np.zeros(int(used[-1]) + 1, np.int64)
    place[used] = np.arange(len(used))
    return used, place[numbers]


def _nests(start: I64, end: I64) -> bool:
    """Whether no span overlaps another without lying in it."""
    parent = event_nesting.parents(start, end - start)
    inner = parent >= 0
    return bool((end[inner] <= end[parent[inner]]).all())


def _words(name: SpanName) -> SpanLabel:
    notes: dict[str, str] = {}
    if name.file:
        notes["source"] = f"{name.file}:{name.line}"
    if name.function:
        notes["function"] = name.function
    if name.makes:
        notes["makes"] = name.makes
    return SpanLabel(name=name.text, category=name.category, notes=notes)
