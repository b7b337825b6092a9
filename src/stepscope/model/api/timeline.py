"""The timeline of a session: tracks of spans, drawn in lanes, and queries about them (docs/rest.md).

A track is an observed object: a thread, a stream of a device, the steps. A lane is one of its rows: spans of one depth,
which never overlap. Additions only.
"""

from __future__ import annotations

import msgspec


class Track(msgspec.Struct, frozen=True, kw_only=True):
    """One thread, stream or series of steps."""

    key: str
    """Key in addresses."""
    group: str
    """Group of the track: a process, or a device of a capture."""
    title: str
    kind: str
    """Kind: steps | thread | stream | derived: its times repeat those of other tracks | rests"""
    first_lane: int
    """Number of its first lane."""
    lanes: int
    """Number of lanes, the depth to which its spans nest."""
    spans: int
    begin_ns: int
    end_ns: int
    worker: str = ""
    """Key of its process; empty if the process was not measured."""
    trace: str = ""
    """Op trace that it comes from; empty: from records."""
    bound_ns: int | None = 0
    """By how much its times may be off against those of the first member of a joint session; null: unknown."""


class TimelineSeries(msgspec.Struct, frozen=True, kw_only=True):
    """Activity of a machine's resource over time."""

    key: str
    """Key in addresses."""
    group: str
    """Machine of the series."""
    title: str
    unit: str
    """Unit: cores | bytes | bytes/s | ratio"""
    about: str
    """Description of what is counted."""
    samples: int
    """Number of sampled values."""
    most: float
    """Largest value."""


class SpanName(msgspec.Struct, frozen=True, kw_only=True):
    """Name of spans, with its place in the user's program."""

    text: str
    category: str
    """Category, which decides the colour: input, call, callbacks, saving, ..."""
    file: str = ""
    line: int = 0
    function: str = ""
    ref: str = ""
    """Reference used by a finding's evidence, in its process."""
    makes: str = ""
    """Types and shapes of what an op makes, as its graph has them: float32[32,64]; several with ";" between them."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Content that the timeline does not show."""

    what: str
    count: int


class TraceRange(msgspec.Struct, frozen=True, kw_only=True):
    """Time range of an op trace."""

    ref: str
    """Reference used by a finding's evidence."""
    trace: str
    begin_ns: int
    end_ns: int


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The whole timeline. While it is ``building`` nothing else can be requested."""

    state: str
    """State: building | ready | failed"""
    progress_ratio: float = 0.0
    doing: str = ""
    """Current step of the build, or the reason why it failed."""
    build: str = ""
    """Name of the build in other requests: a different one means different spans."""
    renewing: bool = False
    """Flag: the session has grown since; a newer timeline is being built."""
    begin_ns: int = 0
    end_ns: int = 0
    spans: int = 0
    names: int = 0
    lanes_per_tile: int = 0
    tracks: tuple[Track, ...] = ()
    series: tuple[TimelineSeries, ...] = ()
    """Series in the order that tiles of curves use."""
    left_out: tuple[LeftOut, ...] = ()
    steps_worker: str = ""
    """Key of the process that makes the steps."""
    traces: tuple[TraceRange, ...] = ()


class SpanNames(msgspec.Struct, frozen=True, kw_only=True):
    """A page of names; tiles contain their indices."""

    items: tuple[SpanName, ...]
    total: int
    offset: int
    next_offset: int | None


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A span. Times are nanoseconds since session start."""

    lane: int
    row: int
    """Number of the span in its lane."""
    name: int
    start_ns: int
    dur_ns: int


class SpanLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link between two spans, as written by the profiler, or by the graph of their ops."""

    out: bool
    """Direction: true from the requested span to this one, else the reverse."""
    kind: str
    """Kind: launch: a call of the host to work on a device | flow: from the producer of something to its consumer |
    transfer: from the op that made a tensor to its transfer to another task, and on to where it came | data: from the
    op that made a tensor to an op that takes it, by the graph"""
    span: Span
    text: str
    """Text of its name."""


class SpanPart(msgspec.Struct, frozen=True, kw_only=True):
    """Time of the parts of one name in a step."""

    text: str
    category: str
    ns: int


class SpanDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A span and its surroundings."""

    span: Span
    name: SpanName
    track: str
    """Key of its track."""
    depth: int
    spans: int
    """Number of spans in its lane."""
    previous_ns: int | None
    """Start of the previous span in its lane."""
    next_ns: int | None
    parent_ns: int | None
    """Start of the enclosing span, in the lane above."""
    child_ns: int | None
    """Start of the first span in it, in the lane below."""
    step: int | None
    """Number of the step in which it begins."""
    step_parts: tuple[SpanPart, ...] = ()
    """How that step divides, the largest part first; empty for steps of the warm-up and outside the steps."""
    links: tuple[SpanLink, ...] = ()
    """Links nearest in time, at most forty in each direction."""
    links_total: int = 0


class SpanHits(msgspec.Struct, frozen=True, kw_only=True):
    """Spans whose names contain the searched text, in time order."""

    items: tuple[Span, ...]
    names: dict[int, str]
    """Texts of their names."""
    total: int
    """Number of hits in the whole session."""
    offset: int
    next_offset: int | None


class SpanStatistic(msgspec.Struct, frozen=True, kw_only=True):
    """Spans of one name within a range."""

    name: int
    text: str
    category: str
    count: int
    total_ns: int
    """Time within the range. Spans nest: the totals of several names may overlap."""
    mean_ns: int
    max_ns: int


class SpanStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Activity within a range, by total time."""

    items: tuple[SpanStatistic, ...]
    total: int
    """Number of names in the range."""
    spans: int
    offset: int
    next_offset: int | None


class SeriesRange(msgspec.Struct, frozen=True, kw_only=True):
    """One series within a range."""

    key: str
    low: float
    mean: float
    """Mean over the time for which values are known."""
    high: float
    samples: int


class SeriesRanges(msgspec.Struct, frozen=True, kw_only=True):
    """The series that have values within a range."""

    items: tuple[SeriesRange, ...]


class EvidencePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Position of a finding's evidence on the timeline."""

    found: bool
    from_ns: int = 0
    to_ns: int = 0
    lane: int | None = None
    start_ns: int | None = None
    """Start of the span, if it is one."""
