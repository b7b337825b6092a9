"""The parts of a timeline: the session itself, or the members of a joint one on the clock of the first.

A member's times are moved by what is known of its clock, and its groups say by how much they may be off; where nothing
is known, the wall clocks of both hosts are all there is. Links between members are TCP connections whose other end is
one of another member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.cluster import members as of_job
from stepscope.derive.machine import tcp_links
from stepscope.derive.view import SessionView
from stepscope.tables.units import format_ns
from stepscope.timeline import link_tracks, series_tracks
from stepscope.timeline.link_tracks import NETWORK
from stepscope.timeline.series_levels import Held
from stepscope.timeline.series_tracks import SeriesTrack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.derive.cluster.clock import ClockOffset
    from stepscope.model.api.timeline import TraceRange
    from stepscope.model.session.session import Manifest, StoredMember
    from stepscope.tables.network_tables import TcpTable
    from stepscope.tables.records import I64
    from stepscope.timeline.span_track import DistinctNames, SpanTrack

MOST_MEMBERS = 16
"""Most members that are drawn."""
MOST_LINKS = 32
"""Most links between members that are drawn, those that carried most."""


class ShownSession(Struct, frozen=True, kw_only=True):
    """A session on the timeline."""

    view: SessionView
    label: str = ""
    """Tasks of a member; "": the session itself."""
    key: str = ""
    """Prefix of its tracks' keys."""
    off: str = ""
    """The same in words, for the titles of its groups."""
    bound_ns: int | None = 0
    """By how much its times may be off; None: clocks were not compared."""
    clock: ClockOffset | None = None
    first_ns: int = 0
    """Start of its session on its monotonic clock; 0: that is not used."""
    shift_ns: int = 0
    """What is added to its times, after its clock's offset."""

    def times(self, times_ns: I64) -> I64:
        """Times of the session on the timeline."""
        if self.clock is None:
            return times_ns + self.shift_ns
        moved: I64 = self.clock.aligned(times_ns + self.first_ns).astype(np.int64) + self.shift_ns
        return moved

    def group(self, name: str) -> str:
        """A group of its tracks."""
        return f"{self.label}{self.off}: {name}" if self.label else name

    def placed(self, track: SpanTrack) -> SpanTrack:
        """A track on the timeline."""
        if not self.label:
            return track
        group = track.group if track.group == NETWORK else self.group(track.group)
        return replace(
            track,
            key=self.key + track.key,
            group=group,
            start=self.times(track.start),
            bound_ns=self.bound_ns,
            trace=self.key + track.trace if track.trace else "",
        )

    def placed_series(self, track: SeriesTrack) -> SeriesTrack:
        """A series on the timeline."""
        if not self.label:
            return track
        held = self._moved(track.held)
        return replace(track, key=self.key + track.key, group=self.group(track.group), held=held)

    def placed_trace(self, trace: TraceRange) -> TraceRange:
        """A trace's range on the timeline."""
        if not self.label:
            return trace
        begin, end = self.times(np.array([trace.begin_ns, trace.end_ns], np.int64)).tolist()
        return type(trace)(ref="", trace=self.key + trace.trace, begin_ns=begin, end_ns=end)

    def rates(self, rows: TcpTable, counter: I64) -> Held:
        """Growth a second of a counter, on the timeline."""
        return self._moved(series_tracks.rates(rows.at_ns, counter))

    def _moved(self, held: Held) -> Held:
        return Held(self.times(held.start), self.times(held.end), held.value)


def of(view: SessionView) -> list[ShownSession]:
    """The session itself, or the members of a joint one; of many, the first."""
    stored = view.session.peers.members
    if not stored:
        return [ShownSession(view=view)]
    everyone = view.get(of_job.build)
    clocks = of_job.clocks(everyone)
    by_folder: dict[str, tuple[list[str], ClockOffset | None]] = {}
    for member, clock in zip(everyone, clocks, strict=True):
        for folder in dict.fromkeys((member.folder, *member.folders)):
            by_folder.setdefault(folder, ([], clock if folder == member.folder else None))[0].append(member.name)
    order = {folder: index for index, folder in enumerate(by_folder)}
    shown = sorted(stored, key=lambda one: order.get(one.folder, len(order)))[:MOST_MEMBERS]
    reference: Manifest | None = None
    parts = []
    for index, one in enumerate(shown):
        names, clock = by_folder.get(one.folder, ([one.name], None))
        part = _part(one, f"m{index}.", ", ".join(names), clock, reference)
        reference = reference or part.view.session.manifest
        parts.append(part)
    return parts


