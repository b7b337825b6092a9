"""The timeline of a session: tracks of spans, drawn in lanes, and what can be asked of them (docs/rest.md).

A track is what was observed: a thread, a stream of a device, the steps. A lane is one row of it: spans of one depth,
which never overlap. Additions only.
"""

from __future__ import annotations

import msgspec


class Track(msgspec.Struct, frozen=True, kw_only=True):
    """One thread, stream or series of steps."""

    key: str
    """Its name in addresses."""
    group: str
    """What it belongs to: a process, a device of a capture."""
    title: str
    kind: str
    """steps | thread | stream | derived: its times repeat those of other tracks | rests"""
    first_lane: int
    """Number of its first lane."""
    lanes: int
    """How deep its spans nest."""
    spans: int
    begin_ns: int
    end_ns: int
    worker: str = ""
    """Key of the process that it is of; empty: of none that was measured."""
    trace: str = ""
    """Name of the op trace that it is from; empty: from records."""


class TimelineSeries(msgspec.Struct, frozen=True, kw_only=True):
    """What a resource of a machine did over time."""

    key: str
    """Its name in addresses."""
    group: str
    """The machine that it is of."""
    title: str
    unit: str
    """cores | bytes | bytes/s | ratio"""
    about: str
    """What is counted in it."""
    samples: int
    """Values that were sampled."""
    most: float
    """The largest of them."""


class SpanName(msgspec.Struct, frozen=True, kw_only=True):
    """What spans are called, and where in the user's program that is."""

    text: str
    category: str
    """What colours it: input, call, callbacks, saving, ..."""
    file: str = ""
    line: int = 0
    function: str = ""
    ref: str = ""
    """By which a finding's evidence names it, in its process."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """What the timeline does not show."""

    what: str
    count: int


class TraceRange(msgspec.Struct, frozen=True, kw_only=True):
    """When an op trace was taken."""

    ref: str
    """By which a finding's evidence names it."""
    trace: str
    begin_ns: int
    end_ns: int


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The timeline as a whole. While it is ``building`` there is nothing else to ask for."""

    state: str
    """building | ready | failed"""
    progress_ratio: float = 0.0
    doing: str = ""
    """What is being built, or why it failed."""
    build: str = ""
    """Its name in other requests: another one means other spans."""
    renewing: bool = False
    """The session has grown since; a newer one is being built."""
    begin_ns: int = 0
    end_ns: int = 0
    spans: int = 0
    names: int = 0
    lanes_per_tile: int = 0
    tracks: tuple[Track, ...] = ()
    series: tuple[TimelineSeries, ...] = ()
    """In the order in which tiles of curves count through them."""
    left_out: tuple[LeftOut, ...] = ()
    steps_worker: str = ""
    """Key of the process that makes the steps."""
    traces: tuple[TraceRange, ...] = ()


class SpanNames(msgspec.Struct, frozen=True, kw_only=True):
    """A page of names; tiles count through them."""

    items: tuple[SpanName, ...]
    total: int
    offset: int
    next_offset: int | None


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One span. Times are nanoseconds since session start."""

    lane: int
    row: int
    """Its number in its lane."""
    name: int
    start_ns: int
    dur_ns: int


class SpanLink(msgspec.Struct, frozen=True, kw_only=True):
    """A span that led to another one, or that another one led to, as the profiler wrote it."""

    out: bool
    """From the span that was asked for to this one; else the other way around."""
    kind: str
    """launch: a call of the host to work on a device | flow: what was handed over to where it was taken up"""
    span: Span
    text: str
    """Of its name."""


class SpanDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One span and what is beside it."""

    span: Span
    name: SpanName
    track: str
    """Key of its track."""
    depth: int
    spans: int
    """How many are in its lane."""
    previous_ns: int | None
    """Start of the one before it in its lane."""
    next_ns: int | None
    parent_ns: int | None
    """Start of the span that encloses it, in the lane above."""
    child_ns: int | None
    """Start of the first span in it, in the lane below."""
    step: int | None
    """Number of the step that it begins in."""
    links: tuple[SpanLink, ...] = ()
    """The nearest in time, of each direction at most forty."""
    links_total: int = 0


class SpanHits(msgspec.Struct, frozen=True, kw_only=True):
    """Spans whose names hold what was sought, by time."""

    items: tuple[Span, ...]
    names: dict[int, str]
    """Texts of their names."""
    total: int
    """All of the session."""
    offset: int
    next_offset: int | None


class SpanStatistic(msgspec.Struct, frozen=True, kw_only=True):
    """Spans of one name within a range."""

    name: int
    text: str
    category: str
    count: int
    total_ns: int
    """Time within the range. Spans nest: totals of several names may hold each other."""
    mean_ns: int
    max_ns: int


class SpanStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What happened within a range, by total time."""

    items: tuple[SpanStatistic, ...]
    total: int
    """Names in the range."""
    spans: int
    offset: int
    next_offset: int | None


class SeriesRange(msgspec.Struct, frozen=True, kw_only=True):
    """One series within a range."""

    key: str
    low: float
    mean: float
    """Over the time for which values are known."""
    high: float
    samples: int


class SeriesRanges(msgspec.Struct, frozen=True, kw_only=True):
    """The series that have values within a range."""

    items: tuple[SeriesRange, ...]


class EvidencePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where on the timeline a finding's evidence is."""

    found: bool
    from_ns: int = 0
    to_ns: int = 0
    lane: int | None = None
    start_ns: int | None = None
    """Of the span, where it is one."""
