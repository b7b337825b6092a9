"""``stepscope pack`` and ``stepscope unpack``."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.cli.progress import Progress
from stepscope.tables.units import format_bytes


@click.command(short_help="Pack a session into one file.")
@click.argument("session", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write. Default: SESSION.zip.")
@click.option(
    "--redact",
    is_flag=True,
    help="Replace paths, names and arguments by pseudonyms, leave out the sources, and write the reports again. "
    "Equal words get equal pseudonyms in all packs of this user. The members of a joint session are redacted too. "
    "Default file: redacted-PSEUDONYM.stepscope.zip.",
)
def pack(session: Path, output: Path | None, *, redact: bool) -> None:
    """Pack a session into one file, to send or archive it."""
    from stepscope.sessions import bundle, redacting

    if redact:
        with Progress(f"redacting {session}"):
            target, size, left_out = redacting.pack(session, output)
        click.echo(f"{target}  {format_bytes(size)}")
        if left_out:
            click.echo(f"left out: {', '.join(left_out)}", err=True)
        return
    target, size = bundle.pack(session, output)
    click.echo(f"{target}  {format_bytes(size)}")


@click.command(short_help="Unpack a packed session.")
@click.argument("packed", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The directory to create.")
def unpack(packed: Path, output: Path | None) -> None:
    """Unpack a packed session into a directory."""
    from stepscope.sessions import bundle

    click.echo(str(bundle.unpack(packed, output)))
