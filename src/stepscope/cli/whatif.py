"""``stepscope whatif``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from stepscope.app import record
from stepscope.app import whatif as use_case
from stepscope.cli.job_command import JobCommand
from stepscope.reports import whatif_text

_TRY = "--try"
_HELP = """Run a job unchanged and with each remedy, in turn, and report the gain of each with an interval.

\b
stepscope whatif train.py [ARGS]... [--try REMEDY]
stepscope whatif --try REMEDY -- COMMAND [ARGS]...

Only the job's environment variables are changed. The job's output goes to files in the folder.
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
    short_help="Measure what a remedy gains: run the job with and without it.",
)
@click.option(
    _TRY,
    "remedies",
    multiple=True,
    metavar="REMEDY",
    help="An environment setting that a finding names (repeatable). Without it, one run finds out what to try.",
)
@click.option(
    "--rounds",
    type=click.IntRange(3, 1000),
    default=5,
    show_default=True,
    help="Rounds; each runs the job once unchanged and once with each remedy, in changing order.",
)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("--folder", type=click.Path(path_type=Path), help="New folder for the sessions and the job's output.")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object, schema stepscope.whatif/1.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def whatif(
    ctx: click.Context,
    remedies: tuple[str, ...],
    rounds: int,
    module: str | None,
    folder: Path | None,
    command: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    """Measure what remedies gain."""
    options = use_case.WhatIfOptions(
        argv=record.job_command(command, module=module, verbatim=ctx.meta["verbatim"]),
        remedies=remedies,
        rounds=rounds,
        folder=folder,
    )
    report = use_case.whatif(options, lambda line: click.echo(f"stepscope: {line}", err=True))
    if report is None:
        click.echo("nothing to try: no finding names an environment setting")
    elif as_json:
        click.echo(use_case.to_json(report))
    else:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        click.echo(whatif_text.render(report, color=color, width=shutil.get_terminal_size((120, 24)).columns), nl=False)
