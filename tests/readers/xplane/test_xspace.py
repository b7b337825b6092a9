"""XSpace files become what was written in them, whatever the order of fields; damage is told in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.readers import xspace
from tests.readers.xspace import Event, Line, Plane, Value

from stepscope.readers.protobuf.codec import encode_bytes, encode_varint
from stepscope.readers.protobuf.varints import PADDING, Buffer, decode
from stepscope.readers.xplane import event_columns, record_heads
from stepscope.readers.xplane import xspace as xplane
from stepscope.tables.errors import FormatError
from stepscope.tables.optrace import Category, LineKind, OpTrace, PlaneKind
from stepscope.tables.optrace_stats import StatColumn, StatName

_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
_VALUES: st.SearchStrategy[Value] = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(st.characters(codec="utf-8"), max_size=200)
)
_STATS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "group_id", "tf_op"]), _VALUES), max_size=4, unique_by=lambda s: s[0]
)
_EVENTS = st.builds(
    Event,
    name=st.sampled_from(["MatMul:MatMul", "train", "x", "ThreadpoolListener::Record"]),
    offset_ps=st.integers(0, 2**50),
    dur_ps=st.integers(0, 2**45),
    stats=_STATS.map(tuple),
)
_LINES = st.builds(
    Line,
    name=_NAMES,
    events=st.lists(_EVENTS, max_size=8).map(tuple),
    id=st.integers(-(2**63), 2**63 - 1),
    timestamp_ns=st.integers(0, 2**40),
)
_PLANES = st.builds(
    Plane,
    name=st.sampled_from(["/host:CPU", "/device:GPU:3", "/device:TPU:0", "Task Environment", "mine"]),
    lines=st.lists(_LINES, max_size=3).map(tuple),
    stats=_STATS.map(tuple),
)


_Row = tuple[int, int, str, dict[str, Value]]


def _rows(trace: OpTrace, line: int) -> list[_Row]:
    """Start in ns, exact duration, name and stats of the events of a line."""
    found: list[_Row] = []
    dur = trace.events.dur_ps()
    for row in range(trace.lines[line].first, trace.lines[line].last):
        name = trace.strings[trace.metas.name[trace.events.meta[row]]]
        found.append((int(trace.events.start_ns[row]), int(dur[row]), name, {**trace.stats_of(row)}))
    return found


def _comparable(row: _Row) -> tuple[int, int, str, str]:
    return (*row[:3], str(sorted(row[3].items())))


@given(planes=st.lists(_PLANES, min_size=1, max_size=3), shuffled=st.booleans())
@settings(max_examples=40, deadline=None)
def test_what_was_written_is_read(planes: list[Plane], shuffled: bool) -> None:
    """Every event comes back with its line, times and stats; a stat that is a text somewhere is a text everywhere."""
    trace = xplane.read_bytes(xspace.space(*planes, hostnames=("h",), shuffled=shuffled), "f", keep_noise=True)
    assert [plane.name for plane in trace.planes] == [plane.name for plane in planes]
    assert trace.source.hostnames == ("h",)
    written = [line for plane in planes for line in plane.lines]
    assert [(line.name, line.id) for line in trace.lines] == [(line.name, line.id) for line in written]
    for index, line in enumerate(written):
        expected: list[_Row] = []
        for event in line.events:
            start = line.timestamp_ns + event.offset_ps // 1000
            expected.append((start, event.dur_ps, event.name, dict(event.stats)))
        read = _rows(trace, index)
        texts = {name for _, _, _, stats in expected for name in stats if _is_text(planes, name)}
        floats = {name for name in ("a", "b", "c", "group_id", "tf_op") if _is_float(planes, name)}
        for *_, stats in expected:
            for name in texts & stats.keys():
                stats[name] = str(stats[name])
            for name in floats & stats.keys() - texts:
                stats[name] = float(stats[name])
        assert sorted(map(_comparable, read)) == sorted(map(_comparable, expected))
        starts = [row[0] for row in read]
        assert starts == sorted(starts)


def _is_text(planes: list[Plane], name: str) -> bool:
    return any(isinstance(v, str) for v in _values(planes, name))


def _is_float(planes: list[Plane], name: str) -> bool:
    return any(isinstance(v, float) for v in _values(planes, name))


def _values(planes: list[Plane], name: str) -> list[Value]:
    return [v for p in planes for x in p.lines for e in x.events for k, v in e.stats if k == name]


@given(planes=st.lists(_PLANES, min_size=1, max_size=2))
@settings(max_examples=20, deadline=None)
def test_stats_in_pieces_are_the_stats_one_by_one(planes: list[Plane]) -> None:
    trace = xplane.read_bytes(xspace.space(*planes), "f", keep_noise=True)
    pieces: dict[str, list[tuple[int, str]]] = {}
    for column in trace.stats.columns():
        pieces.setdefault(column.name, []).extend((int(r), column.text(i)) for i, r in enumerate(column.rows))
    assert set(pieces) == set(trace.stats.event_names())
    for name, values in pieces.items():
        whole = trace.stats.of_events(name)
        assert sorted(row for row, _ in values) == whole.rows.tolist()


_SOME_STATS = st.lists(
    st.tuples(
        st.sampled_from(["a", "id", "correlation_id"]),
        st.integers(-(2**63), 2**63 - 1) | st.text("ab\xe4", max_size=3) | st.just("long" * 50) | st.binary(max_size=3),
    ),
    max_size=5,
)


def _every_way_of_reading_says_the_same(others: int, stats: list[list[tuple[str, Value]]]) -> None:
    """``others``: stats that the file names before."""
    before = tuple(Event("x", stats=((f"other {i}", 1),)) for i in range(others))
    events = tuple(Event("x", offset_ps=10_000 * i, stats=tuple(one)) for i, one in enumerate(stats, 1))
    lonely = Line("t", (Event("x", stats=(("correlation_id", 7),)), Event("x", offset_ps=10_000)))
    planes = Plane("/host:CPU", (Line("t", before + events),)), Plane("/device:GPU:0", (lonely,))
    trace = xplane.read_bytes(xspace.space(*planes), "f")
    count = len(trace.events)
    for name in ("a", "id", "correlation_id"):
        said = [(count - 2, "7")] if name == "correlation_id" else []
        for row, one in enumerate(stats, len(before)):
            said += [(row, str(value)) for key, value in one if key == name and not isinstance(value, bytes)]
        said.sort(key=lambda pair: pair[0])
        first = dict(reversed(said))
        assert _pairs(trace.stats.of_events(name)) == said
        assert _pairs(trace.stats.of_events(name, 0, count - 1)) == [pair for pair in said if pair[0] < count - 1]
        assert [pair for c in trace.stats.columns() if c.name == name for pair in _pairs(c)] == said
        assert dict(_pairs(trace.stats.of_rows(name, np.arange(count)))) == first
        assert dict(_pairs(trace.stats.of_rows(name, np.arange(0, count, 2)))) == {
            row: value for row, value in first.items() if row % 2 == 0
        }


def _pairs(column: StatColumn) -> list[tuple[int, str]]:
    return [(int(row), column.text(i)) for i, row in enumerate(column.rows)]


@pytest.mark.parametrize("others", [0, 130])
@given(stats=st.lists(_SOME_STATS, max_size=12))
@settings(max_examples=25, deadline=None)
def test_stats_are_read_alike_in_every_way(others: int, stats: list[list[tuple[str, Value]]]) -> None:
    """Whatever stands between them: ids of one byte and of two, stats that stand twice, or say nothing."""
    _every_way_of_reading_says_the_same(others, stats)


def test_stats_of_files_above_two_gigabytes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where positions need more than 32 bits."""
    monkeypatch.setattr(event_columns, "_INT32_BYTES", 0)
    _every_way_of_reading_says_the_same(1, [[("id", 3), ("correlation_id", 4)], [("a", "text"), ("a", 5)]])


