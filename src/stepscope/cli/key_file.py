"""The options ``--key-file`` and ``--ca-file`` of commands that gather."""

from __future__ import annotations

from pathlib import Path

import click

KEY_FILE = click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the key that senders and server share: at least 16 bytes, readable by its owner only.",
)

CA_FILE = click.option(
    "--ca-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File (PEM) with the certificate authorities to trust for the https server, instead of those that this host "
    "trusts.",
)
