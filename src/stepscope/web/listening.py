"""Where a server listens, and the address that opens it. Loads nothing heavy: a launcher does it before its job."""

from __future__ import annotations

import os
import socket
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.errors import UsageError
from stepscope.store import layout

if TYPE_CHECKING:
    from stepscope.web.settings import Access

NEEDED = ("starlette", "uvicorn", "prometheus_client")
"""Of the extra `ui`."""
DEFAULT_PORT = 7330
TRIES = 20
"""Ports that are tried where none was asked for and others are taken."""
LOCAL = "127.0.0.1"
VARIABLE = "STEPSCOPE_TOKEN"
"""Of the environment, which other users cannot see, as they see command lines."""


def check_installed() -> None:
    """Say what to install where the server cannot run.

    Raises:
        UsageError: the extra is missing.
    """
    missing = next((name for name in NEEDED if find_spec(name) is None), None)
    if missing is not None:
        raise UsageError(f"{missing} is not installed; run: pip install 'stepscope[ui]'")


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens: from now on who asks waits until it is served.

    Raises:
        UsageError: the address cannot be had.
    """
    tried = [port] if port is not None else [*range(DEFAULT_PORT, DEFAULT_PORT + TRIES), 0]
    why: OSError | None = None
    for number in tried:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, number))
            found.listen()
        except OSError as error:
            found.close()
            why = error
            continue
        return found
    raise UsageError(f"{host}:{port}: {why.strerror if why else HTTPStatus.CONFLICT.phrase}; choose another: --port 0")


def address(host: str, access: Access, session: Path | None = None, *, told: bool) -> str:
    """What a browser opens; ``told``: with the token in it."""
    shown = f"[{host}]" if ":" in host else host
    page = f"sessions/{layout.key_of(Path(os.path.realpath(session)))}" if session is not None else ""
    return f"http://{shown}:{access.port}/{page}" + (f"?token={access.token}" if told else "")
