"""The server of ``enable --ui``: one for each user and host, for all jobs that ``stepscope ps`` lists to that user.

The sidecar of the first job starts it, and nothing waits for it. It ends when no job has run and no page was open for
half an hour, or when it is asked to (``collector.always_on.user_page``). Root's shows jobs and sessions of all users.
"""

from __future__ import annotations

import os
import pwd
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.collector.always_on import user_page
from stepscope.launcher import jobs
from stepscope.native import process_stat
from stepscope.tables.errors import UsageError
from stepscope.web import listening
from stepscope.web.beside_server import RequestClock
from stepscope.web.server import Server
from stepscope.web.settings import Access
from stepscope.wire import run_directory, sessions_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp

MODULE = __name__
IDLE_S = 1_800.0
LOOK_S = 2.0
"""A job can be seen three seconds before its sidecar starts, which asks whether this server lives."""
MAX_USERS = 1_000
_STATE = Path(".local", "state", "stepscope", "sessions")


class IdleServer:
    """Whether nothing has run, and no page was open, for long enough."""

    def __init__(
        self, runs: Callable[[], bool], idle_s: float = IDLE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``runs``: whether a job runs."""
        self._runs = runs
        self._idle_s = idle_s
        self._clock = clock
        self._last = clock()

    def come(self, looks: RequestClock) -> bool:
        """Whether to end now."""
        if self._runs():
            self._last = self._clock()
        return self._clock() - self._last >= self._idle_s and not looks.lately(self._idle_s)


def main(words: Sequence[str]) -> None:
    """Serve this user's page on port ``words[0]`` (0: any), with the sessions in the folder ``words[1]``."""
    os.chdir("/")
    place = user_page.folder()
    lock = user_page.alone(place)
    if lock < 0:
        return
    bound = _listen(int(words[0]), user_page.said(place))
    port = int(bound.getsockname()[1])
    me = os.getpid()
    own = user_page.Listener(
        pid=me, start_ticks=process_stat.start_ticks(me), port=port, pid_namespace=run_directory.pid_namespace()
    )
    watched: list[RequestClock] = []

    def within(app: ASGIApp) -> ASGIApp:
        watched.append(RequestClock(app))
        return watched[0]

    server = Server(roots(words[1:]), Access(port=port, token=user_page.token(place)), within)
    looks = jobs.JobWatch()
    idle = IdleServer(lambda: bool(looks.running()))

    def watch() -> None:
        while user_page.said(place) == own and not idle.come(watched[0]):
            time.sleep(LOOK_S)
        server.exit()

    user_page.write(place, own)
    threading.Thread(target=watch, daemon=True, name="ending").start()
    server.run(bound)
    os.close(lock)


def _listen(wanted: int, last: user_page.Listener | None) -> socket.socket:
    """A socket at the wanted port, else at that of the last server, else at any: better a page elsewhere than none."""
    for port in [wanted, *([last.port] if last is not None else [])]:
        try:
            if port:
                return listening.listen(listening.LOCAL, port)
        except UsageError:
            continue
    return listening.listen(listening.LOCAL, None)


def roots(given: Sequence[str]) -> list[Path]:
    """Folders of sessions: those given and the user's; for root those of all users, too."""
    folders = [*given, *sessions_folder.candidates("")]
    if os.getuid() == 0:
        for user in pwd.getpwall()[:MAX_USERS]:
            folders += [str(Path(user.pw_dir) / _STATE), sessions_folder.spare(user.pw_uid)]
    return [Path(folder) for folder in dict.fromkeys(folders)]
