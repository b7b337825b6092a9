"""The command ``compare``: how sides are named, exit codes, formats, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.derive.sessions import MS
from tests.use_cases.compared_sessions import session

from stepscope.cli import main
from stepscope.model.session.session import Session
from stepscope.tables.errors import SessionError, UsageError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders ``base`` and ``new`` of three sessions each, the new ones slower by half, and an empty one."""
    for side in ("base", "new", "none"):
        (tmp_path / side).mkdir()
    for side in ("base", "new"):
        for number in range(3):
            path = tmp_path / side / f"{number}.stepscope"
            path.mkdir()
            (path / "manifest.json").write_text("{}")
            path.with_suffix(".log").write_text("output of the job")
    step_ns = {"base": 100 * MS, "new": 150 * MS}

    def opened(path: Path) -> Session:
        number = int(path.name[0])
        return session(step_ns=step_ns[path.parent.name] * (1 + number / 200), seed=number)

    monkeypatch.setattr("stepscope.sessions.bundle.open_session", opened)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*args: str) -> Result:
    """The command, in this process."""
    return CliRunner().invoke(main.cli, ["compare", *args], standalone_mode=False)


@pytest.mark.parametrize(
    "words",
    [
        ("base", "new"),
        ("base/*.stepscope", "new/*"),
        ("--a", "base/0.stepscope", "--a", "base/1.stepscope", "--a", "base", "--b", "new"),
    ],
)
def test_sides_are_folders_patterns_or_lists(folder: Path, words: tuple[str, ...]) -> None:
    """Each session counts once, and the exit code says that B is slower."""
    done = invoke(*words, "--fail-over", "5%", "--format", "json")
    assert done.exception is None
    report = json.loads(done.output)
    assert (len(report["before"]), len(report["after"])) == (3, 3)
    assert (report["main"]["verdict"], done.return_value) == ("slower", 1)


def test_without_a_limit_nothing_is_judged(folder: Path) -> None:
    """The exit code is 0, however much slower B is."""
    done = invoke("base", "new")
    assert (done.return_value, done.exception) == (0, None)
    assert "B is slower" in done.output


def test_output_goes_to_a_file_by_its_extension(folder: Path) -> None:
    """``-o`` with .md writes Markdown, and nothing to the terminal."""
    done = invoke("base", "new", "-o", "found.md")
    assert done.output == ""
    assert (folder / "found.md").read_text().startswith("## stepscope: ")


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (("base", "base"), UsageError, "is on both sides"),
        (("base",), UsageError, "1 paths, 0 --a, 0 --b; expected two sides"),
        (("base", "new", "--a", "base"), UsageError, "expected two sides"),
        (("base", "none"), SessionError, "B: none holds no session"),
        (("missing", "new"), SessionError, "A: missing: no such session"),
        (("base", "new", "--fail-over", "much"), UsageError, "--fail-over much"),
        (("base", "new", "-o", "none/such/file.md"), UsageError, "cannot be written"),
    ],
)
def test_bad_command_lines(folder: Path, words: tuple[str, ...], error: type[Exception], said: str) -> None:
    """One clear line for each."""
    done = invoke(*words)
    assert isinstance(done.exception, error)
    assert said in str(done.exception)
