"""Runs the application on a listening socket, until Ctrl-C or a call of ``exit``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import uvicorn

from stepscope.server.open_sessions import OpenSessions
from stepscope.server.session_catalogue import SessionCatalogue
from stepscope.web.application import create
from stepscope.web.half_open import Impatient
from stepscope.web.operation import Hub

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from starlette.types import ASGIApp

    from stepscope.web.settings import Access

MAX_CONNECTIONS = 256
_NICE = 5
_IDLE_S = 15


class Server:
    """A server for some sessions and folders."""

    def __init__(
        self, roots: Sequence[Path], access: Access, within: Callable[[ASGIApp], ASGIApp] = lambda app: app
    ) -> None:
        """Create the server without running it; ``within`` wraps everything behind the guard."""
        self._hub = Hub(
            catalogue=SessionCatalogue(roots), open_sessions=OpenSessions(), stopping=lambda: self._server.should_exit
        )
        config = uvicorn.Config(
            create(self._hub, access, within),
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http=Impatient,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)

    def exit(self) -> None:
        """Stop the server."""
        self._server.should_exit = True

    def run(self, bound: socket.socket) -> None:
        """Serve on a listening socket, until Ctrl-C or ``exit``."""
        os.nice(max(0, _NICE - os.nice(0)))  # the job comes first
        try:
            self._server.run(sockets=[bound])
        except KeyboardInterrupt:
            return
        finally:
            self._hub.timelines.close()
