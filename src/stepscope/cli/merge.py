"""``stepscope merge``: the sessions of one job's members as one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from stepscope.cli.key_file import CA_FILE, KEY_FILE
from stepscope.cli.progress import Progress
from stepscope.sessions import merge as merging


@click.command(short_help="Join the sessions of one job's members.")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...|URL|FOLDER")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The session to make. Default: job-ID.stepscope, here."
)
@KEY_FILE
@CA_FILE
@click.option("-q", "--quiet", is_flag=True, help="Show no report.")
def merge(
    sessions: tuple[str, ...], output: Path | None, key_file: Path | None, ca_file: Path | None, *, quiet: bool
) -> None:
    """Join SESSIONS, those of a job's workers and servers, into one, and show for whom the others wait. With a URL or
    FOLDER to which `run --gather` sent sessions, join those of the job that ended last.

    The joint session contains its members whole, below members/: each can still be opened by itself.
    """
    with Progress("joining"):
        if len(sessions) == 1 and merging.is_gathered(sessions[0]):
            target, notes = merging.gathered(sessions[0], key_file, output, ca_file=ca_file)
        else:
            target, notes = merging.merge([Path(session) for session in sessions], output), ()
    for note in notes:
        click.echo(f"stepscope: {note}", err=True)
    click.echo(str(target))
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    with Progress(f"analysing {target}"):
        shown = merging.reported(target, color=color, width=shutil.get_terminal_size((120, 24)).columns)
    if not quiet:
        click.echo(shown, nl=False)
