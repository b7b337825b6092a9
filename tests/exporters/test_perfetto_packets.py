"""Packets in columns are what the official classes read: every span, argument, flow and value, to the nanosecond."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
from tests.exporters.perfetto_files import Slice, parse

from stepscope.exporters import perfetto_packets
from stepscope.exporters.perfetto_packets import Arg, Ends, PacketWriter, SpanLabel, Spans


def nested(count: int, seed: int) -> list[tuple[int, int]]:
    """Spans that nest, with equal starts, equal ends and moments among them."""
    rng = random.Random(seed)
    found: list[tuple[int, int]] = []

    def fill(low: int, high: int, depth: int) -> None:
        at = low
        while at < high and len(found) < count:
            end = rng.choice([at, high, min(high, at + rng.randrange(1, 2 + (high - low) // 2))])
            found.append((at, end))
            if end > at and depth < 6:
                fill(at, end, depth + 1)
            at = end + rng.choice([0, 0, 1, 40])

    begin = 0
    while len(found) < count:
        fill(begin, begin + (1 << rng.randrange(4, 45)), 0)
        begin = max(end for _, end in found)
    return sorted(found[:count], key=lambda one: (one[0], -one[1]))


@pytest.mark.parametrize("block", [1, 3, 1 << 15])
def test_spans_are_read_back(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of any size, with arguments of each kind and several flows at one span."""
    monkeypatch.setattr(perfetto_packets, "BLOCK", block)
    times = nested(300, seed=block)
    start, end = (np.array(side, np.int64) for side in zip(*times, strict=True))
    names = np.arange(300) % 7
    words = [
        SpanLabel(name=f"op {i} \u00e9", category="op" if i else "", notes={"source": f"a.py:{i}"}) for i in range(7)
    ]
    some, few = np.arange(0, 300, 3), np.arange(5, 300, 50)
    args = (
        Arg(name="bytes", rows=some, values=some * (1 << 40) - 5),
        Arg(name="ratio", rows=few, values=few / 7),
        Arg(name="shape", rows=few, values=few % 2, texts=("[1,2]", "[]")),
        Arg(name="ratio", rows=few + 1, values=few + 1),
    )
    flows = (
        Ends(rows=np.array([4, 4, 9]), ids=np.array([1, 2, 1 << 40]), out=True),
        Ends(rows=np.array([7]), ids=np.array([1]), out=False),
    )
    stream = io.BytesIO()
    writer = PacketWriter(stream)
    track = writer.track("ops", writer.group("device", 0, 1), 2)
    writer.add_spans(track, Spans(start=start, end=end, name=names, words=words, args=args, flows=flows))
    read = parse(stream.getvalue())
    expected = [
        Slice(name=words[i % 7].name, category=words[i % 7].category, start=begin, dur=stop - begin)
        for i, (begin, stop) in enumerate(times)
    ]
    for i, one in enumerate(expected):
        one.args["source"] = f"a.py:{i % 7}"
        if i % 3 == 0:
            one.args["bytes"] = i * (1 << 40) - 5
        if i % 50 == 5:
            one.args |= {"ratio": i / 7, "shape": ["[1,2]", "[]"][i % 2]}
        if i % 50 == 6:
            one.args["ratio"] = i
    expected[4].begins, expected[9].begins, expected[7].ends = [1, 2], [1 << 40], [1]
    assert read.slices[track] == expected
    assert read.title(track) == "device > ops"


def test_threads_counters_and_the_clock_are_read_back() -> None:
    """A thread names its process; a counter has its unit and exact values; a time of the day is given."""
    stream = io.BytesIO()
    writer = PacketWriter(stream)
    writer.clock(0, 1_800_000_000_123_456_789)
    process = writer.process(77, "python train.py", 1)
    thread = writer.thread(77, 78, "main thread (78)")
    counter = writer.counter("memory", "bytes", process, 3)
    other = writer.counter("network in", "bytes/s", process, 4)
    writer.add_values(counter, np.array([0, 5, 1 << 50]), np.array([1.5, 1e300, 0.0]))
    read = parse(stream.getvalue())
    assert read.clocks == {6: 0, 1: 1_800_000_000_123_456_789}
    assert (read.tracks[thread].thread.pid, read.tracks[thread].thread.tid) == (77, 78)
    assert (read.tracks[process].process.pid, read.title(counter)) == (77, "python train.py > memory")
    assert (read.tracks[counter].counter.unit, read.tracks[other].counter.unit_name) == (3, "bytes/s")
    assert read.values[counter] == [(0, 1.5), (5, 1e300), (1 << 50, 0.0)]