def test_stats_whose_ids_have_three_bytes_are_read() -> None:
    _every_way_of_reading_says_the_same(1 << 14, [[("id", 3), ("correlation_id", 4)], [("correlation_id", 5)]])


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_damaged_files_are_read_or_refused(data: st.DataObject) -> None:
    """Changed, cut and inserted bytes raise FormatError or nothing, also when stats are read later."""
    content = bytearray(
        xspace.space(*data.draw(st.lists(_PLANES, min_size=1, max_size=2)), shuffled=data.draw(st.booleans()))
    )
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        what = data.draw(st.sampled_from(["change", "cut", "insert"]))
        if what == "change" and content:
            content[at] = data.draw(st.integers(0, 255))
        elif what == "insert":
            content[at:at] = data.draw(st.binary(max_size=8))
        else:
            del content[at : at + data.draw(st.integers(1, 40))]
    _read_all(bytes(content))


@given(content=st.binary(max_size=400))
@settings(max_examples=80, deadline=None)
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    _read_all(content)
    _read_all(encode_bytes(1, encode_bytes(3, content)))


def _read_all(content: bytes) -> None:
    try:
        trace = xplane.read_bytes(content, "f")
        for name in trace.stats.event_names():
            trace.ints(name)
            trace.texts(name)
        for name in trace.stats.meta_names():
            trace.stats.of_metas(name)
    except FormatError as error:
        one_line = "\n" not in str(error)
        if not one_line:
            raise


