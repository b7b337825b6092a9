"""``stepscope import``: files of other tools become a session that ``report`` opens; bad ones leave nothing."""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.readers import xspace
from tests.readers.xspace import Event, Line, Plane

from stepscope.cli.import_ import import_
from stepscope.cli.main import main
from stepscope.diagnosis.analyze import write_reports
from stepscope.readers.importers import places, registry, stack_files
from stepscope.readers.protobuf.codec import encode_bytes, encode_number
from stepscope.report import markdown, text
from stepscope.server.session_catalogue import SessionCatalogue
from stepscope.sessions.analysis import analyze
from stepscope.store import open_session
from stepscope.tables.errors import FormatError, SessionError
from stepscope.use_cases.importing import import_files

UNIX = 1_790_000_000_000_000_000


def _xspace(start_ns: int = UNIX, steps: int = 4) -> bytes:
    marks = tuple(Event("train", 1_000_000 * i, 900_000, (("step_num", i), ("_r", 1))) for i in range(steps))
    noise = Event("ThreadpoolListener::Record", 5_000)
    return xspace.space(
        Plane("/host:CPU", (Line("python", (*marks, noise)),)),
        Plane("/device:GPU:0"),
        Plane("Task Environment", stats=(("profile_start_time", start_ns),)),
        hostnames=("worker-3",),
    )


def _run_metadata(name: bytes = b"a") -> bytes:
    node = encode_bytes(1, name) + encode_number(2, 1_000) + encode_number(5, 5)
    device = encode_bytes(1, b"/job:x/replica:0/task:0/device:CPU:0") + encode_bytes(2, node)
    return encode_bytes(1, encode_bytes(1, device))


CHROME = json.dumps({"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}).encode()
CONTENTS = {"xplane": _xspace(), "run-metadata": _run_metadata(), "trace-event": CHROME}


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_file_is_known_by_its_content(kind: str, tmp_path: Path) -> None:
    """Under any name; packed JSON too."""
    path = tmp_path / "whatever"
    path.write_bytes(CONTENTS[kind])
    assert registry.read(path).source.format == kind
    path.write_bytes(gzip.compress(CHROME))
    assert registry.read(path).source.format == "trace-event"


def test_every_importer_knows_its_own_files_and_no_others() -> None:
    for one in registry.ALL:
        assert [kind for kind, content in CONTENTS.items() if one.knows(content[:64])] == [one.format]


def test_a_session_of_files_is_reported(tmp_path: Path) -> None:
    """Planes without events are called not captured, what was left out is counted, steps are shown with their times."""
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(_xspace())
    done = import_files([path], tmp_path / "a.stepscope")
    session = open_session(done.session)
    assert (session.manifest.mode, session.manifest.host.name) == ("import", "worker-3")
    assert session.manifest.started_unix_ns == UNIX
    report = analyze(done.session)
    (trace,) = report.op_traces
    assert (trace.file, trace.events, list(trace.left_out.values())) == ("a.xplane.pb", 4, [1])
    assert [(s.how, s.name, s.count, s.median_ns) for s in trace.steps] == [("marker", "train", 4, 900)]
    shown = text.render(report)
    assert "imported    a.xplane.pb · xplane · 4 events" in shown
    assert "4 steps · median 900 ns (900 ns to 900 ns) · marker train" in shown
    assert "/device:GPU:0: not captured, which does not mean idle" in shown
    assert "no findings: the job was not measured" in shown
    assert "| `a.xplane.pb` | xplane | 4 |" in markdown.render(report)


def test_a_list_of_sessions_has_the_steps_of_files(tmp_path: Path) -> None:
    """An imported session has the steps that its report tells of, and their rate; one without steps has none."""
    for name, content in (("a", _xspace()), ("b", _xspace(steps=0))):
        (tmp_path / f"{name}.xplane.pb").write_bytes(content)
        write_reports(import_files([tmp_path / f"{name}.xplane.pb"], tmp_path / f"{name}.stepscope").session)
    briefs = {brief.name: brief for brief in SessionCatalogue([tmp_path]).briefs()}
    assert briefs["a"].steps == 4
    assert briefs["a"].steps_per_s == pytest.approx(1e9 / 900)
    assert (briefs["b"].steps, briefs["b"].steps_per_s) == (0, None)


def test_the_stages_of_files_stand_in_the_head(tmp_path: Path) -> None:
    """What the traced steps show of the stages is said; a file without steps has no such line."""
    for name, content in (("a", _xspace()), ("b", _xspace(steps=0))):
        (tmp_path / f"{name}.xplane.pb").write_bytes(content)
        import_files([tmp_path / f"{name}.xplane.pb"], tmp_path / f"{name}.stepscope")
    shown = [text.render(analyze(tmp_path / f"{name}.stepscope")) for name in "ab"]
    assert ["\nstages " in one for one in shown] == [True, False]


def test_files_stand_in_the_session_where_their_clocks_put_them(tmp_path: Path) -> None:
    for name, start in (("one", UNIX + 7_000), ("two", UNIX)):
        (tmp_path / f"{name}.xplane.pb").write_bytes(_xspace(start))
    done = import_files([tmp_path], tmp_path / "s.stepscope")
    traces = [stored.load() for stored in open_session(done.session).op_traces]
    assert [(t.source.name, int(t.events.start_ns[0])) for t in traces] == [
        ("one.xplane.pb", 7_000),
        ("two.xplane.pb", 0),
    ]


def test_a_log_directory_stands_for_its_newest_run(tmp_path: Path) -> None:
    for run in ("2026_11_20", "2026_11_21"):
        folder = tmp_path / "train" / "plugins" / "profile" / run
        folder.mkdir(parents=True)
        (folder / "host.xplane.pb").write_bytes(_xspace())
        (folder / "ALL_HOSTS.op_stats_v2.pb").write_bytes(b"a cache of xprof's")
    assert [file.parent.name for file in places.files(tmp_path)] == ["2026_11_21"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="expected a file or a profile's directory"):
        places.files(tmp_path / "empty")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.xplane.pb", _xspace()[:-9]),
        ("zero.xplane.pb", b""),
        ("zero", b""),
        ("random", bytes(range(200, 256))),
        ("text", _xspace().decode("utf-8", "replace").encode() * 9),
        ("cut.json.gz", gzip.compress(CHROME, mtime=0)[:30]),
    ],
)
def test_a_bad_file_costs_one_line_and_leaves_nothing(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    good = tmp_path / "good.xplane.pb"
    good.write_bytes(_xspace())
    with pytest.raises(FormatError) as caught:
        import_files([good, path], tmp_path / "s.stepscope")
    assert caught.value.exit_code == 68
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)
    assert not (tmp_path / "s.stepscope").exists()


