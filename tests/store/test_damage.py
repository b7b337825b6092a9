"""Damaged sessions that are opened where they lie: what was altered is said, and none of its numbers is shown."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import asdict
from tests.derive.op_traces import Maker

from stepscope.model.session.session import Session
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.sessions import analysis, bundle
from stepscope.store import open_session, optrace
from stepscope.tables.errors import DamagedError, SessionError
from stepscope.tables.optrace import OpTrace, PlaneKind, TraceSource
from stepscope.use_cases import flame

SEED = 20
ROUNDS = 300
TABLE = "workers/7-70/records-000000000000-000000000099.parquet"


@pytest.fixture
def traced(made: Path) -> Path:
    """The session with an op trace."""
    optrace.write(made, "ops-001", ops())
    return made


def ops() -> OpTrace:
    """A thousand events of two kinds with a stat each."""
    builder = OpTraceBuilder(TraceSource(format="xplane", name="f.pb"))
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", line_id=1)
    for number in range(1000):
        name = ("a/MatMul:MatMul", "train")[number % 2]
        builder.event(line, name, 1e4 * number, 5e3 + number, stats={"step_num": number})
    return builder.build()


def content_of(packed: Path, name: str) -> tuple[int, int]:
    """Where the bytes of an entry are: first, and behind the last."""
    with zipfile.ZipFile(packed) as archive:
        entry = archive.getinfo(name)
    first = entry.header_offset
    head = packed.read_bytes()[first : first + 30]
    first += 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
    return first, first + entry.file_size


def flip(path: Path, at: int) -> None:
    """Change one bit of a byte."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def everything(session: Session) -> object:
    """All that was read, the op traces too, in a form that can be compared."""
    records = [{k: v.tolist() for k, v in asdict(w.records).items()} for w in session.workers]
    events = [msgspec.json.encode(w.events) for w in session.workers]
    traces = [(t.load().events.start_ns.tolist(), t.load().strings) for t in session.op_traces]
    return session.manifest, records, events, dict(session.sources), traces


def test_every_entry_is_checked_when_it_is_read(traced: Path) -> None:
    """Whatever entry is altered, reading it names the file and the entry, and gives nothing of it."""
    packed, _ = bundle.pack(traced)
    whole = packed.read_bytes()
    for name in zipfile.ZipFile(packed).namelist():
        first, last = content_of(packed, name)
        if name.endswith("stats.parquet"):  # read when a stat is asked for
            continue
        flip(packed, (first + last) // 2)
        with pytest.raises(DamagedError, match=f"^damaged: {packed}: ") as refused:
            everything(open_session(packed))
        assert name == "DIGEST" or repr(name) in str(refused.value)
        assert refused.value.exit_code == 65
        packed.write_bytes(whole)


def test_a_manifest_that_was_changed_is_refused(made: Path, tmp_path: Path) -> None:
    """A zip file that is whole in itself, with another manifest than was packed, is no session."""
    packed, _ = bundle.pack(made)
    other = tmp_path / "other.stepscope.zip"
    with zipfile.ZipFile(packed) as source, zipfile.ZipFile(other, "w") as sink:
        for entry in source.infolist():
            sink.writestr(entry, source.read(entry).replace(b'"finished"', b'"recovery"'))
    with pytest.raises(DamagedError, match=r"'manifest\.json' was altered: its SHA-256 is \w+\.\.\., expected"):
        open_session(other)


def test_flipped_and_cut_files(traced: Path) -> None:
    """A byte anywhere in the file, or its end, is either of no account or refused with exit code 65: no other error,
    and never other values."""
    packed, _ = bundle.pack(traced)
    whole, expected = packed.read_bytes(), everything(open_session(packed))
    chance = random.Random(SEED)
    refused, said = 0, (65, "damaged")
    for turn in range(ROUNDS):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        packed.write_bytes(data if turn % 10 else whole[: chance.randrange(len(whole))])
        try:
            got = everything(open_session(packed))
        except SessionError as error:
            refused += 1
            got, said = expected, (error.exit_code, str(error).partition(": ")[0])
        assert got == expected
        assert said == (65, "damaged")
    assert refused > ROUNDS / 2


def test_what_is_not_read_is_not_checked(traced: Path) -> None:
    """A session opens without reading its op traces, so a large one opens at once; the trace is refused when it is
    asked for."""
    packed, _ = bundle.pack(traced)
    first, last = content_of(packed, "captures/optraces/ops-001/events.parquet")
    flip(packed, (first + last) // 2)
    stored = open_session(packed).op_traces[0]
    with pytest.raises(DamagedError, match=r"ops-001/events\.parquet"):
        stored.load()


def test_no_wall_holds_damage_back(made: Path) -> None:
    """A report is not made of a pack whose op trace was altered, though detectors, the source check and the table of
    ops go on without a trace that fails."""
    trace = Maker()
    thread = trace.thread("tf_Compute/1")
    for number in range(200):
        trace.step(10_000 * number, 9_990, number)
        trace.op(thread, "model/MatMul:MatMul", 10_000 * number + 5, 8_000 + number, number)
    optrace.write(made, "ops-001", trace.trace())
    packed, _ = bundle.pack(made)
    for file in ("events.parquet", "stats.parquet"):
        whole = packed.read_bytes()
        first, last = content_of(packed, f"captures/optraces/ops-001/{file}")
        flip(packed, (first + last) // 2)
        with pytest.raises(DamagedError, match=file):
            analysis.analyze(packed)
        packed.write_bytes(whole)


def test_every_byte_of_a_part_is_covered(made: Path) -> None:
    """Whichever byte of a table of records is changed, every open says that the file is lost, and when its records
    were.
    """
    path = made / TABLE
    whole = path.read_bytes()
    for at in range(len(whole)):
        flip(path, at)
        session = open_session(made)
        assert list(session.lost_files) == [TABLE], at
        assert any(TABLE in d.text for d in session.manifest.diagnostics)
        lost = session.workers[0].lost
        assert (lost.start_ns.tolist(), lost.end_ns.tolist(), lost.records.tolist()) == ([0], [100_200], [100])
    path.write_bytes(whole)
    assert len(open_session(made).workers[0].lost) == 0


@pytest.mark.parametrize("left", [0, 3, 100, -1])
def test_a_cut_table_is_a_loss(made: Path, left: int) -> None:
    """What is left of a cut table is not shown; the rest of the session is, and says so."""
    path = made / TABLE
    path.write_bytes(path.read_bytes()[:left])
    session = open_session(made)
    assert list(session.lost_files) == [TABLE]
    assert len(session.workers[0].records) == 50
    assert any("left out" in text.text for text in analysis.analyze(made).diagnostics)


def test_a_pack_of_another_name_is_one(made: Path, tmp_path: Path) -> None:
    """A pack whose first byte was changed is no file of stacks, whatever it is called."""
    packed, _ = bundle.pack(made, tmp_path / "session.bin")
    flip(packed, 0)
    with pytest.raises(DamagedError, match=f"^damaged: {packed}: "):
        flame.choose(packed)
