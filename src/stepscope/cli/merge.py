"""``stepscope merge``: the sessions of one job's members as one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from stepscope.app import merge as merging
from stepscope.cli.progress import Progress


@click.command(short_help="Join the sessions of one job's members.")
@click.argument("sessions", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The session to make. Default: job-ID.stepscope, here."
)
@click.option("-q", "--quiet", is_flag=True, help="Show no report.")
def merge(sessions: tuple[Path, ...], output: Path | None, *, quiet: bool) -> None:
    """Join SESSIONS, those of a job's workers and servers, into one, and show for whom the others wait.

    The joint session holds its members whole: below members/, each still opens by itself.
    """
    with Progress("joining"):
        target = merging.merge(sessions, output)
    click.echo(str(target))
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    with Progress(f"analysing {target}"):
        shown = merging.reported(target, color=color, width=shutil.get_terminal_size((120, 24)).columns)
    if not quiet:
        click.echo(shown, nl=False)
