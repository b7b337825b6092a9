"""The command line's frame: help, version, errors."""

import subprocess
import sys

import click
import pytest

from stepscope import __version__
from stepscope.cli.main import COMMANDS, cli

from .conftest import Project, environment


@pytest.mark.parametrize("name", list(COMMANDS))
def test_list_of_commands_says_what_they_say(name: str) -> None:
    """The line in the list, which loads nothing, is the command's own."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.short_help == COMMANDS[name][1]


def test_version_and_help_load_nothing_heavy(project: Project) -> None:
    """``--version`` and ``--help`` answer without numpy, pyarrow, msgspec or rich."""
    code = (
        "import sys; from stepscope.cli.main import main\n"
        "try: main()\n"
        "finally: print([m for m in ('numpy', 'pyarrow', 'msgspec', 'rich') if m in sys.modules])"
    )
    for option in ("--version", "--help"):
        done = subprocess.run(
            [sys.executable, "-c", code, option], env=environment(), capture_output=True, text=True, check=True
        )
        assert done.stdout.endswith("[]\n")
    assert project.run("--version").stdout == f"stepscope {__version__}\n"


def test_internal_error_is_one_line(project: Project) -> None:
    """What nobody expected gives one line with the place of the traceback, and exit code 70."""
    code = (
        "import sys, stepscope.use_cases.record as r, stepscope.cli.main as m\n"
        "def fail(options): raise KeyError('inside')\n"
        "r.record = fail\n"
        "m.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "--", "true"],
        env=environment(TMPDIR=str(project.root)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 70
    assert done.stderr.startswith("stepscope: internal error: KeyError: 'inside'; traceback: ")
    (kept,) = project.root.glob("stepscope-error-*")
    assert str(kept) in done.stderr
    assert "raise KeyError('inside')" in kept.read_text() or "in fail" in kept.read_text()


def test_closed_pipe_is_no_error(project: Project) -> None:
    """A reader that goes away ends the command silently."""
    done = subprocess.run(
        ["sh", "-c", '"$0" -m stepscope --help | true', sys.executable],
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
