"""``stepscope export``: which file is written, of which range, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S
from tests.web import recorded
from tests.web.timeline_sessions import stored

from stepscope.cli import main
from stepscope.derive.view import SessionView
from stepscope.exporters import perfetto
from stepscope.readers.stacks import detect
from stepscope.sessions.bundle import open_session
from stepscope.tables.errors import SessionError, UsageError
from stepscope.use_cases import export as use_case

LOAD, WORK = Frame(SCRIPT, "load", 3), Frame(SCRIPT, "step", 9)


def export(*args: str | Path) -> Result:
    return CliRunner().invoke(main.cli, ["export", *map(str, args)])


def failed(*args: str | Path) -> str:
    """The line of a usage error."""
    error = export(*args).exception
    assert isinstance(error, UsageError)
    assert "\n" not in str(error)
    return str(error)


@pytest.fixture(scope="module", name="session")
def _session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty steps of 100 ms, the fortieth of 600, a sample in each after half a second of loading."""
    job = Job(ended_ns=8 * S)
    work = job.function()
    for number in range(60):
        at = 500 * MS + number * 100 * MS + (500 * MS if number > 40 else 0)
        work.at(at, 590 * MS if number == 40 else 90 * MS)
        job.samples([at + 10 * MS], WORK)
    job.samples([50 * MS, 100 * MS], LOAD)
    return recorded.write(job.session(), tmp_path_factory.mktemp("export") / "job.stepscope").path


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_files_are_named_after_the_session(session: Path, tmp_path: Path) -> None:
    """In the current folder, in the format that was asked for; the line says what is in them."""
    done = export(session, "--to", "perfetto")
    assert done.exit_code == 0
    assert done.stdout.startswith("job.pftrace  ")
    assert "spans" in done.stdout
    for form, ending in (("speedscope", ".speedscope.json"), ("folded", ".folded")):
        assert export(session, "--to", form, "--range", "all").exit_code == 0
        (profile,) = detect.read((tmp_path / f"job{ending}").read_bytes(), where=ending)
        assert {frame.function for frame in profile.frames} >= {"load", "step"}


def test_ranges_are_those_of_other_commands(session: Path) -> None:
    """Steady and slowest steps, one step, and seconds; of stacks and of spans."""
    view = SessionView(open_session(session))
    steps = view.steps
    assert steps is not None
    slowest = int(steps.durations.argmax())
    place = (int(steps.starts[slowest]), int(steps.ends[slowest]))
    assert use_case._range(view, "slowest") == use_case._range(view, f"step:{slowest}") == place
    assert use_case._range(view, "steady") == steps.span
    assert use_case._range(view, "0.5s-2") == (S // 2, 2 * S)
    done = use_case.export(use_case.ExportOptions(session=session, form="folded", range="0-0.4"))
    assert {frame.function for frame in detect.read(done.path.read_bytes(), where="f")[0].frames} == {
        "MainThread",
        "load",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--range", "5-4"), "it ends before it begins"),
        (("--range", "soon"), "expected all, steady, slowest, step:N, or FROM-TO in seconds"),
        (("--range", "step:99999"), "step 99999: expected a number from 0 to"),
        (("--range", "900-901"), "no span lies in --range 900-901"),
        (("--event", "cpu"), "--event chooses sampled stacks"),
        (("-o", "nowhere/x"), "there is no folder nowhere"),
        (("-o", "."), "it is a folder"),
    ],
)
def test_what_cannot_be_is_one_line(session: Path, arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """A usage error, and no file, not even a part of one."""
    assert said in failed(session, "--to", "perfetto", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_session_without_stacks_or_steps(tmp_path: Path) -> None:
    """Says what is missing; no session is another error."""
    path = stored(tmp_path)
    assert "no sample of python lies in the range" in failed(path, "--to", "folded", "--range", "0-0.000000001")
    job = Job()
    job.function().at(0, MS)
    empty = recorded.write(job.session(), tmp_path / "empty.stepscope").path
    assert "no sampled stacks" in failed(empty, "--to", "folded")
    assert "no steady steps" in failed(empty, "--to", "perfetto", "--range", "steady")
    assert isinstance(export(tmp_path / "none", "--to", "perfetto").exception, SessionError)


def test_parquet_is_a_new_folder(session: Path, tmp_path: Path) -> None:
    """Of four tables; one that is there is refused, and left as it is."""
    done = export(session, "--to", "parquet")
    assert (done.exit_code, "60 steps" in done.stdout) == (0, True)
    folder = tmp_path / "job-parquet"
    assert sorted(one.stem for one in folder.iterdir()) == ["findings", "ops", "spans", "steps"]
    assert "already exists; expected a new folder" in failed(session, "--to", "parquet")
    assert list(tmp_path.iterdir()) == [folder]


def test_a_failure_leaves_the_file_that_was_there(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is replaced whole; a full disk is a usage error."""
    path = tmp_path / "job.pftrace"
    path.write_bytes(b"old")

    def full(_view: SessionView, stream: object, _within: object) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(perfetto, "write", full)
        assert "No space left on device" in failed(session, "--to", "perfetto")
    assert (path.read_bytes(), [one.name for one in tmp_path.iterdir()]) == (b"old", ["job.pftrace"])
    assert export(session, "--to", "perfetto", "--range", "0-1").exit_code == 0
    assert path.read_bytes() != b"old"
