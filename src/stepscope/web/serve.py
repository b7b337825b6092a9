"""Runs the server until Ctrl-C: binds, says where it is, serves."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from stepscope.app.library import Library
from stepscope.app.shelf import Shelf
from stepscope.errors import SessionError
from stepscope.store import layout
from stepscope.web import listening
from stepscope.web.application import create
from stepscope.web.operation import Hub
from stepscope.web.settings import LOOPBACK, Access
from stepscope.wire import sessions_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp

MAX_CONNECTIONS = 256
_NICE = 5
_IDLE_S = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What the user asked for."""

    paths: tuple[Path, ...] = ()
    """Sessions and folders of sessions; none: this folder, and where ``enable`` keeps sessions."""
    host: str = "127.0.0.1"
    port: int | None = None
    names: tuple[str, ...] = ()
    """Host names besides, by which a proxy is asked."""
    opened: Callable[[str], object] | None = None
    """Is given the address when it is served."""
    say: Callable[[str], object] = field(default=print)


def serve(options: ServeOptions) -> None:
    """Serve until it is interrupted.

    Raises:
        SessionError: there is nothing at a path.
        UsageError: the address cannot be had, or the token is none.
    """
    roots = _roots(options.paths)
    bound = listening.listen(options.host, options.port)
    port = int(bound.getsockname()[1])
    token = os.environ.get(listening.VARIABLE)
    names = frozenset({*LOOPBACK, options.host.lower(), *(name.lower() for name in options.names)})
    access = Access(port=port, hosts=names, **({"token": token} if token else {}))
    hub = Hub(library=Library(roots), shelf=Shelf(), stopping=lambda: server.should_exit)
    server = server_of(hub, access)
    only = roots[0] if len(options.paths) == 1 and (layout.is_session(roots[0]) or roots[0].is_file()) else None
    options.say(listening.address(options.host, access, only, told=token is None))
    if options.opened is not None:
        options.opened(listening.address(options.host, access, only, told=True))
    run(server, hub, bound)


def server_of(hub: Hub, access: Access, within: Callable[[ASGIApp], ASGIApp] = lambda app: app) -> uvicorn.Server:
    """A server of the hub that has not been started; ``within`` stands between the guard and what it lets through."""
    config = uvicorn.Config(
        create(hub, access, within),
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def run(server: uvicorn.Server, hub: Hub, bound: socket.socket) -> None:
    """Serve on a socket that listens, until Ctrl-C or until the server is told to exit."""
    os.nice(_NICE)  # the job comes first
    try:
        server.run(sockets=[bound])
    except KeyboardInterrupt:
        return
    finally:
        hub.timelines.close()


def _roots(paths: Sequence[Path]) -> list[Path]:
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise SessionError(f"{missing}: nothing is there; expected a session, a packed session, or a folder of them")
    if paths:
        return list(paths)
    return [Path.cwd(), *(Path(folder) for folder in sessions_folder.candidates(""))]


def open_browser(address: str) -> None:
    """Show it in the user's browser, where there is one."""
    import webbrowser

    if not webbrowser.open(address):
        sys.stderr.write("stepscope: no browser could be started; open the address above\n")
