"""Op traces in a session: written, read back, packed, and damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.readers.protobuf.codec import encode_bytes, encode_number
from stepscope.readers.xplane import xspace
from stepscope.store import bundle, open_session, optrace, optrace_stats
from stepscope.tables.errors import FormatError, SessionError
from stepscope.tables.optrace import Dropped, Events, LineKind, Metas, OpTrace, PlaneKind, TraceSource
from stepscope.tables.optrace_stats import LoadedStats, StatColumn

_VALUE = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(max_size=8))
_Stats = dict[str, int | float | str]
_Event = tuple[int, str, float, float, _Stats]
_EVENT = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["a/MatMul:MatMul", "train", "x"]),
    st.floats(0, 1e9),
    st.floats(0, 1e9),
    st.dictionaries(st.sampled_from(["p", "q"]), _VALUE),
)


def _trace(events: list[_Event]) -> OpTrace:
    builder = OpTraceBuilder(TraceSource(format="xplane", name="f.pb", hostnames=("h",), started_unix_ns=5))
    host = builder.plane("/host:CPU", PlaneKind.HOST, stats={"clock": 1, "name": "x", "rate": 0.5})
    gpu = builder.plane("/device:GPU:1", PlaneKind.GPU, ordinal=1)
    builder.plane("/device:GPU:2", PlaneKind.GPU, ordinal=2)
    lines = [builder.line(host, "python", line_id=-7), builder.line(gpu, "Stream #1", LineKind.STREAM)]
    lines.append(builder.line(gpu, "TensorFlow Ops", LineKind.FRAMEWORK_OPS))
    for line, name, start, dur, stats in events:
        builder.event(lines[line], name, start, dur, stats=stats)
    builder.drop(Dropped(reason="noise", events=3))
    builder.diagnostic("DX120", "repaired")
    return builder.build()


def _same(one: OpTrace, other: OpTrace) -> None:
    for name in ("source", "planes", "lines", "strings", "dropped", "diagnostics"):
        assert getattr(one, name) == getattr(other, name)
    for part in ("events", "metas"):
        left: Events | Metas = getattr(one, part)
        for field in left.__struct_fields__:
            a, b = getattr(left, field), getattr(getattr(other, part), field)
            assert (a is None and b is None) or (np.array_equal(a, b) and a.dtype == b.dtype)
    assert set(one.stats.event_names()) == set(other.stats.event_names())
    assert set(one.stats.meta_names()) == set(other.stats.meta_names())
    for name in one.stats.event_names():
        _same_column(one.stats.of_events(name), other.stats.of_events(name))
        rows = np.arange(1, len(one.events), 3)
        _same_column(one.stats.of_rows(name, rows), other.stats.of_rows(name, rows))
        dense = one.ints(name)
        had, values = other.ints_of(name, rows)
        assert values.tolist() == dense[had].tolist()
        assert other.ints_at(name, rows).tolist() == dense[rows].tolist()
        assert set(rows[dense[rows] != -1].tolist()) <= set(had.tolist()) <= set(rows.tolist())
    for name in one.stats.meta_names():
        _same_column(one.stats.of_metas(name), other.stats.of_metas(name))


def _same_column(one: StatColumn, other: StatColumn) -> None:
    assert (one.rows.tolist(), one.values.dtype) == (other.rows.tolist(), other.values.dtype)
    assert [one.text(i) for i in range(len(one))] == [other.text(i) for i in range(len(other))]


@given(events=st.lists(_EVENT, max_size=20))
@settings(max_examples=20, deadline=None)
def test_what_is_stored_is_read(events: list[_Event], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("session")
    trace = _trace(events)
    optrace.write(folder, "ops-001", trace, worker="12-3")
    _same(trace, optrace.load(folder, "ops-001"))
    assert optrace.head(bundle.DirectoryFiles(folder), "ops-001").worker == "12-3"


def _events(count: int) -> list[_Event]:
    return [(i % 3, "train", 10.0 * i, 5.5, {"p": i, "q": f"t{i % 5}"}) for i in range(count)]


def test_pieces_of_one_stat_come_together_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one piece holds numbers and another texts."""
    monkeypatch.setattr(optrace_stats, "_FULL", 100)
    rows = [np.arange(0, 400, 2), np.arange(1, 400, 2), np.arange(400, 1_400)]
    pieces = [
        StatColumn(name="p", rows=rows[0], values=rows[0] * 3),
        StatColumn(name="p", rows=rows[1], values=np.zeros(len(rows[1]), np.int64), texts=("text",)),
        StatColumn(name="p", rows=rows[2], values=rows[2] * 3),
    ]

    class Pieces(LoadedStats, frozen=True):
        def columns(self) -> Iterator[StatColumn]:
            yield from pieces

    trace = _trace([(0, "x", float(i), 0.0, {}) for i in range(1_400)])
    whole = OpTrace(**{**{name: getattr(trace, name) for name in OpTrace.__struct_fields__}, "stats": Pieces()})
    optrace.write(tmp_path, "a", whole)
    column = optrace.load(tmp_path, "a").stats.of_events("p")
    assert column.rows.tolist() == list(range(1_400))
    assert [column.text(i) for i in (0, 1, 2, 1_399)] == ["0", "text", "6", str(3 * 1_399)]


def _folder(session: Path) -> Path:
    return session / "captures" / "optraces" / "a"


def test_the_name_of_an_op_stands_once(tmp_path: Path) -> None:
    """Not where it is the name of an event itself, or ends otherwise than in its type."""
    names = ["a/MatMul:MatMul", "b/Relu:Relu", "b/Relu", "train", "c/Add:Add"]
    trace = _trace([(0, name, 10.0 * i, 5.5, {}) for i, name in enumerate(names)])
    optrace.write(tmp_path, "a", trace)
    texts = pq.read_table(_folder(tmp_path) / "strings.parquet").column("text").to_pylist()
    assert {text for text, stored in zip(trace.strings, texts, strict=True) if stored is None} == {"a/MatMul", "c/Add"}
    _same(trace, optrace.load(tmp_path, "a"))


def test_a_text_that_nothing_tells_is_damage(tmp_path: Path) -> None:
    optrace.write(tmp_path, "a", _trace([(0, "train", 0.0, 5.5, {})]))
    pq.write_table(pa.table({"text": pa.array(["", None], pa.string())}), _folder(tmp_path) / "strings.parquet")
    with pytest.raises(SessionError, match="text 1 is missing"):
        optrace.load(tmp_path, "a")


def test_stats_of_few_values_share_a_row_group(tmp_path: Path) -> None:
    stats: list[_Stats] = [{"p": i, "q": 0.5 * i, "r": f"t{i}"} for i in range(5)]
    stats += [{"many": i} for i in range(80)]
    trace = _trace([(0, "x", 10.0 * i, 5.5, one) for i, one in enumerate(stats)])
    optrace.write(tmp_path, "a", trace)
    assert pq.ParquetFile(_folder(tmp_path) / "stats.parquet").num_row_groups == 2
    _same(trace, optrace.load(tmp_path, "a"))
    head = json.loads((_folder(tmp_path) / "trace.json").read_text())
    head["stats"] = [[*piece[:4], 1_000] for piece in head["stats"]]
    (_folder(tmp_path) / "trace.json").write_text(json.dumps(head))
    with pytest.raises(SessionError, match="'p' of an op trace is damaged"):
        optrace.load(tmp_path, "a").stats.of_events("p")


