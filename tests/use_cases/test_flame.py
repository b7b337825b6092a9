"""``stepscope flame``: which profile is chosen, what is written, what is refused."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S
from tests.derive.stack_profiles import lines_of, of_text

from stepscope.cli import main
from stepscope.model.session.session import Session
from stepscope.readers.stacks import detect
from stepscope.report.flame import text as flame_text
from stepscope.tables.errors import FormatError, SessionError, UsageError
from stepscope.use_cases import flame as app_flame
from stepscope.wire.kinds import Kind

STEP = Frame(SCRIPT, "step", 9)
LOAD = Frame(SCRIPT, "load", 3)


def flame(*args: str | Path) -> Result:
    return CliRunner().invoke(main.cli, ["flame", *map(str, args)])


def session_of(steps: int, *, extra: int = 0) -> Session:
    """Steps of 100 ms with a sample in each, after half a second of loading.

    ``extra``: as many more samples in each step, which lasts so many times 100 ms longer.
    """
    period = (1 + extra) * 100 * MS
    job = Job(ended_ns=steps * period + 600 * MS)
    job.function(call_file=SCRIPT, call_line=9, call_function="main").every(period, steps, dur=60 * MS, start=500 * MS)
    job.samples([50 * MS, 100 * MS], LOAD)
    for number in range(1 + extra):
        job.samples([500 * MS + i * period + 10 * MS + number for i in range(steps)], STEP)
    return job.session()


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A session's directory that is read as a job of sixty steps with a capture of page faults."""
    made = replace(
        session_of(60), stacks=[of_text({"main;memset": 96, "main": 32}, event="page-faults", unit="page-faults")]
    )
    monkeypatch.setattr("stepscope.sessions.bundle.open_session", lambda path: made)
    path = tmp_path / "job.stepscope"
    path.mkdir()
    return path


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text("main;step;matmul 400\nmain;input 100\nmain;a 7\nmain;b 9\nmain;c 3\n")
    return path


def test_a_file_is_shown(folded: Path) -> None:
    """Text by default; ``show`` may be left out."""
    shown = flame(folded)
    assert shown.exit_code == 0
    assert "519 samples" in shown.output
    assert "   77 %    77 %  matmul\n" in shown.output
    assert flame("show", folded).output == shown.output


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)) * 40 + b" 12\n",
        b"\x93NUMPY\x01\x00" + b"".join(bytes([7 * i % 256, 0, 1, 31 * i % 256]) + b" 4\n" for i in range(600)),
        b"\x89PNG\r\n\x1a\n" + bytes(i * i % 251 for i in range(9000)) + b"\nab 3\n",
    ],
)
def test_binary_files_are_refused(tmp_path: Path, data: bytes) -> None:
    """Some parts of them end in a number; nothing of them reaches the terminal."""
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    with pytest.raises(FormatError, match="binary data of no known kind"):
        app_flame.choose(path)


@pytest.mark.parametrize(
    "text", ["a log line\nloss is 12\n" + "epoch done\n" * 40, "# heading\n" + "some words\n" * 90]
)
def test_text_without_stacks_is_refused(tmp_path: Path, text: str) -> None:
    """A log of which a line ends in a number is no folded file."""
    path = tmp_path / "log.txt"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"text of no known kind|no folded stacks"):
        app_flame.choose(path)


def _evented(path: Path, spans: list[tuple[str, float]], *, unit: str = "seconds") -> Path:
    """A profile of calls one after the other, as pyinstrument writes them."""
    names = list(dict.fromkeys(name for name, _ in spans))
    scale = {"seconds": 1.0, "microseconds": 1e6}[unit]
    events: list[dict[str, object]] = [{"type": "O", "frame": 0, "at": 0.0}]
    at = 0.0
    for name, lasts in spans:
        events.append({"type": "O", "frame": 1 + names.index(name), "at": at * scale})
        at += lasts
        events.append({"type": "C", "frame": 1 + names.index(name), "at": at * scale})
    events.append({"type": "C", "frame": 0, "at": at * scale})
    frames = [{"name": name} for name in ("main", *names)]
    profile = {"type": "evented", "name": "x", "unit": unit, "startValue": 0, "endValue": at * scale, "events": events}
    path.write_text(
        json.dumps(
            {
                "$schema": "https://www.speedscope.app/file-format-schema.json",
                "shared": {"frames": frames},
                "profiles": [profile],
            }
        )
    )
    return path


