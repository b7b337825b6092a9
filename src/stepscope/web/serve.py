"""Runs the server until Ctrl-C: binds, says where it is, serves."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from stepscope.app.library import Library, key_of
from stepscope.app.shelf import Shelf
from stepscope.errors import SessionError, UsageError
from stepscope.store import layout
from stepscope.web.application import create
from stepscope.web.operation import Hub
from stepscope.web.settings import LOOPBACK, Access
from stepscope.wire import sessions_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_PORT = 7330
TRIES = 20
"""Ports that are tried where none was asked for and others are taken."""
VARIABLE = "STEPSCOPE_TOKEN"
"""Of the environment, which other users cannot see, as they see command lines."""
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
    bound = _bind(options.host, options.port)
    port = int(bound.getsockname()[1])
    token = os.environ.get(VARIABLE)
    names = frozenset({*LOOPBACK, options.host.lower(), *(name.lower() for name in options.names)})
    access = Access(port=port, hosts=names, **({"token": token} if token else {}))
    hub = Hub(library=Library(roots), shelf=Shelf(), stopping=lambda: server.should_exit)
    config = uvicorn.Config(
        create(hub, access),
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    address = _address(options, roots, access, told=token is None)
    options.say(address)
    if options.opened is not None:
        options.opened(_address(options, roots, access, told=True))
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


def _bind(host: str, port: int | None) -> socket.socket:
    tried = [port] if port is not None else [*range(DEFAULT_PORT, DEFAULT_PORT + TRIES), 0]
    why: OSError | None = None
    for number in tried:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, number))
            found.listen()  # from now on who asks waits until it is served
        except OSError as error:
            found.close()
            why = error
            continue
        return found
    raise UsageError(f"{host}:{port}: {why.strerror if why else HTTPStatus.CONFLICT.phrase}; choose another: --port 0")


def _address(options: ServeOptions, roots: Sequence[Path], access: Access, *, told: bool) -> str:
    host = f"[{options.host}]" if ":" in options.host else options.host
    only = roots[0] if len(options.paths) == 1 and (layout.is_session(roots[0]) or roots[0].is_file()) else None
    page = f"sessions/{key_of(Path(os.path.realpath(only)))}" if only is not None else ""
    return f"http://{host}:{access.port}/{page}" + (f"?token={access.token}" if told else "")


def open_browser(address: str) -> None:
    """Show it in the user's browser, where there is one."""
    import webbrowser

    if not webbrowser.open(address):
        sys.stderr.write("stepscope: no browser could be started; open the address above\n")