def test_a_trace_of_schema_1_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text stood there, and every piece of a stat had a row group of its own."""
    monkeypatch.setattr(optrace_stats, "_FEW", 0)
    monkeypatch.setattr(optrace, "_texts", lambda trace: list(trace.strings))
    trace = _trace([(0, "a/MatMul:MatMul", 10.0 * i, 5.5, {"p": i, "q": f"t{i}"}) for i in range(20)])
    optrace.write(tmp_path, "a", trace)
    head = json.loads((_folder(tmp_path) / "trace.json").read_text())
    head |= {"schema": 1, "stats": [piece[:2] for piece in head["stats"]]}
    (_folder(tmp_path) / "trace.json").write_text(json.dumps(head))
    _same(trace, optrace.load(tmp_path, "a"))


def test_a_session_has_its_op_traces_and_so_has_the_packed_one(made: Path, tmp_path: Path) -> None:
    optrace.write(made, "ops-002", _trace(_events(30)), worker="12-3")
    optrace.write(made, "ops-001", _trace([]))
    session = open_session(made)
    assert [(t.name, t.worker, t.source.name) for t in session.op_traces] == [
        ("ops-001", "", "f.pb"),
        ("ops-002", "12-3", "f.pb"),
    ]
    _same(session.op_traces[1].load(), _trace(_events(30)))
    packed = tmp_path / "packed.stepscope.zip"
    bundle.pack(made, packed)
    _same(open_session(packed).op_traces[1].load(), _trace(_events(30)))


def test_what_failed_to_be_written_leaves_nothing(tmp_path: Path) -> None:
    stat = encode_bytes(4, encode_number(1, 1) + encode_bytes(5, b"text"))
    event = encode_bytes(4, encode_number(1, 1) + encode_number(2, 1) + stat.replace(b"\x04text", b"\x7ftext"))
    content = encode_bytes(1, encode_bytes(2, b"/host:CPU") + encode_bytes(3, event))
    trace = xspace.read_bytes(content)
    with pytest.raises(FormatError, match="byte"):
        optrace.write(tmp_path, "a", trace)
    assert not any((tmp_path / "captures" / "optraces").iterdir())


def _damaged(folder: Path, file: str, content: bytes | None) -> None:
    path = folder / "captures" / "optraces" / "a" / file
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


@pytest.mark.parametrize("file", ["trace.json", "events.parquet", "metas.parquet", "strings.parquet"])
@pytest.mark.parametrize("content", [None, b"", b"PAR1 but no more"])
def test_a_file_that_is_missing_or_damaged_is_told(tmp_path: Path, file: str, content: bytes | None) -> None:
    optrace.write(tmp_path, "a", _trace(_events(9)))
    _damaged(tmp_path, file, content)
    with pytest.raises(SessionError, match="captures/optraces/a") as caught:
        optrace.load(tmp_path, "a")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"PAR1 but no more"])
def test_damaged_stats_are_told_when_they_are_read(tmp_path: Path, content: bytes | None) -> None:
    optrace.write(tmp_path, "a", _trace(_events(9)))
    _damaged(tmp_path, "stats.parquet", content)
    trace = optrace.load(tmp_path, "a")
    assert trace.events.dur_ns.any()
    with pytest.raises(SessionError):
        trace.stats.of_events("p")


@pytest.mark.parametrize(
    ("file", "column"),
    [("events.parquet", "meta"), ("events.parquet", "line"), ("metas.parquet", "name"), ("metas.parquet", "plane")],
)
@pytest.mark.parametrize("value", [-1, 99])
def test_numbers_that_lead_nowhere_are_refused(tmp_path: Path, file: str, column: str, value: int) -> None:
    optrace.write(tmp_path, "a", _trace(_events(9)))
    path = tmp_path / "captures" / "optraces" / "a" / file
    table = pq.read_table(path)
    values = table.column(column).to_numpy().copy()
    values[0] = value
    pq.write_table(table.set_column(table.column_names.index(column), column, pa.array(values)), path)
    with pytest.raises(SessionError, match="damaged"):
        optrace.load(tmp_path, "a")


def test_lines_that_do_not_share_out_the_events_are_refused(tmp_path: Path) -> None:
    optrace.write(tmp_path, "a", _trace(_events(9)))
    path = tmp_path / "captures" / "optraces" / "a" / "trace.json"
    head = json.loads(path.read_text())
    head["lines"][1]["last"] += 1
    path.write_text(json.dumps(head))
    with pytest.raises(SessionError, match="share out"):
        optrace.load(tmp_path, "a")


def test_one_damaged_trace_costs_that_trace(made: Path) -> None:
    optrace.write(made, "a", _trace(_events(3)))
    optrace.write(made, "b", _trace(_events(3)))
    _damaged(made, "trace.json", b"{")
    session = open_session(made)
    assert [t.name for t in session.op_traces] == ["b"]
    assert any("optraces/a/trace.json" in d.text for d in session.manifest.diagnostics)


def test_a_newer_trace_is_refused_with_the_way_out(tmp_path: Path) -> None:
    optrace.write(tmp_path, "a", _trace([]))
    path = tmp_path / "captures" / "optraces" / "a" / "trace.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))
    with pytest.raises(SessionError, match="update stepscope"):
        optrace.load(tmp_path, "a")
