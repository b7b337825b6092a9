"""``stepscope pack`` and ``stepscope unpack``."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.units import format_bytes


@click.command(short_help="Make one file of a session.")
@click.argument("session", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write; default SESSION.zip.")
def pack(session: Path, output: Path | None) -> None:
    """Make one file of a session."""
    from stepscope.app import bundle  # noqa: PLC0415 - --help needs none of it

    target, size = bundle.pack(session, output)
    click.echo(f"{target}  {format_bytes(size)}")


@click.command(short_help="Make a session of a packed file.")
@click.argument("packed", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The directory to make.")
def unpack(packed: Path, output: Path | None) -> None:
    """Make a session of a packed file."""
    from stepscope.app import bundle  # noqa: PLC0415

    click.echo(str(bundle.unpack(packed, output)))