def _part(
    stored: StoredMember, key: str, label: str, clock: ClockOffset | None, reference: Manifest | None
) -> ShownSession:
    view = SessionView(stored.load())
    manifest = view.session.manifest
    first = reference or manifest
    if clock is None:
        shift, off = manifest.started_unix_ns - first.started_unix_ns, " (clocks not compared)" if reference else ""
        return ShownSession(view=view, label=label, key=key, off=off, bound_ns=None if reference else 0, shift_ns=shift)
    bound = round(clock.widest_ns)
    return ShownSession(
        view=view,
        label=label,
        key=key,
        off=f" (clock \u00b1 {format_ns(bound)})" if bound else "",
        bound_ns=bound,
        clock=clock,
        first_ns=manifest.origin_monotonic_ns,
        shift_ns=-first.origin_monotonic_ns,
    )


def links(parts: Sequence[ShownSession]) -> list[SeriesTrack]:
    """What went over each link from one member to another, and what of it was sent again."""
    found: dict[tuple[str, str], list[tuple[ShownSession, TcpTable]]] = {}
    tables = _connections(parts)
    whose = _owners(tables)
    for part, table in tables:
        for (_, there), rows in table.items():
            other = whose.get(_end(part, there), "")
            if part.label and other and other != part.label:
                found.setdefault((part.label, other), []).append((part, rows))
    made = [track for (source, target), rows in found.items() for track in _link(source, target, rows)]
    return sorted(made, key=lambda track: -float(track.held.value.sum()))[:MOST_LINKS]


def lost(parts: Sequence[ShownSession], names: DistinctNames) -> Iterator[SpanTrack]:
    """What was sent again or dropped on the way from one member to another; of a session alone, to any host."""
    whose = _owners(_connections(parts))
    for part in parts:

        def title(here: str, there: str, part: ShownSession = part) -> str:
            if not part.label:
                return f"to {there}"
            other = whose.get(_end(part, there), "")
            return f"{part.label} to {other}" if other not in ("", part.label) and here else ""

        group = NETWORK if part.label else series_tracks.group_of(part.view.session)
        for track in link_tracks.packets(part.view.session, names, title, "lost-", group):
            yield part.placed(track)


def _connections(parts: Sequence[ShownSession]) -> list[tuple[ShownSession, dict[tuple[str, str], TcpTable]]]:
    return [(part, tcp_links.by_connection(part.view.session, part.view.session.peers.tcp)) for part in parts]


def _owners(tables: Sequence[tuple[ShownSession, dict[tuple[str, str], TcpTable]]]) -> dict[tuple[str, str], str]:
    """Members by ends of connections."""
    return {_end(part, here): part.label for part, table in tables for here, _ in table}


def _end(part: ShownSession, address: str) -> tuple[str, str]:
    """An end of a connection; that of a loopback device is another one on each host."""
    inside = tcp_links.is_loopback(address.rpartition(":")[0])
    return part.view.session.manifest.host.boot_id if inside else "", address


def _link(source: str, target: str, rows: Sequence[tuple[ShownSession, TcpTable]]) -> Iterator[SeriesTrack]:
    what = (("sent", "", "acknowledged bytes"), ("again", ", again", "bytes that were sent again"))
    for name, more, about in what:
        held = series_tracks.added(
            [part.rates(one, one.acked_bytes if name == "sent" else one.retrans_bytes) for part, one in rows]
        )
        if len(held) and held.value.max() > 0:
            yield SeriesTrack(
                key=f"link-{source}-{target}-{name}",
                group=NETWORK,
                title=f"{source} to {target}{more}",
                unit="bytes/s",
                about=f"{about} from {source} to {target}, over {len(rows)} connections",
                held=series_tracks.ordered(held),
            )
