"""Writing a Perfetto trace: our columnar writer against the package ``perfetto``, packet by packet.

The spans are those of the timeline's benchmark: steps that hold ops that hold kernels, on 100 threads, a thousand
names. Both write the same packets: a begin with an interned name and category and an end, a sequence for each track.
Each writer is a process; CPU time and the growth of peak memory count from after the imports and the making
of the first track. The package is given fewer spans, and its time is scaled by their number. What both have written is
parsed by the package's classes and compared, on a hundredth of the spans.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "export.md"
TRACKS, NAMES, OPS, KERNELS = 100, 1085, 10, 40
HEAD = """# Writing a Perfetto trace

Printed by `make bench-export PERFETTO=python-with-perfetto ARGS=--write`. {spans:,} spans, three deep, on {tracks}
threads, of {names:,} names: two packets each, a sequence for each thread, names and categories interned. CPU time and
what peak memory grew by, from after the imports; each writer in its own process, making of the spans left out.
`TraceProtoBuilder` and `StreamingTraceProtoBuilder` of the package perfetto {version} (protobuf {protobuf}, {kind}) are
given {few:,} spans, and *scaled* is their time for as many spans as ours. On {same:,} spans the bytes of ours, parsed
by the package's classes, are the packets that it makes.

| writer | spans | CPU | us a span | scaled | size | memory | ratio |
|---|---|---|---|---|---|---|---|
"""
COMMON = """
import json, resource, sys, time
import numpy as np
spans, path = int(sys.argv[1]), sys.argv[2]
TRACKS, NAMES, OPS, KERNELS = {constants}

