"""``stepscope flame``: which profile is chosen, what is written, what is refused."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.derive.stack_profiles import lines_of, of_text

from stepscope.app import flame as app_flame
from stepscope.cli import main
from stepscope.errors import FormatError, SessionError, UsageError
from stepscope.formats.stacks import detect
from stepscope.model.session.session import Session
from stepscope.reports.flame import text as flame_text

STEP = Frame(SCRIPT, "step", 9)
LOAD = Frame(SCRIPT, "load", 3)


def flame(*args: str | Path) -> Result:
    return CliRunner().invoke(main.cli, ["flame", *map(str, args)])


def session_of(steps: int, *, extra: int = 0) -> Session:
    """Steps of 100 ms with a sample in each, after half a second of loading; ``extra`` more samples in each step."""
    job = Job(ended_ns=(steps * 100 + 600) * MS)
    job.function(call_file=SCRIPT, call_line=9, call_function="main").every(
        100 * MS, steps, dur=60 * MS, start=500 * MS
    )
    job.samples([50 * MS, 100 * MS], LOAD)
    for number in range(1 + extra):
        job.samples([500 * MS + i * 100 * MS + 10 * MS + number for i in range(steps)], STEP)
    return job.session()


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A session's directory that is read as a job of sixty steps with a capture of page faults."""
    made = replace(
        session_of(60), stacks=[of_text({"main;memset": 96, "main": 32}, event="page-faults", unit="page-faults")]
    )
    monkeypatch.setattr("stepscope.app.bundle.open_session", lambda path: made)
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
    monkeypatch.setattr("stepscope.app.bundle.open_session", lambda _: job.session())
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
    monkeypatch.setattr("stepscope.app.bundle.open_session", lambda _: running)
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
    """Twice as long a run of the same program is no difference; more per step is one."""
    made = {"short": session_of(150), "long": session_of(300), "slow": session_of(150, extra=1)}
    monkeypatch.setattr("stepscope.app.bundle.open_session", lambda path: made[Path(path).name])
    for name in made:
        (tmp_path / name).mkdir()
    same = flame("diff", tmp_path / "short", tmp_path / "long")
    assert same.exit_code == 0
    assert same.output.startswith("No significant change in python")
    assert "per unit of work" in same.output
    slower = flame("diff", tmp_path / "short", tmp_path / "slow")
    assert not slower.output.startswith("No significant change")


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
