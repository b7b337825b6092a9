"""``stepscope gather serve``: what it needs is there, then it listens. The server's modules are loaded then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.clocks import settings
from stepscope.sessions.gathering import target, tls
from stepscope.tables.errors import UsageError
from stepscope.web import listening

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def serve(
    folder: Path, listen: str, key_file: Path | None, say: Callable[[str], object], *, certificate: Path | None = None
) -> None:
    """Serve until interrupted; ``listen``: HOST:PORT; ``certificate``: file with that of this host and its private key,
    for https.

    Raises:
        UsageError: the address is none, or not available; the key cannot be used; the server is not installed.
    """
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--listen {listen}; expected HOST:PORT")
    listening.check_installed()
    target.check(f"http://{listen}", key_file)
    if certificate is not None:
        tls.check_own(certificate)
    from stepscope.web import gathering_server

    key = settings.key_of(key_file) if key_file is not None else b""
    gathering_server.serve(folder, host.strip("[]"), int(port), key, say, certificate)