@pytest.mark.parametrize("unit", ["seconds", "microseconds"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([("load", 1.5), ("step", 3.0), ("imports", 4.0)], [("load", 6.0), ("step", 3.0), ("imports", 4.0)]),
        ([("load", 0.0101), ("step", 0.0203)] * 150, [("load", 0.0404), ("step", 0.0203)] * 150),
        ([("step", 2.0), ("load", 0.3)] * 4, [("step", 2.0), ("load", 1.2)] * 4),
    ],
)
def test_a_factor_of_four_is_found_in_spans(
    tmp_path: Path, before: list[tuple[str, float]], after: list[tuple[str, float]], unit: str
) -> None:
    """Whether a file has merged all of a function into one span or has each call, in whatever unit."""
    paths = [_evented(tmp_path / f"{i}.json", spans, unit=unit) for i, spans in enumerate((before, after))]
    found = app_flame.compare(paths[0], paths[1], event="", window=None, basis="work", work=None).difference
    assert "load" in {one.function.function for one in found.functions if one.own.significant}
    assert "step" not in {one.function.function for one in found.functions}


@pytest.mark.parametrize("seed", range(4))
def test_spans_of_one_program_do_not_differ(tmp_path: Path, seed: int) -> None:
    """A clock of microseconds is no sampler: a million of them are not a million samples."""
    random = np.random.default_rng(seed)
    paths = []
    for name in ("a", "b"):
        calls = [
            (f"f{i}", float(random.lognormal(-4.0, 0.6))) for i in range(8) for _ in range(int(random.poisson(25)))
        ]
        paths.append(_evented(tmp_path / f"{name}.json", calls, unit="microseconds"))
    found = app_flame.compare(paths[0], paths[1], event="", window=None, basis="work", work=None).difference
    assert not found.functions
    assert max(found.samples) < 2 * 8 * 25


def test_folded_microseconds_are_times(tmp_path: Path) -> None:
    """Weights as austin writes them: nearly all are some 10,000 times their divisor, so that is no count of samples."""
    random = np.random.default_rng(0)
    paths = []
    for name in ("a", "b"):
        lines = [f"main;f{i} {int(10_007 * random.poisson(20) + random.integers(1, 99))}" for i in range(60)]
        paths.append(tmp_path / name)
        paths[-1].write_text("\n".join(lines))
    found = app_flame.compare(paths[0], paths[1], event="", window=None, basis="work", work=None).difference
    assert not found.functions
    assert max(found.samples) < 5000


def test_steps_that_were_only_counted_are_steps(tmp_path: Path) -> None:
    """Of long steps the agent's looks take stacks in gaps, too: these are drawn, and their steps are in the work."""
    job = Job(ended_ns=130 * S)
    call = job.function(call_file=SCRIPT, call_line=9, call_function="main")
    for start in (0, 110 * S):
        call.every(100 * MS, 100, dur=60 * MS, start=start)
    job.gap(99 * 100 * MS + 61 * MS, 100 * S, 1000, Kind.FUNCTION)
    job.samples([i * 500 * MS + 10 * MS for i in range(240)], STEP, dur=500 * MS)
    made = job.session()
    chosen = app_flame.of_session(made, tmp_path)
    assert len(chosen.graph.profile.samples) > 220
    assert chosen.counts_steps
    assert chosen.work == pytest.approx(1200, rel=0.02)


def test_gaps_in_which_nothing_was_sampled_are_no_work(tmp_path: Path) -> None:
    """In gaps the agent samples pauses only: neither these nor the steps that were counted there are in the weights."""
    job = Job(ended_ns=130 * S)
    call = job.function(call_file=SCRIPT, call_line=9, call_function="main")
    for start in (0, 110 * S):
        call.every(100 * MS, 100, dur=60 * MS, start=start)
        job.samples([start + i * 100 * MS + 10 * MS for i in range(99)], STEP, dur=100 * MS)
    job.gap(99 * 100 * MS + 61 * MS, 100 * S, 900, Kind.FUNCTION)
    job.samples([60 * S + i * 90 * MS for i in range(100)], LOAD, dur=90 * MS)
    chosen = app_flame.of_session(job.session(), tmp_path)
    assert chosen.counts_steps
    assert chosen.work == pytest.approx(197, abs=2)
    assert len(chosen.graph.profile.samples) == pytest.approx(197, abs=2)
    assert "load" not in flame_text.render(chosen.graph)


@pytest.mark.parametrize("outside", [100, 400])
def test_few_samples_in_the_steps_are_not_drawn_alone(tmp_path: Path, outside: int) -> None:
    """Eleven samples say little: the whole run is drawn and says so; who asks for the steps gets them."""
    job = Job(ended_ns=60 * S)
    call = job.function(call_file=SCRIPT, call_line=9, call_function="main")
    call.every(100 * MS, 14, dur=60 * MS, start=50 * S)
    job.samples([50 * S + i * 100 * MS + 10 * MS for i in range(12)], STEP)
    job.samples([i * 100 * MS for i in range(outside)], LOAD)
    made = job.session()
    chosen = app_flame.of_session(made, tmp_path)
    assert len(chosen.graph.profile.samples) == outside + 12
    assert not chosen.counts_steps
    assert "of its samples lie in the steady steps" in flame_text.render(chosen.graph)
    assert len(app_flame.of_session(made, tmp_path, window="steady").graph.profile.samples) <= 12


