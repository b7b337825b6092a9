"""``stepscope pack`` and ``stepscope unpack``."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.units import format_bytes


@click.command(short_help="Pack a session into one file.")
@click.argument("session", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write. Default: SESSION.zip.")
def pack(session: Path, output: Path | None) -> None:
    """Pack a session into one file, to send or archive it."""
    from stepscope.app import bundle  # noqa: PLC0415 - --help needs none of it

    target, size = bundle.pack(session, output)
    click.echo(f"{target}  {format_bytes(size)}")


@click.command(short_help="Unpack a packed session.")
@click.argument("packed", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The directory to create.")
def unpack(packed: Path, output: Path | None) -> None:
    """Unpack a packed session into a directory."""
    from stepscope.app import bundle  # noqa: PLC0415

    click.echo(str(bundle.unpack(packed, output)))
