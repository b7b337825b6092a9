"""Chrome trace events become an op trace: whatever wrote them, and whatever is broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.readers.chrome import trace_events, trace_json
from stepscope.readers.chrome.kineto_names import kineto_meaning
from stepscope.readers.chrome.trace_lanes import split
from stepscope.tables.errors import FormatError
from stepscope.tables.optrace import Category, LineKind, OpTrace, PlaneKind

Json = dict[str, object]


def _read(events: list[Json], **beside: object) -> OpTrace:
    return trace_events.read_bytes(json.dumps({"traceEvents": events, **beside}).encode(), "t.json")


def _spans(trace: OpTrace) -> list[tuple[str, int, int]]:
    names = [trace.strings[i] for i in trace.names()]
    return list(zip(names, trace.events.start_ns.tolist(), trace.events.dur_ns.tolist(), strict=True))


def _event(ph: str, name: str, ts: float, **more: object) -> Json:
    return {"ph": ph, "name": name, "ts": ts, "pid": 1, "tid": 1, **more}


def test_complete_events_pairs_and_instants_become_events() -> None:
    trace = _read(
        [
            _event("X", "a", 1_000.5, dur=10),
            _event("B", "b", 1_002),
            _event("E", "b", 1_005),
            _event("i", "c", 1_006),
            _event("b", "d", 1_003, cat="async", id=7),
            _event("e", "d", 1_030, cat="async", id=7),
            {},
        ]
    )
    assert sorted(_spans(trace)) == [("a", 0, 10_000), ("b", 1_500, 3_000), ("c", 5_500, 0), ("d", 2_500, 27_000)]
    assert [line.name for line in trace.lines] == ["1", "async async"]
    assert (trace.source.format, trace.source.started_unix_ns) == ("trace-event", 0)
    assert trace.diagnostics == ()


def test_an_asynchronous_event_may_end_in_another_process() -> None:
    """Its identity is the file's, and it stands where it began."""
    begun = _event("b", "d", 1_000, cat="async", id=7)
    ended = {**_event("e", "d", 1_030, cat="async", id=7), "pid": 2}
    trace = _read([begun, ended])
    assert _spans(trace) == [("d", 0, 30_000)]