def test_every_output_by_its_ending(folded: Path, tmp_path: Path) -> None:
    """Several at once; the files hold what the profile holds."""
    names = ["x.html", "x.svg", "x.folded", "x.speedscope.json", "x.pb.gz"]
    done = flame(folded, *(part for name in names for part in ("-o", tmp_path / name)))
    assert done.exit_code == 0
    assert [Path(line.split("  ")[0]).name for line in done.output.splitlines()] == names
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "x.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "x.speedscope.json").read_text())["exporter"] == "stepscope"
    assert gzip.decompress((tmp_path / "x.pb.gz").read_bytes())
    for name in names[2:]:
        assert detect.read_file(tmp_path / name)[0].total == 519


def test_a_session_shows_its_steady_steps(session: Path) -> None:
    """Without asking: Python within steady steps, what lies outside is counted; or all of it."""
    shown = flame(session, "--event", "python")
    assert shown.exit_code == 0
    assert "steady steps of" in shown.output
    assert "% of the samples are outside them" in shown.output
    assert "load" not in shown.output
    assert "load" in flame(session, "--event", "python", "--window", "all").output


def test_samples_outside_the_steady_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A profile none of whose samples lies in a steady step shows all of them and says so."""
    job = Job(ended_ns=6_600 * MS)
    job.function(call_file=SCRIPT, call_line=9, call_function="main").every(100 * MS, 60, dur=60 * MS, start=500 * MS)
    job.samples([50 * MS, 100 * MS], LOAD)
    monkeypatch.setattr("stepscope.sessions.bundle.open_session", lambda _: job.session())
    shown = flame(tmp_path)
    assert "load" in shown.output
    assert "the whole run: no sample of python lies in the" in shown.output
    assert isinstance(flame(tmp_path, "--window", "steady").exception, UsageError)


def test_steady_steps_of_a_job_that_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its end is not known yet, so that its sampling lasts to its last record; its steps are not zero."""
    made = session_of(60)
    workers = [replace(one, info=msgspec.structs.replace(one.info, ended_ns=-1)) for one in made.workers]
    manifest = msgspec.structs.replace(made.manifest, state="running", ended_ns=0)
    running = replace(made, manifest=manifest, workers=workers)
    monkeypatch.setattr("stepscope.sessions.bundle.open_session", lambda _: running)
    said = flame(tmp_path).output
    assert re.search(r"window +[1-9]\d* steady steps of ", said)


def test_events_of_a_session(session: Path) -> None:
    """Python where there is no CPU time; others by name; an unknown one is refused with those that are there."""
    assert flame(session).output.startswith("python ")
    faults = flame(session, "--event", "page-faults")
    assert "128 page-faults" in faults.output
    refused = flame(session, "--event", "off-cpu")
    assert isinstance(refused.exception, UsageError)
    assert "page-faults, python" in str(refused.exception)


def test_the_event_of_a_file_that_names_none(folded: Path) -> None:
    """--event says what a folded file is of: counts are no times then."""
    shown = flame(folded, "--event", "page-faults")
    assert shown.output.startswith("page-faults   519 samples, 519 page-faults")


