"""`stepscope view`: listens, prints the address, serves until Ctrl-C.

The server's modules are loaded after the address is printed, while a browser opens it and waits.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.tables import layout
from stepscope.tables.errors import SessionError
from stepscope.web import listening
from stepscope.web.settings import LOOPBACK, Access
from stepscope.wire import sessions_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ServeOptions(Struct, frozen=True, kw_only=True):
    """Options of the command."""

    paths: tuple[Path, ...] = ()
    """Sessions and folders of sessions; empty: the current folder, and the sessions of ``enable``."""
    host: str = "127.0.0.1"
    port: int | None = None
    names: tuple[str, ...] = ()
    """Additional host names, such as those of a proxy."""
    opened: Callable[[str], object] | None = None
    """Called with the address once it is served."""
    say: Callable[[str], object] = field(default=print)


def serve(options: ServeOptions) -> None:
    """Serve until interrupted.

    Raises:
        SessionError: there is nothing at a path.
        UsageError: the address is not available, the token is invalid, or the server is not installed.
    """
    listening.check_installed()
    roots = _roots(options.paths)
    bound = listening.listen(options.host, options.port)
    port = int(bound.getsockname()[1])
    token = os.environ.get(listening.VARIABLE)
    names = frozenset({*LOOPBACK, options.host.lower(), *(name.lower() for name in options.names)})
    access = Access(port=port, hosts=names, **({"token": token} if token else {}))
    only = roots[0] if len(options.paths) == 1 and (layout.is_session(roots[0]) or roots[0].is_file()) else None
    options.say(listening.address(options.host, access, only, told=token is None))
    if options.opened is not None:
        options.opened(listening.address(options.host, access, only, told=True))
    try:
        from stepscope.web.server import Server

        Server(roots, access).run(bound)
    except KeyboardInterrupt:
        return


def _roots(paths: Sequence[Path]) -> list[Path]:
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise SessionError(f"{missing} does not exist; expected a session, a packed session, or a folder of them")
    if paths:
        return list(paths)
    return [Path.cwd(), *(Path(folder) for folder in sessions_folder.candidates(""))]


def open_browser(address: str) -> None:
    """Open it in the user's browser, if there is one."""
    import webbrowser

    if not webbrowser.open(address):
        sys.stderr.write("stepscope: could not start a browser; open the address above\n")
