"""``stepscope fleet``: questions about many sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli.fleet.options import FORM, LIMIT, scoped, table_options
from stepscope.cli.key_file import CA_FILE, KEY_FILE
from stepscope.tables.errors import UsageError
from stepscope.tables.units import format_bytes, format_number_of

if TYPE_CHECKING:
    from stepscope.model.api.fleet import ChangesBy, FleetAnswer, GroupBy, SortBy
    from stepscope.use_cases.fleet.asking import Scope

_BY = ("line", "finding", "user", "team", "project", "model", "host", "version")
_FOLLOWED = ("function", "line", "op", "finding", "job", "host")
_ROOTS = ("user", "team", "project", "model", "host")
_EVENTS = ("cpu", "python", "off-cpu")


@click.group(short_help="Ask many sessions: what costs most, who has it.")
def fleet() -> None:
    """Ask many sessions what costs most, and who has it.

    Each session leaves one small file, its part, in a folder that hosts share or in an object store: with
    `stepscope run --fleet URL`, or `stepscope fleet add`. Questions are answered here, by DuckDB (extra `fleet`).
    """


@fleet.command(short_help="Add sessions that exist.")
@click.argument("sessions", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--to", "url", required=True, metavar="URL", help="A folder, file://FOLDER, s3:// ..., http(s)://HOST:PORT"
)
@click.option(
    "--fleet-sources",
    "sources",
    is_flag=True,
    help="Tell the command's arguments and the text of the lines, too. Secrets are masked.",
)
@KEY_FILE
@CA_FILE
def add(sessions: tuple[Path, ...], url: str, key_file: Path | None, ca_file: Path | None, *, sources: bool) -> None:
    """Make the parts of SESSIONS and send them to URL, and what could not be sent there before.

    Adding a session again changes nothing.
    """
    from stepscope.sessions.fleet import sending

    to = sending.Destination(url=url, key_file=key_file, ca_file=ca_file, sources=sources)
    for line in sending.add(sessions, to):
        click.echo(line)


@fleet.command(short_help="List the jobs that cost most.")
@scoped
@table_options
def jobs(scope: Scope, form: str, limit: int, prices: Path | None, sort: SortBy | None) -> None:
    """List the jobs at URL that cost most."""
    from stepscope.use_cases.fleet import asking

    if sort == "thread":
        raise UsageError("--sort thread: jobs have no such column; expected wall, cpu, device or money")
    _print(asking.jobs(_asking(scope, limit, prices, sort)), form)


@fleet.command(short_help="What costs most, by line, finding, team ...")
@scoped
@click.option("--by", type=click.Choice(_BY), default="finding", show_default=True, help="What costs are added up by.")
@click.option("--library", is_flag=True, help="With --by line: lines of libraries, by their own time.")
@table_options
def top(
    scope: Scope, by: GroupBy, form: str, limit: int, prices: Path | None, sort: SortBy | None, *, library: bool
) -> None:
    """Say what costs most over all jobs at URL."""
    from stepscope.use_cases.fleet import asking

    if sort == "thread" and by != "line":
        raise UsageError(f"--sort thread with --by {by}: only lines have it; expected wall, cpu, device or money")
    if sort == "cpu" and by == "finding":
        raise UsageError("--sort cpu with --by finding: CPU time that a remedy saves is not known; expected wall ...")
    sort = sort or ("thread" if library else None)
    _print(asking.top(_asking(scope, limit, prices, sort, library=library), by), form)


@fleet.command(short_help="What came to cost more or less.")
@scoped
@click.option(
    "--by",
    type=click.Choice(_FOLLOWED),
    default="function",
    show_default=True,
    help="What is followed; host: hosts on which the same job is slower.",
)
@click.option("--library", is_flag=True, help="Lines and functions of libraries, not of the user's code.")
@click.option(
    "--exit-code",
    "judge",
    is_flag=True,
    help="Exit with 1 if something costs more than before, with 3 if nothing could be compared (docs/exit-codes.md).",
)
@FORM
@LIMIT
def changes(scope: Scope, by: ChangesBy, form: str, limit: int, *, library: bool, judge: bool) -> None:
    """Say what came to cost more or less a step, over the sessions of each job at URL in the order of time.

    Of a hundred changes that are shown one is chance, on average at most. What would have been seen is said for each
    job. --since: only changes that began then; earlier sessions are what later ones are compared with.
    """
    from msgspec.structs import replace

    from stepscope.use_cases.fleet import changes as app

    asked = replace(scope, asked=replace(scope.asked, limit=limit, library=library), since="")
    if by == "host" and scope.since:
        raise UsageError(
            "--since with --by host: hosts are not compared over time; expected --since alone, or --by host"
        )
    answer = app.changes(asked, by, scope.since)
    _print(answer, form)
    if judge and (code := app.exit_code(answer)):
        raise SystemExit(code)


@fleet.command(short_help="How much of the held time were steps.")
@scoped
@FORM
@LIMIT
def goodput(scope: Scope, form: str, limit: int) -> None:
    """Say how much of the time that jobs at URL held devices, or else hosts, went into steps, and what the rest was.

    One row a job over its restarts. What an attempt that failed had done since its last save is lost.
    """
    from stepscope.use_cases.fleet import asking

    _print(asking.goodput(_asking(scope, limit, None, None)), form)


@fleet.command(short_help="One flame graph of many sessions.")
@scoped
@click.option("--event", type=click.Choice(_EVENTS), default="python", show_default=True, help="The sampled event.")
@click.option("--by", type=click.Choice(_ROOTS), help="Put these groups at the root.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Write this file, in the format of its extension: .html, .svg, .folded, .speedscope.json, .pb.gz (pprof). "
    "Repeatable. Default: text on the terminal.",
)
def flame(scope: Scope, event: str, by: GroupBy | None, outputs: tuple[Path, ...]) -> None:
    """Draw one flame graph of all jobs at URL.

    Of cpu all weights of a job add up to its CPU time, of python and off-cpu to the time of its sampled threads. To
    compare two groups, write a .folded file of each: stepscope flame diff A.folded B.folded --by share
    """
    from stepscope.report.flame.graph import graph
    from stepscope.report.fleet_text import parts_lines
    from stepscope.use_cases import flame as app
    from stepscope.use_cases.fleet import asking

    for path in outputs:
        app.check_ending(path, difference=False)
    profile, read = asking.flame(scope, event, by)
    lines = list(parts_lines(read, scope.filters))
    drawn = graph(profile, source=scope.place.url, window=lines[0])
    if not outputs:
        click.echo(app.text_of(drawn), nl=False)
    for path in outputs:
        click.echo(f"{path}  {format_bytes(app.write(drawn, path))}")
    for line in lines:
        click.echo(line, err=bool(outputs))


@fleet.command(short_help="Delete parts of a user, a project or old days.")
@scoped
@click.option("--yes", is_flag=True, help="Delete. Default: only say how many parts it would be.")
def remove(scope: Scope, *, yes: bool) -> None:
    """Delete the parts in the folder URL that the filters keep: of one user, of a project, of days until DAY ..."""
    from stepscope.use_cases.fleet import asking

    if not scope.filters:
        raise UsageError("nothing says which; expected --user, --project, --until DAY or another filter")
    found = format_number_of(str(asking.remove(scope, really=yes)), "parts")
    click.echo(f"deleted: {found}" if yes else f"{found} would be deleted; do it with --yes")


def _asking(scope: Scope, limit: int, prices: Path | None, sort: SortBy | None, *, library: bool = False) -> Scope:
    from msgspec.structs import replace

    from stepscope.fleet.prices import Prices, read

    known = read(prices) if prices is not None else Prices()
    if sort == "money" and prices is None:
        raise UsageError("--sort money without --prices; expected a TOML file with prices of hours (docs/fleet.md)")
    order: SortBy = sort or ("money" if prices is not None else "wall")
    return replace(scope, asked=replace(scope.asked, limit=limit, prices=known, sort=order, library=library))


def _print(answer: FleetAnswer, form: str) -> None:
    if form == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=1).decode())
        return
    from stepscope.report.fleet_text import render

    click.echo(render(answer), nl=False)