def _command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Exit code of ``stepscope import``."""
    monkeypatch.setattr(sys, "argv", ["stepscope", "import", *arguments])
    with pytest.raises(SystemExit) as done:
        main()
    return int(str(done.value.code))


MANY = json.dumps({"traceEvents": [{"ph": "X", "name": "\u00fc", "ts": i, "dur": 2, "pid": 1} for i in range(99)]})
WHOLE = {
    "capture.xplane.pb": _xspace(),
    "run_metadata.pb": _run_metadata(b"n" * 150),
    "capture.trace.json.gz": gzip.compress(MANY.encode(), mtime=0),
}


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (name, damage)
        for name in WHOLE
        for damage in ("cut", "random", "empty", "decoded", "missing")
        if (name, damage) != ("capture.trace.json.gz", "cut")  # it is read as far as it goes
    ],
)
def test_the_command_tells_a_bad_file_in_one_line(
    name: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cut short, random, without a byte, passed through a text decoder, not there: one line on stderr, exit code 68."""
    content = WHOLE[name]
    monkeypatch.chdir(tmp_path)
    if damage != "missing":
        Path(name).write_bytes(
            {
                "cut": content[: len(content) // 2],
                "random": random.Random(7).randbytes(5_000),
                "empty": b"",
                "decoded": content.decode("utf-8", "replace").encode(),
            }[damage]
        )
    assert _command(monkeypatch, name) == 68
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith(f"stepscope: {name}: ")
    assert "expected" in line or "copy it again" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == [name] * (damage != "missing")


def test_damage_in_the_stats_names_the_file(tmp_path: Path) -> None:
    """Events are whole, a stat of one is not: it is first read when the session is written."""
    marked = Event("train", 0, 900_000, (("step_num", 1), ("_r", 1), ("device", "LAST")))
    content = bytearray(xspace.space(Plane("/host:CPU", (Line("python", (marked,)),))))
    content[content.index(b"LAST") - 1] = 99
    (tmp_path / "a.xplane.pb").write_bytes(content)
    with pytest.raises(FormatError, match=r"a\.xplane\.pb: .*; expected a complete") as caught:
        import_files([tmp_path / "a.xplane.pb"], tmp_path / "s.stepscope")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "s.stepscope").exists()


