"""The server of ``run --ui``, from the launcher's side: first an address, then a process once the job runs.

The launcher opens the socket and prints the address before the job starts, so that the terminal then belongs to the job
and the address works at once; the server process (``beside_server``) inherits the socket. It is not part of the job:
it runs in a separate process session, unaffected by terminal signals and the launcher's end, and nothing waits for it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.native import own_python
from stepscope.tables.errors import UsageError
from stepscope.web import listening
from stepscope.web.settings import Access

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

MAX_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideJob:
    """An address that is served as soon as there is a session."""

    bound: socket.socket
    access: Access
    told: bool
    """Whether the token was generated here, and is therefore printed."""
    say: Callable[[str], object] = field(default=lambda line: sys.stderr.write(line + "\n"))

    def announce(self, session: Path) -> None:
        """Print the address of the session."""
        self.say(f"stepscope: {listening.address(listening.LOCAL, self.access, session, told=self.told)}")

    def start(self, session: Path, job: int, start_ticks: int) -> list[str]:
        """Start the server for the session of a running job; return a message for the user if it fails."""
        argv = own_python.command("stepscope.web.beside_server", str(session), str(job), str(start_ticks))
        actions = [
            (os.POSIX_SPAWN_DUP2, self.bound.fileno(), 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),  # whoever reads the job's stderr sees it end
        ]
        try:
            os.posix_spawn(
                argv[0],
                argv,
                own_python.environment() | {listening.VARIABLE: self.access.token},
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=own_python.SIGNALS,
            )
        except OSError as error:
            return [f"the page could not be served: {error.strerror}"]
        finally:
            self.bound.close()
        return []


def prepare(port: str) -> BesideJob:
    """Open the socket for the server of a job. ``port``: a number; "0" any free one; "" the default or next free one.

    Raises:
        UsageError: the port is invalid or in use, the token is invalid, or the server is not installed.
    """
    listening.check_installed()
    if port and (not port.isdecimal() or int(port) > MAX_PORT):
        raise UsageError(f"--ui {port}: expected a port, 0 to {MAX_PORT}, or nothing")
    bound = listening.listen(listening.LOCAL, int(port) if port else None)
    token = os.environ.get(listening.VARIABLE)
    number = int(bound.getsockname()[1])
    access = Access(port=number, token=token) if token else Access(port=number)
    return BesideJob(bound=bound, access=access, told=token is None)