def track(number, count):
    rng = np.random.default_rng(number)
    steps = max(1, count // (1 + OPS + OPS * KERNELS))
    kernel = rng.integers(200, 2000, steps * OPS * KERNELS)
    end = np.cumsum(kernel + 20)
    start = end - kernel
    op_start, op_end = start[::KERNELS] - 5, end[KERNELS - 1::KERNELS] + 5
    step_start, step_end = op_start[::OPS] - 5, op_end[OPS - 1::OPS] + 5
    begin = np.concatenate([step_start, op_start, start])
    stop = np.concatenate([step_end, op_end, end])
    named = [np.zeros(steps, np.int64), rng.integers(1, 85, steps * OPS), rng.integers(85, NAMES, len(start))]
    name = np.concatenate(named)
    order = np.lexsort((begin - stop, begin))
    return begin[order] + 1000, stop[order] + 1000, name[order]

texts = ["step"] + ["block_%d/op_%d" % (n // 10, n) for n in range(1, NAMES)]
kinds = ["step" if n == 0 else "op" if n < 85 else "kernel" for n in range(NAMES)]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
"""
OURS = """
from stepscope.exporters.perfetto import distinct
from stepscope.exporters.perfetto_packets import PacketWriter, Spans, SpanLabel
words = [SpanLabel(name=n, category=k) for n, k in zip(texts, kinds)]
first = track(0, spans // TRACKS)
before, began, made, total = peak(), time.process_time(), 0.0, 0
with open(path, "wb") as stream:
    writer = PacketWriter(stream)
    group = writer.process(1, "python", 1)
    for number in range(TRACKS):
        at = time.process_time()
        start, end, name = track(number, spans // TRACKS)
        made += time.process_time() - at
        used, code = distinct(name.astype(np.int32))
        writer.add_spans(
            writer.track("thread %d" % number, group, number + 1),
            Spans(start=start, end=end, name=code, words=[words[n] for n in used.tolist()]),
        )
        total += len(start)
cpu = time.process_time() - began - made
print(json.dumps({"cpu_s": cpu, "peak_kib": peak() - before, "spans": total}))
"""
THEIRS = """
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder, TraceProtoBuilder
first = track(0, spans // TRACKS)
stream = open(path, "wb")
streaming = sys.argv[3] == "stream"
builder = StreamingTraceProtoBuilder(stream) if streaming else TraceProtoBuilder()
create = builder.create_packet if streaming else builder.add_packet
write = builder.write_packet if streaming else (lambda packet: None)
before, began, made, total, ids = peak(), time.process_time(), 0.0, 0, 1
packet = create(); packet.track_descriptor.uuid = 1; packet.track_descriptor.process.pid = 1
packet.track_descriptor.process.process_name = "python"; write(packet)
for number in range(TRACKS):
    at = time.process_time()
    columns = track(number, spans // TRACKS)
    made += time.process_time() - at
    ids += 1
    packet = create(); d = packet.track_descriptor
    d.uuid, d.parent_uuid, d.name = ids, 1, "thread %d" % number
    write(packet)
    packet = create()
    packet.trusted_packet_sequence_id, packet.sequence_flags = ids, 1
    packet.trace_packet_defaults.track_event_defaults.track_uuid = ids
    name = columns[2].tolist()
    used = sorted(set(name))
    iid = {n: i for i, n in enumerate(used, 1)}
    categories = {}
    for n in used:
        one = packet.interned_data.event_names.add(); one.iid, one.name = iid[n], texts[n]
        if kinds[n] not in categories:
            categories[kinds[n]] = len(categories) + 1
            one = packet.interned_data.event_categories.add(); one.iid, one.name = categories[kinds[n]], kinds[n]
    write(packet)
    opened = []
    def close(until):
        while opened and opened[-1] <= until:
            packet = create()
            packet.timestamp, packet.trusted_packet_sequence_id, packet.sequence_flags = opened.pop(), ids, 2
            packet.track_event.type = pb.TrackEvent.TYPE_SLICE_END
            write(packet)
    for start, end, n in zip(columns[0].tolist(), columns[1].tolist(), name):
        close(start)
        packet = create()
        packet.timestamp, packet.trusted_packet_sequence_id, packet.sequence_flags = start, ids, 2
        event = packet.track_event
        event.type, event.name_iid = pb.TrackEvent.TYPE_SLICE_BEGIN, iid[n]
        event.category_iids.append(categories[kinds[n]])
        write(packet)
        opened.append(end)
    close(1 << 62)
    total += len(name)
if not streaming:
    stream.write(builder.serialize())
stream.close()
cpu = time.process_time() - began - made
import google.protobuf, importlib.metadata
from google.protobuf.internal import api_implementation as implementation
about = {"version": importlib.metadata.version("perfetto"), "protobuf": google.protobuf.__version__}
about["kind"] = implementation.Type()
print(json.dumps({"cpu_s": cpu, "peak_kib": peak() - before, "spans": total, **about}))
"""
SAME = """
import sys
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

def events(path):
    trace = Trace()
    trace.ParseFromString(open(path, "rb").read())
    return [
        (p.timestamp, p.trusted_packet_sequence_id, e.type, e.name_iid, *e.category_iids)
        for p in trace.packet
        if p.HasField("track_event")
        for e in [p.track_event]
    ]

sys.exit(0 if events(sys.argv[1]) == events(sys.argv[2]) else "the traces differ")
"""


def measure(python: str, code: str, spans: int, path: Path, *more: str) -> dict[str, float | str]:
    """Run one writer."""
    constants = repr((TRACKS, NAMES, OPS, KERNELS))
    done = subprocess.run(
        [python, "-c", COMMON.replace("{constants}", constants) + code, str(spans), str(path), *more],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    found: dict[str, float | str] = json.loads(done.stdout)
    return found | {"bytes": path.stat().st_size}


def main() -> None:
    """Measure, print, and with ``--write`` write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--perfetto", required=True, help="a Python that has the package perfetto")
    parser.add_argument("--spans", type=int, default=10_000_000)
    parser.add_argument("--few", type=int, default=500_000, help="spans that the package writes")
    parser.add_argument("--folder", type=Path, default=Path("/tmp"), help="where the traces are written")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    traces = [asked.folder / f"bench-export-{number}.pftrace" for number in range(2)]
    try:
        measure(sys.executable, OURS, asked.spans // 100, traces[0])
        same = measure(asked.perfetto, THEIRS, asked.spans // 100, traces[1], "stream")
        subprocess.run([asked.perfetto, "-c", SAME, *map(str, traces)], check=True)
        ours = measure(sys.executable, OURS, asked.spans, traces[0])
        rows = [("stepscope", ours)]
        for word, name in (("whole", "TraceProtoBuilder"), ("stream", "StreamingTraceProtoBuilder")):
            rows.append((name, measure(asked.perfetto, THEIRS, asked.few, traces[1], word)))
    finally:
        for path in traces:
            path.unlink(missing_ok=True)
    page = HEAD.format(
        spans=int(ours["spans"]),
        tracks=TRACKS,
        names=NAMES,
        few=int(same_few(rows)),
        same=int(same["spans"]),
        **about(same),
    )
    page += "".join(row(name, found, ours) for name, found in rows)
    print(page)
    if asked.write:
        PAGE.write_text(page)


def same_few(rows: list[tuple[str, dict[str, float | str]]]) -> float:
    """Spans that the package wrote."""
    return float(rows[-1][1]["spans"])


def about(found: dict[str, float | str]) -> dict[str, str]:
    """Versions of the package."""
    return {name: str(found[name]) for name in ("version", "protobuf", "kind")}


def row(name: str, found: dict[str, float | str], ours: dict[str, float | str]) -> str:
    """A line of the table."""
    spans, cpu = float(found["spans"]), float(found["cpu_s"])
    scaled = cpu / spans * float(ours["spans"])
    ratio = scaled / float(ours["cpu_s"])
    return (
        f"| {name} | {spans:,.0f} | {cpu:.2f} s | {1e6 * cpu / spans:.2f} | {scaled:.1f} s | "
        f"{float(found['bytes']) / 1e6:.1f} MB | {float(found['peak_kib']) / 1024:.0f} MiB | {ratio:.0f}x |\n"
    )


if __name__ == "__main__":
    main()
