"""The listening socket of a server and its address. Light imports only: a launcher uses it before its job."""

from __future__ import annotations

import os
import socket
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.tables import layout
from stepscope.tables.errors import UsageError, install_command

if TYPE_CHECKING:
    from stepscope.web.settings import Access

NEEDED = ("starlette", "uvicorn", "prometheus_client")
"""Modules of the extra `ui`."""
DEFAULT_PORT = 7330
TRIES = 20
"""Number of ports to try if none was requested."""
LOCAL = "127.0.0.1"
VARIABLE = "STEPSCOPE_TOKEN"
"""Environment variable for the token: other users can read command lines, but not the environment."""


def check_installed() -> None:
    """Check that the server can run; the error says what to install.

    Raises:
        UsageError: the extra is missing.
    """
    missing = next((name for name in NEEDED if find_spec(name) is None), None)
    if missing is not None:
        raise UsageError(f"{missing} is not installed; run: {install_command('ui')}")


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; requests from now on wait until they are served.

    Raises:
        UsageError: the address is not available.
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
    """The address to open in a browser; ``told``: including the token."""
    shown = f"[{host}]" if ":" in host else host
    page = f"sessions/{layout.key_of(Path(os.path.realpath(session)))}" if session is not None else ""
    return f"http://{shown}:{access.port}/{page}" + (f"?token={access.token}" if told else "")
