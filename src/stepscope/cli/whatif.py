"""``stepscope whatif``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from stepscope.app import record
from stepscope.app.whatif import command as use_case
from stepscope.app.whatif import outputs
from stepscope.cli.duration import to_seconds
from stepscope.cli.job_command import JobCommand
from stepscope.reports import whatif_text

_TRY = "--try"
_INTERRUPTED = 130
"""Exit code if the user ended it early."""
_HELP = """Run a job unchanged and with one thing changed, in turn, and report what each change brings.

\b
stepscope whatif train.py [ARGS]...
stepscope whatif train.py [ARGS]... --try NAME[,NAME]
stepscope whatif --try NAME -- COMMAND [ARGS]...
stepscope whatif train.py --against faster.py

The code stays as it is. Each run ends after some seconds of steady steps, and what it writes is thrown away. The job's
output goes to files in the folder. Without --try a first run finds out what to try.
"""


class _WhatIfCommand(JobCommand):
    """Also accept ``--try`` after the program, as findings print it, but not after a ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move our options before the program and its arguments."""
        return super().parse_args(ctx, _try_first(args))


def _try_first(args: list[str]) -> list[str]:
    end = args.index("--") if "--" in args else len(args)
    ours, others = list[str](), list[str]()
    words = iter(args[:end])
    for word in words:
        if word == _TRY:
            ours += [word, *[value for value in [next(words, None)] if value is not None]]
        elif word.startswith(f"{_TRY}="):
            ours.append(word)
        else:
            others.append(word)
    return [*ours, *others, *args[end:]]


@click.command(
    cls=_WhatIfCommand,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    help=_HELP,
    short_help="Try changes on a job without touching its code.",
)
@click.option(
    _TRY,
    "trials",
    multiple=True,
    metavar="NAME[,NAME]",
    help="What to try (repeatable): see --list. Without it, one run finds out what to try.",
)
@click.option(
    "--against", type=click.Path(path_type=Path), metavar="SCRIPT", help="Another version of the script: is it faster?"
)
@click.option("--list", "listed", is_flag=True, help="List what can be tried, and what each cannot do.")
@click.option(
    "--time",
    "seconds",
    metavar="DURATION",
    default="3m",
    show_default=True,
    callback=to_seconds,
    help="Time for all runs, without --try.",
)
@click.option(
    "--rounds",
    type=click.IntRange(3, 1000),
    default=5,
    show_default=True,
    help="Most rounds; each runs the job twice unchanged and once with each change, in changing order.",
)
@click.option("--whole", is_flag=True, help="Let each run go on to the program's own end.")
@click.option("--allow-network", "network", is_flag=True, help="Let the runs reach the network.")
@click.option("--yes", "consent", is_flag=True, help="Run even where what the job writes cannot be thrown away.")
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("--folder", type=click.Path(path_type=Path), help="New folder for the sessions and the job's output.")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object, schema stepscope.whatif/1.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def whatif(
    ctx: click.Context,
    trials: tuple[str, ...],
    against: Path | None,
    seconds: float,
    rounds: int,
    module: str | None,
    folder: Path | None,
    command: tuple[str, ...],
    *,
    listed: bool,
    whole: bool,
    network: bool,
    consent: bool,
    as_json: bool,
) -> None:
    """Measure what changes bring."""
    if listed:
        click.echo(whatif_text.catalogue(use_case.catalogue(), width=_width()), nl=False)
        return
    options = use_case.WhatIfOptions(
        argv=record.job_command(command, module=module, verbatim=ctx.meta["verbatim"]),
        trials=tuple(name for given in trials for name in given.split(",") if name),
        against=against,
        seconds=seconds,
        rounds=rounds,
        folder=folder,
        whole=whole,
        network=network,
        consent=consent,
    )
    report = use_case.whatif(options, lambda line: click.echo(f"stepscope: {line}", err=True))
    if report is None:
        click.echo("nothing to try: no finding and no part of the step suggests a change; see --list")
    elif as_json:
        click.echo(outputs.to_json(report))
    else:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        click.echo(whatif_text.render(report, color=color, width=_width()), nl=False)
    if report is not None and report.interrupted:
        ctx.exit(_INTERRUPTED)


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns
