"""Perfetto traces as the official classes parse them: spans of each track, put together from begins and ends."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest

protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs the package perfetto")

Foreign = Any
"""Messages of the package's generated classes, and values in them."""


@dataclass(kw_only=True)
class Slice:
    """A span of a track, with what is interned put in."""

    name: str
    category: str
    start: int
    dur: int = -1
    args: dict[str, Foreign] = field(default_factory=dict)
    begins: list[int] = field(default_factory=list)
    """Flows."""
    ends: list[int] = field(default_factory=list)


@dataclass
class Parsed:
    """A trace by track."""

    tracks: dict[int, Foreign] = field(default_factory=dict)
    """Descriptors."""
    slices: dict[int, list[Slice]] = field(default_factory=lambda: defaultdict(list))
    """By start, the outer first."""
    values: dict[int, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    clocks: dict[int, int] = field(default_factory=dict)

    def title(self, track: int) -> str:
        """Its name with those around it."""
        about = self.tracks[track]
        own = about.name or about.thread.thread_name or about.process.process_name
        return f"{self.title(about.parent_uuid)} > {own}" if about.parent_uuid else own

    def by_title(self) -> dict[str, list[Slice]]:
        """All spans; those of lanes of one track together, by start."""
        found: dict[str, list[Slice]] = defaultdict(list)
        for track, slices in self.slices.items():
            found[self.title(track)] += slices
        return found


def parse(data: bytes) -> Parsed:
    """Parse a trace: every begin has its end, times of a sequence rise, numbers are interned before they are used."""
    trace = protos.Trace()
    trace.ParseFromString(data)
    made = Parsed()
    interned: dict[int, dict[str, dict[int, str]]] = {}
    track_of: dict[int, int] = {}
    opened: dict[int, list[Slice]] = defaultdict(list)
    latest: dict[int, int] = {}
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        if packet.HasField("track_descriptor"):
            made.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        made.clocks |= {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
        if packet.sequence_flags & protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            interned[sequence] = defaultdict(dict)
            track_of[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        for one in packet.interned_data.event_names:
            interned[sequence]["name"][one.iid] = one.name
        for one in packet.interned_data.event_categories:
            interned[sequence]["category"][one.iid] = one.name
        for one in packet.interned_data.debug_annotation_names:
            interned[sequence]["arg"][one.iid] = one.name
        for one in packet.interned_data.debug_annotation_string_values:
            interned[sequence]["text"][one.iid] = one.str.decode()
        if not packet.HasField("track_event"):
            continue
        assert packet.sequence_flags & protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        assert packet.timestamp >= latest.get(sequence, 0)
        latest[sequence] = packet.timestamp
        _add(made, packet, track_of[sequence], interned[sequence], opened)
    assert not any(opened.values())
    return made


def _add(made: Parsed, packet: Foreign, track: int, known: dict[str, dict[int, str]], opened: Foreign) -> None:
    event = packet.track_event
    assert track in made.tracks
    if event.type == protos.TrackEvent.TYPE_COUNTER:
        made.values[track].append((packet.timestamp, event.double_counter_value))
        return
    if event.type == protos.TrackEvent.TYPE_SLICE_END:
        one = opened[track].pop()
        one.dur = packet.timestamp - one.start
        return
    one = Slice(
        name=known["name"][event.name_iid],
        category=known["category"][event.category_iids[0]] if event.category_iids else "",
        start=packet.timestamp,
        args={known["arg"][arg.name_iid]: _value(arg, known) for arg in event.debug_annotations},
        begins=list(event.flow_ids),
        ends=list(event.terminating_flow_ids),
    )
    made.slices[track].append(one)
    if event.type == protos.TrackEvent.TYPE_INSTANT:
        one.dur = 0
    else:
        opened[track].append(one)


def _value(arg: Foreign, known: dict[str, dict[int, str]]) -> Foreign:
    kind = arg.WhichOneof("value")
    return known["text"][arg.string_value_iid] if kind == "string_value_iid" else getattr(arg, kind)
