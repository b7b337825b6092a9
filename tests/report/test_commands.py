"""The commands ``stepscope report`` and ``stepscope rule``, and the commands that reports name."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from stepscope.check import registry as checker_registry
from stepscope.cli import main, rule
from stepscope.cli.progress import Progress
from stepscope.detectors import registry
from stepscope.model.session.session import Session
from stepscope.report import html, markdown, text
from stepscope.sessions import analysis
from stepscope.tables.errors import SessionError, UsageError
from stepscope.use_cases import rendering

if TYPE_CHECKING:
    from types import ModuleType

NAMED = re.compile(r"\bstepscope ([a-z][a-z-]*)")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, samples: ModuleType, tmp_path: Path) -> Path:
    """A path that is analysed to the sample of an input-bound job."""
    monkeypatch.setattr(analysis, "analyze", lambda path: samples.input_bound())
    monkeypatch.setattr(rendering, "open_session", lambda path: empty(samples.SOURCE))
    monkeypatch.setattr("stepscope.sessions.bundle.open_session", lambda path: empty(samples.SOURCE))
    return tmp_path / "train.stepscope"


def empty(source: str) -> Session:
    """A session that holds a source and nothing else."""
    from stepscope.model.session.session import Manifest

    return Session(manifest=Manifest(), sources={"/home/ann/train.py": source})


def call(*words: str) -> Any:
    """The outcome of a command line; exceptions come through."""
    return CliRunner().invoke(main.cli, list(words), catch_exceptions=False, standalone_mode=False)


def test_named_commands_exist(samples: ModuleType) -> None:
    """Every ``stepscope X`` that a report prints is a command."""
    named: set[str] = set()
    for build in samples.SAMPLES.values():
        shown = text.render(build(), session_path="a b.stepscope", html_path="x/report.html")
        named |= set(NAMED.findall(re.sub(r"^stepscope ", "", shown, flags=re.MULTILINE)))
        named |= {n for code in re.findall(r"<code>(.*?)</code>", html.render(build())) for n in NAMED.findall(code)}
        named |= {n for code in re.findall(r"`(.*?)`", markdown.render(build())) for n in NAMED.findall(code)}
    assert named
    assert named <= set(main.COMMANDS)


def test_detectors_name_existing_commands() -> None:
    """Every ``stepscope X`` in the documentation of a detector is a command."""
    named = {name for detector in registry.EVERY for name in re.findall(r"`stepscope ([a-z-]+)", detector.doc)}
    assert named <= set(main.COMMANDS)


def test_text(session: Path) -> None:
    """Text comes on stdout, plain where that is no terminal."""
    shown = call("report", str(session)).stdout
    assert shown.startswith("stepscope   Input-bound: 61 %")
    assert len(shown.splitlines()) <= 12
    assert "\x1b" not in shown
    assert "report      stepscope report " in shown
    assert call("report", str(session), "-v").stdout.startswith("stepscope   600 steps")


@pytest.mark.parametrize(
    ("form", "start"),
    [("json", '{\n "schema"'), ("html", "<!doctype html>"), ("md", "## stepscope: `python train.py`")],
)
def test_formats(session: Path, tmp_path: Path, form: str, start: str) -> None:
    """Each format comes on stdout, or into a file whose ending names it."""
    shown = call("report", str(session), "--format", form).stdout
    assert shown.startswith(start)
    target = tmp_path / f"out.{form}"
    assert call("report", str(session), "-o", str(target)).stdout == ""
    assert target.read_text(encoding="utf-8") == shown


def test_json_is_the_report(session: Path, samples: ModuleType) -> None:
    """The JSON on stdout is one document."""
    data = json.loads(call("report", str(session), "--format", "json").stdout)
    assert data["findings"][0]["code"] == samples.input_bound().findings[0].code


def test_brief_json(session: Path) -> None:
    """The short form is JSON of at most 4,000 bytes; it is refused for other formats."""
    shown = call("report", str(session), "--format", "json", "--brief").stdout
    assert len(shown.encode()) <= 4000
    assert json.loads(shown)["schema"] == "stepscope.brief/1"
    for words in (["--brief"], ["--brief", "--format", "md"], ["--brief", "--format", "json", "--step", "3"]):
        with pytest.raises(UsageError, match="--format json"):
            call("report", str(session), *words)


def test_sources_are_shown(session: Path) -> None:
    """The page and the Markdown show the code of the session."""
    for form in ("html", "md"):
        assert "def make_dataset():" in call("report", str(session), "--format", form).stdout


def test_unwritable_output(session: Path, tmp_path: Path) -> None:
    """A file that cannot be written is a usage error that names it."""
    with pytest.raises(UsageError, match=r"nowhere/x\.html cannot be written: No such file"):
        call("report", str(session), "-o", str(tmp_path / "nowhere" / "x.html"))


def test_no_session(tmp_path: Path) -> None:
    """A path without a session is a session error in one line."""
    with pytest.raises(SessionError) as error:
        call("report", str(tmp_path / "none.stepscope"))
    assert "none.stepscope" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("detector", registry.EVERY, ids=lambda d: d.code)
def test_rule(detector: Any) -> None:
    """Each detector is explained, by its code in any case and by its name, without marks of Markdown headings."""
    shown = call("rule", detector.code.lower()).stdout
    assert shown.startswith(f"{detector.code} {detector.name}\n\n")
    assert "\nWhat it detects\n" in shown
    assert "\n#" not in shown
    assert call("rule", detector.name).stdout == shown


def test_rules_are_listed() -> None:
    """Without a code every detector and every rule is listed, sorted by code."""
    lines = call("rule").stdout.splitlines()
    assert all(len(line.split(None, 2)[2]) > 20 for line in lines)
    assert [line.split()[:2] for line in lines] == sorted(
        [*([d.code, d.name] for d in registry.EVERY), *([r.code, r.name] for r in checker_registry.ALL)]
    )


def test_unknown_rule() -> None:
    """An unknown code is answered with near ones, or with how to see them all."""
    with pytest.raises(UsageError, match=r"no rule or detector is called 'inp03'; did you mean .*INP003"):
        call("rule", "inp03")
    assert rule.unknown("zzz", ["INP003"]) == "no rule or detector is called 'zzz'; list all: stepscope rule"


def test_no_text_under_another_name(session: Path, tmp_path: Path) -> None:
    """A file whose extension is of no format is not written; with --format it is."""
    refused = CliRunner().invoke(main.cli, ["report", str(session), "-o", str(tmp_path / "x.pdf")])
    assert isinstance(refused.exception, UsageError)
    assert ".html" in str(refused.exception)
    assert not (tmp_path / "x.pdf").exists()
    done = CliRunner().invoke(main.cli, ["report", str(session), "-o", str(tmp_path / "x.pdf"), "--format", "md"])
    assert done.exit_code == 0
    assert (tmp_path / "x.pdf").read_text().startswith("## stepscope")


def test_the_latest_session(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without SESSION: the one of the folder that was written last; without any, how to make one."""
    monkeypatch.chdir(session.parent)
    monkeypatch.setenv("STEPSCOPE_SESSIONS", str(session.parent / "none"))
    with pytest.raises(SessionError, match=r"no session in the current folder or .*stepscope run"):
        call("report")
    for number, name in enumerate(("b.stepscope", "a.stepscope", "c.stepscope")):
        (session.parent / name).mkdir()
        (session.parent / name / "manifest.json").touch()
        os.utime(session.parent / name / "manifest.json", (0, 10 - abs(number - 1)))
    (session.parent / "no.stepscope").mkdir()
    done = call("report")
    assert done.stderr == "stepscope: a.stepscope\n"
    assert done.stdout.startswith("stepscope   Input-bound: 61 %")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("rep", "no such command 'rep'; did you mean report?"),
        ("atach", "did you mean attach or trace?"),
        ("train.py", "did you mean: stepscope run train.py?"),
        ("zzzz", "no such command 'zzzz'"),
    ],
)
def test_unknown_command(word: str, said: str) -> None:
    """A slip is answered with what may have been meant."""
    assert main.unknown_command(word).endswith(said)


def test_progress_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """What takes long is said on stderr, a line each time where that is no terminal."""
    progress = Progress("reading a.pb")
    progress.draw(2.2)
    progress.say("analysing")
    progress.draw(12.0)
    assert capsys.readouterr() == ("", "stepscope: reading a.pb \u00b7 2 s\nstepscope: analysing \u00b7 12 s\n")
