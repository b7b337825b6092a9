"""``stepscope report``: analyse a session again and show what was found."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli.progress import Progress
from stepscope.sessions import merge
from stepscope.sessions.latest import latest
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from stepscope.model.report.report import Report

FORMATS = ("text", "json", "html", "md")
ENDINGS = {"": "text", ".txt": "text", ".text": "text", ".log": "text", ".json": "json"}
ENDINGS |= {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}
"""Format by the extension of the file to write."""


@click.command(short_help="Show the report of a session.")
@click.argument("session", type=click.Path(path_type=Path), required=False)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="text for people (default), json for programs, html for one offline page, md for issues and chat. "
    "With -o, the file's extension decides.",
)
@click.option(
    "--brief",
    is_flag=True,
    help="With --format json: at most 4 kB: the verdict, the first three findings with place, cost, remedy and the "
    "command that proves it, and what is not known.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of the terminal.")
@click.option(
    "--tasks", is_flag=True, help="With text: also list every task, with count, rate, times, outliers and trend."
)
@click.option(
    "--step",
    metavar="N",
    help="Show one step next to the median step: why was this one slow? N counts from 0; `slowest` takes the slowest "
    "outlier, `slowest:3` the slowest three. As text, json or md.",
)
@click.option(
    "--price",
    type=click.FloatRange(min=0.0),
    metavar="AMOUNT",
    default=0.0,
    help="With text: the price of an hour of the machine, in any currency. The report then says what samples cost, and "
    "what the findings would save.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="With text: all of it, not only twelve lines, and every reason why detectors could not decide.",
)
def report(
    session: Path | None,
    format_: str | None,
    output: Path | None,
    step: str | None,
    price: float,
    *,
    brief: bool,
    tasks: bool,
    verbose: bool,
) -> None:
    """Analyse SESSION (a .stepscope directory or a packed file) and show what was found. Without SESSION: the latest
    in the current folder, else the latest of enable.
    """
    from stepscope.sessions import analysis
    from stepscope.use_cases import rendering

    form = format_ or _format_of(output)
    if brief and (form != "json" or step is not None):
        raise UsageError("--brief is a form of the report as JSON; expected --format json, without --step")
    if session is None:
        session = latest()
        click.echo(f"stepscope: {session}", err=True)
    if step is not None:
        _only_in_text(form, tasks=tasks)
        with Progress(f"analysing {session}"):
            shown = rendering.steps(session, step, form)
        _write(shown, output)
        return
    with Progress(f"analysing {session}"):
        found = analysis.analyze(session)
    if form == "text":
        color = output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        data = _text(found, session, color=color, tasks=tasks, verbose=verbose, price=price)
    else:
        data = rendering.brief(found, session) if brief else rendering.render(found, session, form)
    _write(data, output)
    if form == "text" and found.session.member and (partners := merge.offer(session)):
        click.echo(f"members   {partners}", err=True)


def _write(data: str, output: Path | None) -> None:
    if output is None:
        click.echo(data, nl=False)
        return
    try:
        output.write_text(data, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from error


def _only_in_text(form: str, *, tasks: bool) -> None:
    if tasks or form == "html":
        other = "--tasks" if tasks else "--format html"
        raise UsageError(f"--step cannot be combined with {other}; expected --format text, json or md")


def _format_of(output: Path | None) -> str:
    """The format of a file's extension; text without one.

    Raises:
        UsageError: it is the extension of something else, such as a PDF.
    """
    ending = output.suffix.lower() if output is not None else ""
    if ending not in ENDINGS:
        known = ", ".join(filter(None, ENDINGS))
        raise UsageError(f"{output}: no report is written as {ending}; expected {known}, or --format")
    return ENDINGS[ending]


def _text(found: Report, session: Path, *, color: bool, tasks: bool, verbose: bool, price: float) -> str:
    from stepscope.report import terminal
    from stepscope.report.document import tasks as task_table

    page = session / "report.html"
    width = shutil.get_terminal_size((120, 24)).columns
    where = {"session_path": str(session), "html_path": str(page) if page.is_file() else ""}
    shown = terminal.render(found, color=color, width=width, verbose=verbose, price=price, **where)
    return f"{shown}\n{task_table.render(found, width=width)}" if tasks else shown