@given(
    sizes=st.lists(st.integers(0, 30), min_size=0, max_size=3000),
    tail=st.sampled_from([b"", b"\x48\x05", b"\x5a\x03abc" * 2000]),
    part=st.floats(0.1, 1),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None)
def test_events_are_found_whatever_looks_like_one(sizes: list[int], tail: bytes, part: float, seed: int) -> None:
    """Looking for what looks like an event finds what walking on finds, also where texts and stats look like one."""
    random = np.random.default_rng(seed)
    confusing = np.frombuffer(b"\x22\x08\x08\x80\x03A\x10", np.uint8)
    heads, content = [], bytearray()
    for size in [*sizes, *random.integers(0, 300, 600).tolist()]:
        heads.append(len(content))
        content += encode_bytes(
            4, b"\x08\x05" + encode_bytes(4, b"\x08\x07" + random.choice(confusing, size).tobytes())
        )
    end = max(1, int(part * (len(content) + len(tail))))
    whole = bytes(content) + tail
    found = record_heads.find(Buffer(whole + bytes(PADDING), len(whole)), end, record_heads.Look(0x22, 0x10))
    expected = [head for head in heads if head < end]
    assert found[:-1].tolist() == expected
    assert found[-1] == [*heads, len(content)][len(expected)]


@given(values=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50))
def test_numbers_of_every_length_are_decoded(values: list[int]) -> None:
    content, at = bytearray(), []
    for value in values:
        at.append(len(content))
        content += encode_varint(value)
    buffer = Buffer(bytes(content) + bytes(PADDING), len(content))
    read, ends = decode(buffer, np.array(at))
    assert read.view(np.uint64).tolist() == values
    assert ends.tolist() == [*at[1:], len(content)]


def test_a_number_without_end_is_refused() -> None:
    with pytest.raises(FormatError, match="byte 0 has more than ten bytes"):
        decode(Buffer(b"\xff" * 12 + bytes(PADDING), 12), np.array([0]))


def test_thread_pool_bookkeeping_is_left_out_and_counted() -> None:
    events = (Event("ThreadpoolListener::Record", 5), Event("train", 7, 9), Event("ThreadpoolListener::StopRegion", 8))
    content = xspace.space(Plane("/host:CPU", (Line("python", events),)))
    trace = xplane.read_bytes(content)
    assert (len(trace.events), trace.lines[0].dropped, trace.dropped[0].events) == (1, 2, 2)
    assert trace.planes[0].events == 3
    assert len(xplane.read_bytes(content, keep_noise=True).events) == 3


def test_events_that_stand_for_several_say_so() -> None:
    events = (Event("a", 5_000, 1_000), Event("many", 0, 90_000, occurrences=12), Event("a", 9_000, 1_000))
    trace = xplane.read_bytes(xspace.space(Plane("/host:CPU", (Line("python", events, timestamp_ns=3),))))
    column = trace.stats.of_events(StatName.OCCURRENCES)
    assert [(trace.strings[trace.names()[r]], v) for r, v in zip(column.rows, column.values, strict=True)] == [
        ("many", 12)
    ]
    assert trace.ints(StatName.OCCURRENCES).tolist() == [12, -1, -1]


def test_host_events_with_a_step_number_are_step_markers() -> None:
    """Also where a program gave the marker a name that no table knows, and TensorFlow did not write ``_r``."""
    events = (Event("Profiled batch", 0, 50, (("step_num", 3),)), Event("other", 10, 5))
    trace = xplane.read_bytes(xspace.space(Plane("/host:CPU", (Line("python", events),))))
    assert trace.categories().tolist() == [Category.STEP, Category.OTHER]


@pytest.mark.parametrize("name", ["train", "inner loop", "phase::decode"])
def test_roots_without_a_number_are_step_markers(name: str) -> None:
    """As xprof 2.24 groups by them. TensorFlow's own runs are such roots too: they are known, or are producers."""
    root = ("_r", 1)
    events = (
        Event(name, 0, 50, (root,)),
        Event("FunctionRun", 60, 5, (root,)),
        Event("RunMlrtFunction", 70, 5, (("_p", 9), root)),
        Event("no root", 80, 5, (("_r", 0),)),
    )
    trace = xplane.read_bytes(xspace.space(Plane("/host:CPU", (Line("python", events),))))
    assert trace.categories().tolist() == [Category.STEP, Category.CALL, Category.OTHER, Category.OTHER]


@pytest.mark.parametrize("rising", [True, False])
def test_step_numbers_found_while_reading_are_those_of_their_events(*, rising: bool) -> None:
    """Whatever the order of events, with some left out between them and names whose bytes look like the stat's id."""
    events = []
    for number in range(40):
        at = (number if rising else 40 - number) * 1_000_000
        events += [
            Event("ThreadpoolListener::Record", at, 5, (("step_num", 7),)),
            Event("train", at + 1_000, 500_000, (("\b\x01", "\b\x01\b\x02"), ("step_num", number))),
            Event("other", at + 2_000, 1_000, (("text", "\b\x01\b\x02"),)),
        ]
    trace = xplane.read_bytes(xspace.space(Plane("/host:CPU", (Line("python", tuple(events)),))))
    steps = trace.stats.of_events(StatName.STEP_NUM)
    names = [trace.strings[i] for i in trace.names()[steps.rows]]
    assert names == ["train"] * 40
    assert steps.values.tolist() == (list(range(40)) if rising else list(reversed(range(40))))
    every = [c for c in trace.stats.columns() if c.name == StatName.STEP_NUM]
    assert [row for column in every for row in column.rows.tolist()] == steps.rows.tolist()


def test_stats_of_a_kind_are_stats_of_its_events() -> None:
    plane = Plane(
        "/device:TPU:2",
        (Line("XLA Ops", (Event("%a.1 = f32[2]{0} add(f32[2] %b)", 0, 1500), Event("c", 2000, 1))),),
        metas={"%a.1 = f32[2]{0} add(f32[2] %b)": (("hlo_category", "non-fusion elementwise"), ("flops", 64))},
    )
    trace = xplane.read_bytes(xspace.space(plane))
    assert (trace.planes[0].kind, trace.planes[0].ordinal, trace.lines[0].kind) == (PlaneKind.TPU, 2, LineKind.XLA_OPS)
    assert trace.ints("flops").tolist() == [64, -1]
    assert trace.strings[trace.metas.op_type[trace.events.meta[0]]] == "non-fusion elementwise"
    assert trace.events.dur_ps().tolist() == [1500, 1]


def test_a_clock_that_counts_from_1970_becomes_time_since_the_start() -> None:
    unix = 1_790_000_000_000_000_000
    planes = (
        Plane("/host:CPU", (Line("python", (Event("a", 7_000, 1_000),), timestamp_ns=unix + 500),)),
        Plane("Task Environment", stats=(("profile_start_time", unix), ("profile_stop_time", unix + 9_000))),
    )
    trace = xplane.read_bytes(xspace.space(*planes))
    assert (trace.source.started_unix_ns, trace.source.dur_ns) == (unix, 9_000)
    assert trace.events.start_ns.tolist() == [507]


def test_an_event_without_metadata_is_kept_and_told() -> None:
    line = encode_bytes(4, xspace.number(1, 99) + xspace.number(2, 5_000))
    content = encode_bytes(1, encode_bytes(2, b"/host:CPU") + encode_bytes(3, line))
    trace = xplane.read_bytes(content, "f.pb")
    assert trace.events.start_ns.tolist() == [5]
    assert [d.text for d in trace.diagnostics] == ["f.pb: some events refer to metadata that is missing from the file"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "f.pb: empty; expected an XSpace"),
        (b"\x07\x01", "f.pb: not an XSpace, or damaged: field number 0 at byte 0"),
        (b"PK\x03\x04 a zip file", "f.pb: not an XSpace, or damaged"),
        (xspace.space(Plane("/host:CPU"))[:-3], "f.pb: not an XSpace, or damaged: field"),
        (encode_bytes(4, b"host"), "no plane with a name in its 6 bytes"),
        (b"\xef\xbf\xbd" * 40, "went through a UTF-8 decoder"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "f.pb"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        xplane.read_file(path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none\.pb: cannot be read: No such file"):
        xplane.read_file(tmp_path / "none.pb")
