"""What agents are told in files: every command of the skill runs, and every link of llms.txt leads somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from stepscope.cli.main import cli

from .sessions import starving

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
SKILL = ROOT / "skills" / "stepscope" / "SKILL.md"
COMMAND = re.compile(r"^    stepscope (.*)$", re.MULTILINE)
TRAIN = "import time, stepscope\nfor _ in range(40):\n    stepscope.step()\n    time.sleep(0.01)\n"
INLINE = re.findall(r"`stepscope ([^`]+)`", SKILL.read_text(encoding="utf-8"))
WORDS = [shlex.split(line) for line in COMMAND.findall(SKILL.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A program, and the sessions that its two runs would have made."""
    folder = tmp_path_factory.mktemp("skill")
    (folder / "train.py").write_text(TRAIN)
    starving(folder / "base.stepscope")
    starving(folder / "changed.stepscope", wait_ms=9)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.mark.parametrize("words", [words for words in WORDS if words[0] != "run"], ids=" ".join)
def test_every_command_of_the_skill_runs(folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As it stands there, and it prints something."""
    assert cli.main(words, prog_name="stepscope", standalone_mode=False) in {None, 0, 1}
    assert capsys.readouterr().out


@pytest.mark.parametrize("line", INLINE)
def test_commands_within_sentences_are_ones(folder: Path, line: str) -> None:
    """Those that would start long runs or servers are at least understood."""
    name, *rest = shlex.split(line)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    command.make_context(name, rest)


def test_the_run_of_the_skill_makes_its_session(folder: Path) -> None:
    """Each run names its session, and is the same but for that name."""
    first, second = (words for words in WORDS if words[0] == "run")
    assert [word.replace("base", "changed") for word in first] == second
    again = [word.replace("base", "again") for word in first]
    subprocess.run([sys.executable, "-m", "stepscope", *again], cwd=folder, check=True, capture_output=True)
    assert (folder / "again.stepscope" / "report.json").is_file()


def test_the_skill_has_the_form_of_one() -> None:
    """Front matter with a name, that of its folder, and a description that says when to use it."""
    _, front, body = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert fields["name"] == SKILL.parent.name
    assert "Use when" in fields["description"]
    assert len(fields["description"]) <= 1024
    assert len(body.splitlines()) <= 500
    for word in ("ceiling", "What not to conclude", "Prove"):
        assert word in body


def test_llms_txt_has_its_form_and_its_links_lead_somewhere() -> None:
    """A title, a summary, and sections of links with a line each."""
    page = ROOT / "docs" / "llms.txt"
    title, blank, summary, *rest = page.read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ")
    assert not blank
    assert summary.startswith("> ")
    links = [re.fullmatch(r"- \[[^\]]+\]\(([^)]+)\): .+", line) for line in rest if line.startswith("-")]
    assert len(links) > 10
    assert all(link is not None and (page.parent / link[1]).exists() for link in links)
