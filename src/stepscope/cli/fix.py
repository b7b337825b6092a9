"""``stepscope fix``: edits that a run suggests, proved in rounds, as one patch."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import msgspec

from stepscope.cli.duration import to_seconds
from stepscope.cli.job_command import JobCommand
from stepscope.report import fix_text
from stepscope.tables.errors import UsageError
from stepscope.use_cases import record
from stepscope.use_cases.fix import command as use_case
from stepscope.use_cases.fix import edits

if TYPE_CHECKING:
    from types import FrameType

FORMATS = ("text", "json")
_HELP = """Make a program faster, and prove it: run it, try the edits that its findings have, and give those that are
proved as one patch.

    stepscope fix train.py --epochs 3

Your files stay as they are: each run sees the edits in an overlay, and what it writes is thrown away. An edit is in the
patch if runs made after it was chosen gain at least 3 %, surely, and the program logs the same.
"""


@click.command(
    cls=JobCommand,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    help=_HELP,
    short_help="Apply fixes that are proved to gain, as a patch.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Write the patch to this file.")
@click.option(
    "--branch",
    default="",
    metavar="NAME",
    help="Commit the patch to a new branch; index, work tree, stash and hooks are not touched.",
)
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="json: schema stepscope.fix/1.")
@click.option(
    "--time",
    "seconds",
    default="15m",
    show_default=True,
    metavar="DURATION",
    callback=to_seconds,
    help="Total time for all runs.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="WORD[,WORD]",
    help="What edits may change: order (of random operations or data), less (work is done).",
)
@click.option("--allow-network", "network", is_flag=True, help="Let the runs reach the network.")
@click.option("--list", "listed", is_flag=True, help="List which edit each detector has, or why none.")
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def fix(
    ctx: click.Context,
    output: Path | None,
    branch: str,
    format_: str,
    seconds: float,
    allow: tuple[str, ...],
    module: str | None,
    command: tuple[str, ...],
    *,
    network: bool,
    listed: bool,
) -> None:
    """Give a patch of proved edits."""
    if listed:
        click.echo(fix_text.table((one.code, one.name, one.text) for one in edits.table()), nl=False)
        return
    if not command and module is None:
        raise UsageError("nothing to run; expected: stepscope fix train.py [args], fix -m module, or fix -- command")
    options = use_case.FixOptions(
        argv=record.job_command(command, module=module, verbatim=ctx.meta["verbatim"]),
        seconds=seconds,
        allow=tuple(word for given in allow for word in given.split(",") if word),
        output=output,
        branch=branch,
        network=network,
    )
    signal.signal(signal.SIGTERM, _end)
    report = use_case.fix(options, _say)
    if format_ == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=1).decode())
    else:
        click.echo(fix_text.render(report), nl=False)
    ctx.exit(use_case.exit_code(report))


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """End as Ctrl-C does, so that nothing is left."""
    del frame
    raise SystemExit(128 + number)


def _say(line: str) -> None:
    click.echo(f"stepscope: {line}", err=True)
