"""``stepscope gather``: sessions of many hosts in one place."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.cli.key_file import CA_FILE, KEY_FILE
from stepscope.sessions.gathering import opening, sending
from stepscope.tables.units import format_bytes, format_number_of
from stepscope.web import gather as gather_server


@click.group(short_help="Gather the sessions of many hosts in one place.")
def gather() -> None:
    """Gather the sessions of many hosts in one place: `stepscope run --gather URL` sends there, `stepscope merge URL`
    joins what arrived.
    """


@gather.command(short_help="Send sessions.")
@click.argument("sessions", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--to", "url", required=True, metavar="URL", help="A folder, file://FOLDER, http(s)://HOST:PORT, s3:// ..."
)
@KEY_FILE
@CA_FILE
def send(sessions: tuple[Path, ...], url: str, key_file: Path | None, ca_file: Path | None) -> None:
    """Send SESSIONS that `run --gather` could not send."""
    place = opening.opened(url, key_file, ca_file)
    for session in sessions:
        sent = sending.send(session, place)
        parts = format_number_of(str(len(sent.parts)), "parts")
        click.echo(f"{session}: {format_bytes(sum(part.bytes for part in sent.parts))} in {parts}")


@gather.command(short_help="Receive sessions into a folder.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--listen",
    required=True,
    metavar="HOST:PORT",
    help="Address of this host to listen at, and no other. PORT 0: any free one; its address is printed.",
)
@KEY_FILE
@click.option(
    "--certificate",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Speak https: file (PEM) with this host's private key and its certificates. Default: plain http.",
)
def serve(folder: Path, listen: str, key_file: Path | None, certificate: Path | None) -> None:
    """Receive sessions into FOLDER from senders that have the key, until Ctrl-C.

    Without --certificate contents are not encrypted: in a network that you do not trust, use it, or a proxy with https.
    """
    gather_server.serve(folder, listen, key_file, click.echo, certificate=certificate)
