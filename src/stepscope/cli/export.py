"""``stepscope export``: a session as a file of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli.progress import Progress
from stepscope.report.words import printable

if TYPE_CHECKING:
    from stepscope.use_cases.export import Form

FORMS = ("perfetto", "speedscope", "pprof", "folded", "parquet", "otlp")


@click.command(short_help="Write a session as a file of another tool.")
@click.argument("session", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "form",
    type=click.Choice(FORMS),
    required=True,
    help="perfetto: the timeline, for ui.perfetto.dev. speedscope, pprof, folded: the sampled stacks of one event. "
    "parquet: tables of steps, spans, ops and findings, for DuckDB and pandas. otlp: the session's figures as "
    "metrics, for an OpenTelemetry receiver.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write; one that is there is replaced. For parquet: a new folder. Default: named after the "
    "session, in the current folder.",
)
@click.option(
    "--range",
    "range_",
    default="",
    metavar="RANGE",
    help="Part of the session: all, steady (its steady steps), slowest (the slowest outlier among them), step:N, or "
    "FROM-TO in seconds since its start (2.5-4). Default: all; of stacks the steady steps, if it has any.",
)
@click.option("--event", default="", help="The sampled event, as in `stepscope flame`.")
def export(session: Path, form: Form, output: Path | None, range_: str, event: str) -> None:
    """Write SESSION (a .stepscope directory or a packed file) as a file that another tool opens. What the file cannot
    hold is listed in docs/exporting.md.
    """
    from stepscope.use_cases import export as use_case

    options = use_case.ExportOptions(session=session, form=form, output=output, range=range_, event=event)
    with Progress(f"exporting {session}"):
        done = use_case.export(options)
    click.echo(f"{done.path}  {done.said}")
    for what in done.left_out:
        click.echo(f"left out: {printable(what)}", err=True)