def test_processes_and_threads_have_their_names() -> None:
    trace = _read(
        [
            {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:3"}},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "Stream #14(Compute)"}},
            _event("X", "sgemm", 0, dur=1, args={"tf_op": "a:MatMul", "group_id": "5", "shape": [1, 2], "on": True}),
        ]
    )
    assert (trace.planes[0].kind, trace.planes[0].ordinal, trace.lines[0].kind) == (PlaneKind.GPU, 3, LineKind.STREAM)
    assert trace.stats_of(0) == {"tf_op": "a:MatMul", "group_id": 5, "shape": "[1,2]", "on": 1}
    assert trace.categories().tolist() == [Category.KERNEL]


@pytest.mark.parametrize(("events", "kineto", "told"), [(3, False, 1), (2, False, 0), (4, False, 0), (3, True, 0)])
def test_a_file_that_ends_at_its_writers_limit_says_so(
    events: int, kineto: bool, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At exactly that number of complete events, which kineto does not have."""
    monkeypatch.setattr(trace_events, "_MOST_EVENTS", 3)
    more = {"schemaVersion": 1} if kineto else {}
    trace = _read([*(_event("X", "a", i, dur=1) for i in range(events)), _event("M", "thread_name", 0)], **more)
    assert sum("drops all events after" in note.text for note in trace.diagnostics) == told


def test_kineto_categories_say_what_events_are() -> None:
    gpu = {"pid": 0, "tid": 7}
    trace = _read(
        [
            {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}},
            _event("X", "ProfilerStep#4", 0, dur=100, cat="user_annotation"),
            _event("X", "aten::mm", 1, dur=10, cat="Operator"),
            _event("X", "cudaLaunchKernel", 2, dur=1, cat="Runtime", args={"correlation": 9}),
            _event("X", "cudaDeviceSynchronize", 5, dur=4, cat="cuda_runtime"),
            _event("X", "volta_sgemm", 4, dur=3, cat="Kernel", args={"correlation": 9}) | gpu,
            _event("X", "ncclKernel_AllReduce", 8, dur=3, cat="kernel") | gpu,
            _event("X", "ProfilerStep#4", 3, dur=9, cat="gpu_user_annotation") | gpu,
        ],
        schemaVersion=1,
        baseTimeNanoseconds=1_700_000_000_000_000_000,
    )
    found = {(trace.strings[n], int(c)) for n, c in zip(trace.names(), trace.categories(), strict=True)}
    assert ("aten::mm", Category.OP) in found
    assert ("cudaLaunchKernel", Category.RUNTIME) in found
    assert ("cudaDeviceSynchronize", Category.WAIT) in found
    assert ("volta_sgemm", Category.KERNEL) in found
    assert ("ncclKernel_AllReduce", Category.COLLECTIVE) in found
    assert ("ProfilerStep#4", Category.STEP) in found
    assert trace.source.format == "kineto"
    assert trace.source.started_unix_ns == 1_700_000_000_000_000_000
    notes = trace.lines_of(LineKind.NAME_SCOPE)
    assert [(line.name, line.derived, line.last - line.first) for line in notes] == [("7 annotations", True, 1)]
    assert sorted(trace.stats.of_events("correlation_id").values.tolist()) == [9, 9]


def test_transfers_and_unknown_ops_of_a_tf1_timeline_have_no_type() -> None:
    """Its writer names the transfer where others have the op's type, and "unknown" where a label says none."""
    args = [("RecvTensor", "RecvTensor"), ("unknown", "unknown"), ("a/b", "CollectiveReduceV2"), ("c", "MatMul")]
    trace = _read([_event("X", op, 1_000, dur=5, tid=i, args={"name": n, "op": op}) for i, (n, op) in enumerate(args)])
    assert trace.categories().tolist() == [Category.COLLECTIVE, Category.OP, Category.COLLECTIVE, Category.OP]
    types = [trace.strings[i] for i in trace.metas.op_type[trace.events.meta].tolist()]
    assert types == ["", "", "CollectiveReduceV2", "MatMul"]


def test_flow_arrows_link_the_events_that_they_begin_and_end_at() -> None:
    trace = _read(
        [
            _event("X", "launch", 10, dur=2),
            _event("X", "kernel", 15, dur=5, tid=2),
            _event("s", "ac2g", 10, cat="ac2g", id=4),
            _event("f", "ac2g", 15, cat="ac2g", id=4, tid=2),
            _event("f", "ac2g", 99, cat="ac2g", id=5, tid=2),
        ]
    )
    out, into = trace.stats.of_events("flow_out"), trace.stats.of_events("flow_in")
    assert (out.rows.tolist(), into.rows.tolist(), out.values.tolist() == into.values.tolist()) == ([0], [1], True)
    assert [d.text for d in trace.diagnostics] == ["t.json: 1 flow arrows that begin or end at no event were left out"]


def test_what_has_no_place_is_counted() -> None:
    trace = _read([_event("X", "a", 0, dur=1), _event("C", "memory", 0), _event("N", "x", 0), _event("?", "x", 0)])
    assert {d.reason: d.events for d in trace.dropped} == {"counters": 1, "objects": 1, "events of kind '?'": 1}


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([_event("E", "a", 1)], "1 end events without a begin event were dropped"),
        (
            [_event("B", "a", 1), _event("X", "b", 2, dur=7)],
            "1 begin events without an end event last to the end of their thread",
        ),
        ([_event("B", "a", 1), _event("E", "b", 2)], "1 end events closed a begin event with another name"),
        ([_event("X", "a", 0, dur=10), _event("X", "b", 5, dur=10)], "1 events overlap others"),
    ],
)
def test_what_is_broken_is_repaired_and_told(events: list[Json], says: str) -> None:
    trace = _read([*events, _event("X", "whole", 100, dur=1)])
    assert any(says in d.text for d in trace.diagnostics)
    assert ("whole", int(trace.events.start_ns.max()), 1_000) in _spans(trace)


def test_overlapping_events_have_lanes_of_their_own() -> None:
    trace = _read([_event("X", "a", 0, dur=10), _event("X", "b", 5, dur=10), _event("X", "in b", 6, dur=1)])
    assert [(line.name, line.last - line.first) for line in trace.lines] == [("1", 2), ("1 (2)", 1)]


@given(spans=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30)), max_size=30))
def test_within_a_lane_spans_nest(spans: list[tuple[int, int]]) -> None:
    start, dur = np.array(spans, np.float64).reshape(-1, 2).T
    numbers, moved = split(start, dur)
    lanes = numbers.tolist()
    assert moved == sum(lane > 0 for lane in lanes)
    for lane in set(lanes):
        mine = [(a, a + b) for (a, b), own in zip(spans, lanes, strict=True) if own == lane]
        for a, b in mine:
            for c, d in mine:
                assert b <= c + 1 or d <= a + 1 or (a <= c and d <= b + 1) or (c <= a and b <= d + 1)


def test_a_file_is_read_in_pieces_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, numbers, texts, pairs and arrows in pieces of a few events; what is not UTF-8 is told once."""
    events: list[Json] = [_event("M", "thread_name", 0, args={"name": "main"})]
    for i in range(0, 400, 4):
        args = {"External id": i, "Input Dims": [[i % 3, 2], []], "mixed": i if i % 8 else f"n{i % 5}", "flag": True}
        events.append(
            _event("X", f"op {i % 7}", 10 * i, dur=30.25, cat="cpu_op", args=args | ({"f": 0.5} if i > 99 else {}))
        )
        events.append(_event("s" if i % 8 else "f", "ac2g", 10 * i, cat="ac2g", id=i // 8))
        events += [_event("B", "b", 10 * i + 31), _event("E", "b", 10 * i + 35)]
    content = json.dumps({"schemaVersion": 1, "traceEvents": events, "baseTimeNanoseconds": 5}).encode()
    texts = [content, content.replace(b"op 3", b"op\xff", 1), content[:-900], gzip.compress(content, mtime=0)]
    whole = [trace_events.read_bytes(text) for text in texts]
    monkeypatch.setattr(trace_json, "PIECE_BYTES", 1500)
    monkeypatch.setattr(trace_json, "_PART_BYTES", 500)
    for text, expected in zip(texts, whole, strict=True):
        trace = trace_events.read_bytes(text)
        assert (trace.strings, trace.lines, trace.planes) == (expected.strings, expected.lines, expected.planes)
        assert (trace.source, trace.diagnostics) == (expected.source, expected.diagnostics)
        assert [trace.stats_of(row) for row in range(len(trace.events))] == [
            expected.stats_of(row) for row in range(len(expected.events))
        ]
        assert trace.stats.event_names() == expected.stats.event_names()
        assert np.array_equal(trace.events.start_ns, expected.events.start_ns)
        assert np.array_equal(trace.events.meta, expected.events.meta)


@pytest.mark.parametrize("end", ["", ",", ",\n\n  ", ', {"ph": "X", "na'])
@pytest.mark.parametrize("whole", [True, False])
def test_a_file_whose_end_is_missing_is_read(end: str, whole: bool) -> None:
    events = json.dumps([_event("X", "a", 0, dur=1), _event("X", "b", 2, dur=1, args={"x": {"y": "}"}})])[:-1]
    text = events if not whole else f'{{"displayTimeUnit": "ns", "traceEvents": {events}'
    trace = trace_events.read_bytes((text + end).encode(), "cut.json")
    assert [name for name, *_ in _spans(trace)] == ["a", "b"]
    told = [d.text for d in trace.diagnostics]
    assert told == (["cut.json: truncated file: the last 15 bytes were ignored"] if "na" in end else [])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty; expected trace events as JSON"),
        (b"  \n", "empty; expected trace events as JSON"),
        (b"\x0a\x24 not json", "expected JSON, an array or an object"),
        (b'{"shared": 1}', "JSON without traceEvents"),
        (b'[{"ph": "X", "ts": }]', "damaged JSON"),
        (b"[1, 2]", "JSON, but no trace events"),
        (b"[[0, 1000, [100, 0]], [1, 1001, [0, 0]]]", "JSON, but no trace events"),  # PyTorch's timeline of memory
        (b'{"traceEvents": {"a": 1}}', "JSON, but no trace events"),
        (b'[1, {"ph": "X", "ts": 1', "damaged JSON"),
        (b"[]", "it has no events"),
        (gzip.compress(b"[]" * 500, mtime=0)[:20], "truncated: its gzip stream has no end"),
        (b"\x1f\x8b garbage", "damaged gzip file"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        trace_events.read_file(path)
    assert says in str(caught.value)
    assert str(caught.value).startswith("t.json: ")
    assert "\n" not in str(caught.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = st.sampled_from(["name", "cat", "ts", "dur", "tdur", "pid", "tid", "id", "args", "s"])


@given(events=st.lists(st.tuples(st.sampled_from("XBEibesftMCN?"), st.dictionaries(_FIELDS, _JSON)), max_size=8))
@settings(max_examples=80, deadline=None)
def test_fields_of_any_kind_are_read_or_refused(events: list[tuple[str, Json]]) -> None:
    content = json.dumps([{"ph": ph, **more} for ph, more in events]).encode()
    try:
        trace = trace_events.read_bytes(content, "t.json")
    except FormatError:
        return
    assert (trace.events.dur_ns >= 0).all()


@given(content=st.binary(max_size=100), opened=st.sampled_from([b"", b"[", b'{"traceEvents": [', b"\x1f\x8b"]))
@settings(max_examples=80, deadline=None)
def test_any_bytes_are_read_or_refused(content: bytes, opened: bytes) -> None:
    try:
        trace_events.read_bytes(opened + content, "t.json")
    except FormatError as error:
        if "\n" in str(error):
            raise


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("gloo:all_reduce", Category.COLLECTIVE),
        ("nccl:all_gather", Category.COLLECTIVE),
        ("mpi:broadcast", Category.COLLECTIVE),
        ("all_reduce by hand", Category.OTHER),
        ("Optimizer.step#SGD.step", Category.OTHER),
    ],
)
def test_an_exchange_may_be_an_annotation_only(name: str, category: Category) -> None:
    """PyTorch's gloo works on a thread of its own, where no op is recorded."""
    meaning = kineto_meaning(name, "user_annotation")
    assert meaning is not None
    assert (meaning.category, meaning.op_type) == (category, "")


@pytest.mark.parametrize(
    ("info", "place"),
    [
        ({"backend": "nccl", "rank": 3, "world_size": 8, "pg_count": 1}, (3, 8, "nccl")),
        ({"rank": 0}, (0, 0, "")),
        ({"rank": "0", "world_size": -1, "backend": None}, (-1, 0, "")),
        ({"rank": True}, (-1, 0, "")),
        ([1, 2], (-1, 0, "")),
        (None, (-1, 0, "")),
    ],
)
def test_the_rank_of_a_kineto_trace(info: object, place: tuple[int, int, str]) -> None:
    events = [_event("X", "aten::mm", 1, dur=1, cat="cpu_op")]
    source = _read(events, schemaVersion=1, distributedInfo=info, host_name="node7").source
    assert (source.rank, source.world_size, source.backend) == place
    assert source.hostnames == ("node7",)
