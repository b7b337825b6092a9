"""The command line: one group whose commands are listed by hand and loaded on demand.

The only place that turns an error into a line on stderr and an exit code (docs/exit-codes.md).
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import time
import traceback

import click

from stepscope._version import __version__
from stepscope.native.garbage import collect_less
from stepscope.tables.errors import StepscopeError

COMMANDS = {
    "run": ("stepscope.cli.run:run", "Measure a job and report why it is slow."),
    "whatif": ("stepscope.cli.whatif:whatif", "Try changes on a job without touching its code."),
    "fix": ("stepscope.cli.fix:fix", "Apply fixes that are proved to gain, as a patch."),
    "compare": ("stepscope.cli.compare:compare", "Compare two sessions or groups of sessions; fail if one is slower."),
    "ps": ("stepscope.cli.ps:ps", "List running jobs that are being measured."),
    "top": ("stepscope.cli.ps:top", "Watch a running job."),
    "trace": ("stepscope.cli.trace:trace", "Capture some steps of a running job."),
    "attach": ("stepscope.cli.attach:attach", "Examine a running process that was started without stepscope."),
    "enable": ("stepscope.cli.enable:enable", "Measure every job of an environment."),
    "disable": ("stepscope.cli.enable:disable", "Undo enable."),
    "report": ("stepscope.cli.report:report", "Show the report of a session."),
    "view": ("stepscope.cli.view:view", "Serve sessions and running jobs: web page and REST."),
    "flame": ("stepscope.cli.flame:flame", "Draw flame graphs; compare two beyond noise."),
    "doctor": ("stepscope.cli.doctor:doctor", "Check the machine and the environment, without a job."),
    "memory": ("stepscope.cli.memory:memory", "Draw an address space: huge pages, mappings, faults."),
    "check": ("stepscope.check.cli.check:check", "Check sources for slow code."),
    "lsp": ("stepscope.check.cli.lsp:lsp", "Serve an editor: findings and quick fixes."),
    "mcp": ("stepscope.cli.mcp:mcp", "Serve a coding agent: diagnose, look, prove, check."),
    "rule": ("stepscope.cli.rule:rule", "Explain a finding's code."),
    "import": ("stepscope.cli.import_:import_", "Make a session from other tools' traces."),
    "export": ("stepscope.cli.export:export", "Write a session as a file of another tool."),
    "merge": ("stepscope.cli.merge:merge", "Join the sessions of one job's members."),
    "gather": ("stepscope.cli.gather:gather", "Gather the sessions of many hosts in one place."),
    "fleet": ("stepscope.cli.fleet.commands:fleet", "Ask many sessions: what costs most, who has it."),
    "pack": ("stepscope.cli.pack:pack", "Pack a session into one file."),
    "unpack": ("stepscope.cli.pack:unpack", "Unpack a packed session."),
}
"""Name: module and attribute, and its line in --help; a test compares that line with the command's short help."""

INTERNAL_ERROR = 70


class LazyGroup(click.Group):
    """Load a command's module when the command is called; ``--help`` and ``--version`` load none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of ``COMMANDS``."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command object."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name][0]} is not a command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the words name.

        Raises:
            click.UsageError: there is none; it names near ones.
        """
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(unknown_command(args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


def unknown_command(word: str) -> str:
    """No such command, and those that may have been meant: an abbreviation, a slip, or a file to run."""
    near = [name for name in COMMANDS if len(word) > 1 and name.startswith(word)]
    near += [name for name in difflib.get_close_matches(word, COMMANDS, n=3) if name not in near]
    said = f"no such command {word!r}"
    if near:
        return f"{said}; did you mean {' or '.join(near)}?"
    return f"{said}; did you mean: stepscope run {word}?" if word.endswith(".py") else said


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="stepscope", message="%(prog)s %(version)s")
def cli() -> None:
    """Find out why a deep-learning job is slow, and prove that the fix works."""


def main() -> None:
    """Entry point of ``stepscope``."""
    _open_closed_streams()
    collect_less()
    try:
        code = cli.main(prog_name="stepscope", standalone_mode=False)
    except click.ClickException as error:
        _say(_click_line(error))
        sys.exit(64)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except StepscopeError as error:
        _say(f"stepscope: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
    except Exception as error:  # noqa: BLE001 - the last wall: one line, with the traceback in a file
        _say(f"stepscope: internal error: {type(error).__name__}: {error}; {_keep_traceback()}")
        sys.exit(INTERNAL_ERROR)
    sys.exit(code if isinstance(code, int) else 0)


def _open_closed_streams() -> None:
    """Put /dev/null behind standard streams that are closed: pipes of ours would get their numbers.

    A job still finds them closed: none of these descriptors passes an exec.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: its own
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def _click_line(error: click.ClickException) -> str:
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "stepscope"
    return f"stepscope: {error.format_message()} (see: {command} --help)"


def _say(text: str) -> None:
    click.echo(text, err=True)


def _keep_traceback() -> str:
    import tempfile

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix=f"stepscope-error-{time.strftime('%m%d-%H%M%S')}-", suffix=".txt", delete=False
        ) as stream:
            traceback.print_exc(file=stream)
    except OSError as error:
        return f"its traceback could not be written: {error.strerror}"
    return f"traceback: {stream.name}"
