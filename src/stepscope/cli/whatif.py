"""``stepscope whatif``."""

from __future__ import annotations

import os
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli.duration import to_seconds
from stepscope.cli.job_command import JobCommand
from stepscope.report.whatif import text as whatif_text
from stepscope.report.whatif import way_text as whatif_way_text
from stepscope.use_cases import record
from stepscope.use_cases.whatif import command as use_case
from stepscope.use_cases.whatif import outputs, progress
from stepscope.use_cases.whatif.options import WhatIfOptions

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfReport

_TRY = "--try"
_AFTER = {
    _TRY: True,
    "--against": True,
    "--until-done": False,
    "--allow-changed-results": False,
    "--allow-network": False,
}
"""Options that are ours after the program's name, too, as texts print them, and whether a value follows. Not those that
programs have as well: --resume, --time, --json."""
_INTERRUPTED = 130
"""Exit code if the user ended it early."""
_HELP = """Run a job unchanged and with one thing changed, in turn, and report what each change brings.

\b
stepscope whatif train.py [ARGS]...
stepscope whatif train.py [ARGS]... --try NAME[,NAME]
stepscope whatif --try NAME -- COMMAND [ARGS]...
stepscope whatif train.py --until-done
stepscope whatif train.py --against faster.py
stepscope whatif --resume FOLDER

The code stays as it is. Each run ends after some seconds of steady steps, and what it writes is thrown away. The job's
output goes to files in the folder. Without --try a first run finds out what to try.
"""


class _WhatIfCommand(JobCommand):
    """Also accept some options after the program, as findings print them, but not after a ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move our options before the program and its arguments."""
        return super().parse_args(ctx, _ours_first(args))


def _ours_first(args: list[str]) -> list[str]:
    end = args.index("--") if "--" in args else len(args)
    ours, others = list[str](), list[str]()
    words = iter(args[:end])
    for word in words:
        name, assigned, _ = word.partition("=")
        if name not in _AFTER or (assigned and not _AFTER[name]):
            others.append(word)
        elif assigned or not _AFTER[name]:
            ours.append(word)
        else:
            ours += [word, *[value for value in [next(words, None)] if value is not None]]
    return [*ours, *others, *args[end:]]


def _to_seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    return to_seconds(ctx, param, value) if value is not None else None


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
    help="What to try (repeatable): see --list; batch or threads without a number: a curve. Without it, one run finds "
    "out what to try.",
)
@click.option(
    "--until-done",
    is_flag=True,
    help="Keep the best sure gain, look for the next one, and so on, until none is over 3 % or the time is over.",
)
@click.option(
    "--allow-changed-results",
    "changed_results",
    is_flag=True,
    help="Let --until-done keep gains that change what the job computes: batch size, precision, cached random input.",
)
@click.option(
    "--against",
    default="",
    metavar="SCRIPT|COMMIT",
    help="Another version of the script, a file or a commit of its git repository: is it faster?",
)
@click.option("--list", "listed", is_flag=True, help="List what can be tried, with the limits of each.")
@click.option(
    "--time",
    "seconds",
    metavar="DURATION",
    callback=_to_seconds,
    help="Total time for all runs; ignored with --try.  [default: 3m; with --until-done 15m]",
)
@click.option(
    "--rounds",
    type=click.IntRange(3, 1000),
    help="Maximum number of rounds; each runs the job twice unchanged and once with each change, in alternating "
    "order.  [default: 5]",
)
@click.option("--whole", is_flag=True, help="Let each run go on to the program's own end.")
@click.option("--allow-network", "network", is_flag=True, help="Let the runs reach the network.")
@click.option("--yes", "consent", is_flag=True, help="Run even where what the job writes cannot be thrown away.")
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("--folder", type=click.Path(path_type=Path), help="New folder for the sessions and the job's output.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Continue an experiment that was interrupted: runs in its folder count.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object, schema stepscope.whatif/1.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def whatif(
    ctx: click.Context,
    trials: tuple[str, ...],
    against: str,
    seconds: float | None,
    rounds: int | None,
    module: str | None,
    folder: Path | None,
    resume: Path | None,
    command: tuple[str, ...],
    *,
    until_done: bool,
    changed_results: bool,
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
    named = bool(command) or module is not None or resume is None
    options = WhatIfOptions(
        argv=record.job_command(command, module=module, verbatim=ctx.meta["verbatim"]) if named else (),
        trials=tuple(name for given in trials for name in given.split(",") if name),
        against=against,
        until_done=until_done,
        changed_results=changed_results,
        resume=resume,
        seconds=seconds,
        rounds=rounds,
        folder=folder,
        whole=whole,
        network=network,
        consent=consent,
    )
    report = (
        progress.on_terminal(partial(use_case.whatif, options))
        if sys.stderr.isatty()
        else use_case.whatif(options, _say)
    )
    if report is None:
        click.echo("nothing to try: no finding and no part of the step suggests a change; see --list")
    elif as_json:
        click.echo(outputs.to_json(report))
    else:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        click.echo(_rendered(report, color=color), nl=False)
    if report is not None and report.interrupted:
        ctx.exit(_INTERRUPTED)


def _say(line: str) -> None:
    click.echo(f"stepscope: {line}", err=True)


def _rendered(report: WhatIfReport, *, color: bool) -> str:
    if report.way is not None:
        return whatif_way_text.render(report, report.way, color=color, width=_width())
    return whatif_text.render(report, color=color, width=_width())


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns
