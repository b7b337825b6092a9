"""The graph of a traced step, as the page draws it: ops and groups with their places, and what they hand over.

Items are named ``g12``, a group, or ``n34``, an op; names are those of one session at one moment. Additions only.
"""

from __future__ import annotations

import msgspec


class GraphItem(msgspec.Struct, frozen=True, kw_only=True):
    """An op, or a group of ops. Places in pixels at full size; times of the step, of all ops in it."""

    id: str
    outer: str
    """The open group that it lies in; empty: none."""
    title: str
    kind: str
    """Kind: op | layer | function | loop | gradient | scope | part | begin | end"""
    about: str
    """Type of an op, class of a layer."""
    x: float
    y: float
    width: float
    height: float
    open: bool
    ops: int
    calls: int
    own_ns: int
    ratio: float
    """Share of the time of all ops."""
    path_ns: int
    """Time on the step's critical path."""


class GraphArrow(msgspec.Struct, frozen=True, kw_only=True):
    """What one item hands to another one in the same group."""

    source: str
    target: str
    points: tuple[float, ...]
    """Where it leads: x, y, x, y ..."""
    text: str
    """Type and shape of a single tensor; empty: several, or unknown."""
    tensors: int
    bytes: int
    """Size of those whose shape is known."""
    unknown: int
    """Number of those of unknown size."""
    back: bool
    """Whether it leads upwards, as the next turn of a loop."""
    path_ns: int
    """Time of the critical path in the op that it leads to; 0: the path does not lead here."""


class GraphStretch(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the critical path."""

    what: str
    """Part: ops | input pipeline | framework | Python | hand-over | wait | device gap | shorter"""
    id: str
    """The item; empty: it is no op's."""
    title: str
    ns: int
    ratio: float
    """Share of the step."""


class GraphStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step whose graph can be asked for."""

    step: int
    """Its position among the steps of the trace."""
    number: int
    """Number that the program gave it."""
    ns: int


class OpGraphView(msgspec.Struct, frozen=True, kw_only=True):
    """The graph of one step, with some groups open."""

    trace: str
    traces: tuple[str, ...]
    """Op traces that can be asked for."""
    steps: tuple[GraphStep, ...]
    """The steps nearest to the median one."""
    step: int
    begin_ns: int
    end_ns: int
    step_ns: int
    device: str
    """Device whose work is counted; empty: the host's."""
    linked: bool
    """Whether it is known what ops hand over: the graphs of the process were read."""
    ops: int
    own_ns: int
    """Time of all ops: threads run them at the same time, so it may exceed that of the step."""
    path: tuple[GraphStretch, ...]
    """Parts of the critical path, the largest first; together they are the step."""
    stretches: tuple[GraphStretch, ...]
    """The path from the step's begin to its end over what is in view: stretches of at least 0.5 % of the step, and last
    the sum of the ``shorter`` ones."""
    items: tuple[GraphItem, ...]
    """Open groups before what they hold."""
    arrows: tuple[GraphArrow, ...]
    width: float
    height: float
    open: tuple[str, ...]
    """Groups that are open."""
    left_folded: int
    """Groups that were asked for and stay folded, because there would be too much to draw."""
    layout_ms: float
    """CPU time of folding and placing."""


class GraphEnd(msgspec.Struct, frozen=True, kw_only=True):
    """An op at the other end of an arrow, or in a group."""

    id: str
    inside: tuple[str, ...]
    """Groups around it, the innermost first."""
    title: str
    about: str
    own_ns: int
    path_ns: int
    text: str = ""
    """What is handed over."""
    bytes: int = 0


class GraphDetail(msgspec.Struct, frozen=True, kw_only=True):
    """An op or a group, in full."""

    id: str
    inside: tuple[str, ...]
    title: str
    name: str
    """Full name of an op."""
    kind: str
    about: str
    ops: int
    calls: int
    own_ns: int
    ratio: float
    path_ns: int
    path_ratio: float
    """Share of the step that is spent in it on the critical path."""
    makes: str
    """Types and shapes of an op's results."""
    layer: str
    file: str
    line: int
    function: str
    track: str
    """Track of the timeline with its longest run in the step; empty: it did not run."""
    start_ns: int
    dur_ns: int
    takes: tuple[GraphEnd, ...]
    """Where what it takes comes from, the largest first, at most 40."""
    takes_total: int
    gives: tuple[GraphEnd, ...]
    gives_total: int
    longest: tuple[GraphEnd, ...]
    """The longest ops of a group."""


class GraphHits(msgspec.Struct, frozen=True, kw_only=True):
    """Ops and groups whose names hold all words, by their first begin."""

    items: tuple[GraphEnd, ...]
    """At most 500."""
    total: int
