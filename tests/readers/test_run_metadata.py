"""RunMetadata becomes an op trace: devices, streams, threads, nodes, allocations; damage is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.derive.optrace import op_times
from stepscope.derive.optrace.steps import traced_steps
from stepscope.derive.optrace.trace_view import OpView
from stepscope.readers import run_metadata
from stepscope.readers.protobuf.codec import encode_bytes, encode_number
from stepscope.tables.errors import FormatError
from stepscope.tables.optrace import Category, LineKind, PlaneKind

PS_WORKER = Path(__file__).parents[1] / "data" / "run-metadata-2.21" / "ps-worker.pb"
CPU = "/job:worker/replica:0/task:1/device:CPU:0"
GPU = "/job:worker/replica:0/task:1/device:GPU:2"


def _node(name: str, start_us: int, dur_us: int, *, label: str = "", thread: int = 0, more: bytes = b"") -> bytes:
    parts = [encode_bytes(1, name.encode()), encode_number(2, start_us), encode_number(5, dur_us)]
    return b"".join([*parts, encode_bytes(8, label.encode()), encode_number(10, thread), more])


def _device(name: str, *nodes: bytes, threads: dict[int, str] | None = None) -> bytes:
    names = [encode_bytes(3, encode_number(1, k) + encode_bytes(2, v.encode())) for k, v in (threads or {}).items()]
    return encode_bytes(
        1, encode_bytes(1, name.encode()) + b"".join(encode_bytes(2, n) for n in nodes) + b"".join(names)
    )


def _run(*devices: bytes) -> bytes:
    return encode_bytes(1, b"".join(devices))


def test_nodes_have_their_types_threads_and_devices() -> None:
    content = _run(
        _device(
            CPU, _node("a/b", 1_000, 5, label="a/b = MatMul(x, y)", thread=3), _node("c", 1_002, 1), threads={3: "pool"}
        ),
    )
    trace = run_metadata.read_bytes(content, "r.pb")
    assert [(p.name, p.kind, p.ordinal) for p in trace.planes] == [(CPU, PlaneKind.HOST, -1)]
    assert [(line.name, line.last - line.first) for line in trace.lines] == [("pool", 1), ("thread 0", 1)]
    rows = {row.name: row for row in op_times.build(trace).rows()}
    assert (rows["a/b"].type, rows["a/b"].total_ps) == ("MatMul", 5_000_000)
    (step,) = traced_steps.find(trace)
    assert step.dur_ns.tolist() == [5_000]


@pytest.mark.parametrize("own", [True, False], ids=["own", "server"])
@pytest.mark.parametrize("kind", ["QueueDequeueV2", "ResourceAccumulatorTakeGradient"])
def test_an_element_of_a_server_is_waited_for_and_one_of_an_own_queue_is_an_op(own: bool, kind: str) -> None:
    """The tokens of a SyncReplicasOptimizer lie on the server: a worker waits there for the others."""
    place = CPU if own else "/job:ps/replica:0/task:0/device:CPU:0"
    label = f"sync_token_q_Dequeue = {kind}(sync_token_q)"
    run = _run(_device(place, _node("sync_token_q_Dequeue", 1_000, 30_000, label=label)))
    trace = run_metadata.read_bytes(run, "r.pb")
    assert trace.categories().tolist() == [Category.OP if own else Category.COLLECTIVE]


@pytest.mark.parametrize(
    ("label", "size"),
    [
        ("[4.0MB] [7.4Gb/s] edge_10_w1/read from /job:ps/task:0/device:CPU:0 to /job:w/task:1/device:CPU:0", 4 << 20),
        ("[1.5KB] [12.000000Mb/s] a from b from /job:ps/task:0 to /job:worker/task:1", 1536),
        ("[0B] [0.000000Mb/s] edge_2_c from /job:ps/task:0 to /job:worker/task:1", 0),
    ],
)
def test_a_tensor_from_another_task_is_an_exchange_and_no_op(label: str, size: int) -> None:
    """Whatever the method is called that brought it: its label says bytes and both ends, and these are kept."""
    trace = run_metadata.read_bytes(_run(_device(CPU, _node("RecvAnything", 1_000, 500, label=label))), "r.pb")
    stats = trace.stats_of(0)
    assert trace.categories().tolist() == [Category.COLLECTIVE]
    assert (stats["transfer_bytes"], stats["bits_per_s"]) == (size, size * 8 / 500e-6)
    assert f"{stats['tensor']} from {stats['source_device']} to {stats['destination_device']}" in label
    assert len(op_times.build(trace)) == 0


@pytest.mark.parametrize("kind", ["CollectiveReduceScatterV2", "NcclAllReduce", "_NcclReduceSend"])
def test_a_collective_is_an_exchange(kind: str) -> None:
    """By the type of the op, in a run's metadata as in a profiler's trace."""
    trace = run_metadata.read_bytes(_run(_device(CPU, _node("a", 1_000, 5, label=f"a = {kind}(b)"))), "r.pb")
    assert trace.categories().tolist() == [Category.COLLECTIVE]


def test_a_label_without_a_type_is_no_op() -> None:
    """What a tracer notes of a node is not taken for computing; a node without any label ran."""
    content = _run(_device(CPU, _node("Noted", 1_000, 5, label="id=7,regs:3"), _node("ran", 1_010, 5)))
    trace = run_metadata.read_bytes(content, "r.pb")
    assert trace.categories().tolist() == [Category.OTHER, Category.OP]


def test_a_run_with_a_parameter_server_computes_exchanges_and_waits_in_the_runtime() -> None:
    """Of a real one: what no op covers is the runtime's, as nobody's Python runs in Session.run."""
    trace = run_metadata.read_file(PS_WORKER)
    received = trace.events_of(trace.metas_named("RecvTensor"))
    assert sum(int(trace.stats_of(int(row))["transfer_bytes"]) for row in received) == 16_777_229
    found = OpView(trace).breakdown
    assert set(found.shares()) == {"host-compute", "collective", "runtime"}
    assert sum(found.shares().values()) == pytest.approx(1)
    computing = trace.categories() == Category.OP
    assert found.ratio("host-compute") * found.wall_ns <= trace.events.dur_ns[computing].sum()


def test_nanoseconds_go_before_microseconds() -> None:
    exact = encode_number(13, 1_000_123) + encode_number(16, 5_678)
    trace = run_metadata.read_bytes(_run(_device(CPU, _node("a", 1_000, 5, more=exact))), "r.pb")
    assert (trace.source.started_unix_ns, trace.events.dur_ns.tolist()) == (1_000_123, [5_678])


def test_streams_are_lines_of_their_device_and_their_repetition_is_left_out() -> None:
    kernel = _node("a:MatMul", 1_000, 5)
    content = _run(
        _device(f"{GPU}/stream:all", kernel), _device(f"{GPU}/stream:13", kernel), _device(CPU, _node("b", 1_000, 9))
    )
    trace = run_metadata.read_bytes(content, "r.pb")
    assert [(p.kind, p.ordinal, p.events) for p in trace.planes] == [(PlaneKind.GPU, 2, 1), (PlaneKind.HOST, -1, 1)]
    assert trace.lines[0].kind is LineKind.STREAM
    assert [(d.reason, d.events) for d in trace.dropped] == [("stream:all, which repeats the single streams", 1)]


def test_allocations_are_events_with_their_allocator() -> None:
    record = encode_bytes(6, encode_number(1, 1_001) + encode_number(2, 4_096))
    used = encode_bytes(6, encode_bytes(1, b"GPU_0_bfc") + encode_number(5, 8_192) + record)
    trace = run_metadata.read_bytes(_run(_device(CPU, _node("a", 1_000, 5, more=used))), "r.pb")
    row = int(trace.events_of(trace.metas_named("MemoryAllocation"))[0])
    stats = trace.stats_of(row)
    assert (stats["allocator_name"], stats["allocation_bytes"], stats["bytes_allocated"]) == ("GPU_0_bfc", 4_096, 8_192)
    assert trace.events.start_ns[row] == 1_000


@pytest.mark.parametrize("content", [b"", b"\x07", b"\x0a\x7f", _run(), encode_bytes(2, b"x"), b"\x08\x05"])
def test_a_file_that_is_none_is_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(FormatError, match=r"r\.pb: not RunMetadata"):
        run_metadata.read_bytes(content, "r.pb")


@given(flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_damaged_files_are_read_or_refused(flips: list[tuple[int, int]]) -> None:
    used = encode_bytes(6, encode_bytes(1, b"cpu") + encode_bytes(6, encode_number(1, 1_001) + encode_number(2, 4_096)))
    content = bytearray(_run(_device(CPU, _node("a", 1_000, 5, label="a = B(c)", more=used), threads={1: "x"})))
    for at, value in flips:
        content[at % len(content)] = value
    try:
        run_metadata.read_bytes(bytes(content), "r.pb")
    except FormatError as error:
        if "\n" in str(error):
            raise
