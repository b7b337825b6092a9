"""The page of ``enable --ui``, one for each user and host: where it is served, its token, how its server is started.

Its state is a private folder in the user's state folder: ``HOST.json`` says where the server listens, ``token`` stays
the same from one server to the next, so that a bookmark stays good, and ``HOST.lock`` is held by the one server.
Deleting ``HOST.json`` ends the server. Light-weight: sidecars and ``ps`` use it; the server is ``web.user_server``.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from pathlib import Path
from stat import S_ISDIR

import msgspec

from stepscope.native import own_python, process_stat
from stepscope.tables import layout
from stepscope.tables.errors import UsageError
from stepscope.wire import run_directory, sessions_folder

FOLDER = "page"
TOKEN = "token"  # noqa: S105 - the name of a file
MIN_TOKEN = 16
MAX_BYTES = 4_096


class Listener(msgspec.Struct, frozen=True, kw_only=True):
    """A server that listens."""

    pid: int
    start_ticks: int
    port: int
    pid_namespace: str = ""

    @property
    def lives(self) -> bool:
        """Whether its process runs, if that is visible from here."""
        return self.pid_namespace == run_directory.pid_namespace() and process_stat.alive(self.pid, self.start_ticks)


_LISTENER = msgspec.json.Decoder(Listener)
"""Created at import, by one thread (see ``launcher.jobs``)."""


def folder(*, make: bool = True) -> Path:
    """The folder of the state; ``make`` it if there is none.

    Raises:
        UsageError: no place is this user's own and can be written.
    """
    why = ""
    for place in (Path(sessions_folder.default()).parent, Path(sessions_folder.spare(os.getuid()))):
        found = place / FOLDER
        try:
            if make:
                found.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = found.lstat()
            if about.st_uid == os.getuid() and S_ISDIR(about.st_mode) and os.access(found, os.W_OK | os.X_OK):
                return found
            why = f"{found} is not a folder of this user that can be written"
        except OSError as error:
            why = f"{found}: {error.strerror}"
    raise UsageError(f"no folder for the page's state ({why}); expected one in XDG_STATE_HOME")


def token(place: Path) -> str:
    """The token, generated if there is none.

    Raises:
        UsageError: it cannot be kept.
    """
    path = place / TOKEN
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        known = ""
    else:
        with os.fdopen(fd, encoding="ascii", errors="replace") as stream:
            known = stream.read(MAX_BYTES).strip()
    if len(known) >= MIN_TOKEN and known.isascii() and known.isalnum():
        return known
    made = secrets.token_hex(24)
    try:
        layout.write_atomic(path, made.encode())
        path.chmod(0o600)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    return made


def alone(place: Path) -> int:
    """The lock of the one server of this user and host, -1 if another one holds it."""
    fd = os.open(_at(place, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return -1
    return fd


def said(place: Path) -> Listener | None:
    """The server that listened last, alive or not; None after `end`."""
    try:
        return _LISTENER.decode(_at(place, "json").read_bytes()[:MAX_BYTES])
    except (OSError, msgspec.DecodeError):
        return None


def write(place: Path, listener: Listener) -> None:
    """Say where the server listens."""
    path = _at(place, "json")
    layout.write_atomic(path, msgspec.json.encode(listener))
    path.chmod(0o600)


def address() -> str:
    """The address of this user's page, with the token; "" if no server listens."""
    try:
        place = folder(make=False)
        found = said(place)
        return f"http://127.0.0.1:{found.port}/?token={token(place)}" if found is not None and found.lives else ""
    except UsageError:
        return ""


def end() -> bool:
    """Make the server end; return whether one listened. It answers nothing from a few seconds later on."""
    try:
        place = folder(make=False)
    except UsageError:
        return False
    found = said(place)
    _at(place, "json").unlink(missing_ok=True)
    return found is not None and found.lives


def start(module: str, port: int, sessions: Path | None = None) -> bool:
    """Start the server as a separate process unless one listens; return whether one was started.

    Args:
        module: whose ``main`` serves; in a layer that this one does not know.
        port: to listen on; 0: the last one, the default, or the next free one.
        sessions: a folder of sessions that it shows.

    Raises:
        UsageError: the state cannot be kept.
        OSError: no process can be started.
    """
    place = folder()
    found = said(place)
    if found is not None and found.lives:
        return False
    log = str(_at(place, "log"))
    words = own_python.command(module, str(port), *([str(sessions)] if sessions is not None else []))
    os.posix_spawn(
        words[0],
        words,
        {**own_python.environment(), "STEPSCOPE_ALWAYS": "0"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=own_python.SIGNALS,
    )
    return True


def _at(place: Path, ending: str) -> Path:
    """A file of this host: homes are shared between hosts."""
    host = re.sub(r"[^A-Za-z0-9.-]", "_", os.uname().nodename) or "host"
    return place / f"{host}.{ending}"