def test_text_that_is_no_utf8_is_replaced_and_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(CHROME.replace(b'"a"', b'"\x9e"'))
    report = analyze(import_files([path], tmp_path / "s.stepscope").session)
    whole = tmp_path / "whole.json"
    whole.write_bytes(CHROME)
    assert report.op_traces[0].events == analyze(import_files([whole], tmp_path / "w").session).op_traces[0].events
    assert [d.text for d in report.diagnostics if d.code == "DX123"] == [
        "bad.json: 1 bytes or sequences that are not UTF-8 text were replaced"
    ]


def test_a_cut_array_of_events_is_read_as_far_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The format allows it: what is lost is told, and all before it is there. Blank lines before it change nothing."""
    monkeypatch.chdir(tmp_path)
    Path("cut.json").write_text(f"\n\n{MANY[:2_000]}")
    assert _command(monkeypatch, "cut.json") == 0
    said = capsys.readouterr()
    assert said.err == ""
    (note,) = [line for line in said.out.splitlines() if line.startswith("note")]
    assert "truncated file: the last" in note
    assert 20 < analyze(Path("cut.stepscope")).op_traces[0].events < 99


def test_a_session_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(_xspace())
    import_files([path], tmp_path / "s.stepscope")
    with pytest.raises(SessionError, match=r"already exists; .* --output"):
        import_files([path], tmp_path / "s.stepscope")


def test_the_command_says_what_was_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert.xplane.pb").write_bytes(_xspace())
    done = CliRunner().invoke(import_, ["bert.xplane.pb"], catch_exceptions=False)
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "op trace    bert.xplane.pb · xplane · 4 events",
        "steps       4 steps · median 900 ns (900 ns to 900 ns) · marker train",
        "captured    /host:CPU (5 events)",
        "no events   /device:GPU:0: not captured, which does not mean idle",
        "omitted     1 bookkeeping of thread pools (ThreadpoolListener::*)",
        "session     bert.stepscope · stepscope report bert.stepscope",
    ]


SPEEDSCOPE = json.dumps(
    {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}]},
        "profiles": [
            {
                "type": "sampled",
                "name": "t",
                "unit": "milliseconds",
                "startValue": 0,
                "endValue": 3,
                "samples": [[0]],
                "weights": [3],
            }
        ],
    }
).encode()
STACKS = {
    "folded": b"main;train;matmul 12\nmain;input 3\n",
    "perf script": b"python 7/7 [000] 1.000001: 10 cpu-clock: \n\t    7f00 main+0x1 (/bin/python)\n\n",
    "speedscope": SPEEDSCOPE,
}


@pytest.mark.parametrize("kind", STACKS)
def test_stacks_become_a_session(kind: str, tmp_path: Path) -> None:
    """Packed or not, under any name; beside op traces too; flame's profiles are what the file holds."""
    (tmp_path / "a").write_bytes(STACKS[kind])
    (tmp_path / "b").write_bytes(gzip.compress(STACKS[kind]))
    (tmp_path / "c").write_bytes(CONTENTS["xplane"])
    done = import_files([tmp_path / "a", tmp_path / "b", tmp_path / "c"], tmp_path / "x.stepscope")
    assert (len(done.traces), len(done.stacks)) == (1, 2)
    session = open_session(done.session)
    assert [profile.total for profile in session.stacks] == [done.stacks[0].total] * 2
    assert len(session.op_traces) == 1


@pytest.mark.parametrize("kind", CONTENTS)
def test_op_traces_are_no_stacks(kind: str, tmp_path: Path) -> None:
    """Each kind of op trace, packed and not, and what is neither."""
    for data in (
        CONTENTS[kind],
        gzip.compress(CONTENTS[kind]),
        b"hello world\n",
        b"",
        b"\x1f\x8bbroken",
        b"1 2\n3 4\n",
    ):
        (tmp_path / "a").write_bytes(data)
        assert not stack_files.knows(tmp_path / "a")