def test_sessions_are_compared_per_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Twice as long a run of the same program is no difference; more per step is one.

    Samples that stand for half of the steps' time, as looks at short windows do, give all of it.
    """
    made = {"short": session_of(150), "long": session_of(300), "slow": session_of(150, extra=1)}
    monkeypatch.setattr("stepscope.sessions.bundle.open_session", lambda path: made[Path(path).name])
    for name in made:
        (tmp_path / name).mkdir()
    same = flame("diff", tmp_path / "short", tmp_path / "long")
    assert same.exit_code == 0
    assert same.output.startswith("No significant change in python")
    assert "Weights are per step: the samples stand for 74 and 149 steps" in same.output
    assert "Total 100 ms \u2192 100 ms per step (+0 %), within noise" in same.output
    assert "These samples do not show that a function has gone, unless it takes" in same.output
    slower = flame("diff", tmp_path / "short", tmp_path / "slow")
    assert not slower.output.startswith("No significant change")
    assert "Total 100 ms \u2192 200 ms per step (+100 %), beyond noise" in slower.output


@pytest.mark.parametrize(("inside", "said"), [(12, "per step"), (0, "Whole runs are compared")])
def test_a_run_with_few_samples_is_compared_by_its_steps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, inside: int, said: str
) -> None:
    """Its whole run is drawn, but compared are steps; without any sample in these it is said what is compared."""
    made = []
    for steps in (14, 140):
        job = Job(ended_ns=80 * S)
        call = job.function(call_file=SCRIPT, call_line=9, call_function="main")
        call.every(100 * MS, steps, dur=60 * MS, start=50 * S)
        job.samples([50 * S + i * 100 * MS + 10 * MS for i in range(inside * steps // 14)], STEP)
        job.samples([i * 100 * MS for i in range(400)], LOAD)
        made.append(job.session())
    for number in range(2):
        (tmp_path / str(number)).mkdir()
    monkeypatch.setattr("stepscope.sessions.bundle.open_session", lambda path: made[int(Path(path).name)])
    output = flame("diff", tmp_path / "0", tmp_path / "1").output
    assert output.startswith("No significant change in python")
    assert said in output


def test_files_are_compared(folded: Path, tmp_path: Path) -> None:
    """As text and as pictures; a difference fits into no other format."""
    other = tmp_path / "b.txt"
    other.write_text(folded.read_text().replace("input 100", "input 300"))
    assert flame("diff", folded, folded).output.startswith("No significant change")
    found = flame("diff", folded, other)
    assert found.output.startswith("samples: input +200 % beyond sampling noise")
    assert flame("diff", folded, other, "-o", tmp_path / "d.html", "-o", tmp_path / "d.svg").exit_code == 0
    assert isinstance(flame("diff", folded, other, "-o", tmp_path / "d.folded").exception, UsageError)


def test_work_that_differs_is_told(folded: Path, tmp_path: Path) -> None:
    """Three times the weights of three times the work are no change."""
    other = tmp_path / "b.txt"
    other.write_text(
        "".join(f"{stack} {3 * weight:.0f}\n" for stack, weight in lines_of(detect.read_file(folded)[0]).items())
    )
    assert not flame("diff", folded, other).output.startswith("No significant")
    assert flame("diff", folded, other, "--work", "1", "3").output.startswith("No significant")
    assert flame("diff", folded, other, "--by", "share").output.startswith("No significant")


def test_percentages_are_those_of_the_figures_shown(tmp_path: Path) -> None:
    """Twice the work, all functions faster by as much as a host may be, one by far more, one as slow as before."""
    before = {f"main;f{i}": 400 for i in range(8)} | {"main;same": 399, "main;much": 800, "main;one": 1}
    after = {f"main;f{i}": 640 for i in range(8)} | {"main;same": 799, "main;much": 160, "main;one": 1}
    for name, stacks in (("a.txt", before), ("b.txt", after)):
        (tmp_path / name).write_text("".join(f"{stack} {weight}\n" for stack, weight in stacks.items()))
    args = ("diff", tmp_path / "a.txt", tmp_path / "b.txt", "--event", "cpu")
    output = flame(*args, "--work", "100", "200").output
    assert "much  self 8 \u2192 0.8 cpu per unit of work (-90 %)" in output
    assert "most functions of the second are 20 % faster: this is put down to the host" in output
    assert "Total 44 \u2192 30.4 cpu per unit of work (-31 %), beyond noise" in output
    shares = flame(*args, "--by", "share").output
    assert "much  self 18.2 % \u2192 2.63 % (-86 %)" in shares


@pytest.mark.parametrize(
    ("args", "kind", "said"),
    [
        (["missing.txt"], FormatError, "cannot be read"),
        (["a.txt", "-o", "x.pdf"], UsageError, "unknown extension"),
        (["a.txt", "-o", "nowhere/x.svg"], UsageError, "cannot be written"),
        (["a.txt", "--window", "all"], UsageError, "needs a session"),
        (["empty"], SessionError, "manifest.json"),
    ],
)
def test_refusals(
    args: list[str], kind: type[Exception], said: str, folded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line each, before anything is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert folded.exists()
    failed = flame(*args)
    assert isinstance(failed.exception, kind)
    assert said in str(failed.exception)
    assert "\n" not in str(failed.exception)


def test_two_events_are_not_compared(session: Path, tmp_path: Path) -> None:
    """Faults and times have nothing to do with each other."""
    other = tmp_path / "p.txt"
    other.write_text("a 1/1 5.0001: 1 cpu-clock: \n\t 1 f+0x1 (/a)\n\n")
    failed = flame("diff", session, other, "--event", "page-faults")
    assert isinstance(failed.exception, UsageError)


def test_the_hottest_functions(folded: Path) -> None:
    """The functions that used the most, one a line, for the end of a report."""
    shown = flame_text.hottest(app_flame.choose(folded).graph, 2)
    assert shown == "hot          77 %  matmul\n             19 %  input\n"
