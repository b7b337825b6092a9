"""Removes the run directory if the launcher is killed before it has started the sidecar, which would do it.

A shell waits for the end of a pipe that only the launcher holds. It is there before the directory is, and reads the
names from the pipe, however early the launcher dies.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_DISMISSED = "dismissed"
_SCRIPT = f"""
while IFS= read -r line; do
    [ "$line" = {_DISMISSED} ] && exit
    set -- "$@" "$line"
done
[ $# -eq 0 ] || exec rm -rf -- "$@"
"""


class Caretaker:
    """The shell; it leaves when the sidecar takes over, or the launcher removes the directory itself."""

    def __init__(self) -> None:
        """Start it.

        Raises:
            OSError: there is no shell.
        """
        end, self._pipe = os.pipe()
        null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
        actions = [(os.POSIX_SPAWN_DUP2, end, 0), *null]
        try:
            self.pid = os.posix_spawn("/bin/sh", ["sh", "-c", _SCRIPT], os.environ, file_actions=actions, setsid=True)
        finally:
            os.close(end)

    def watch(self, folders: Iterable[Path]) -> None:
        """Have it remove these folders if this process dies now."""
        os.write(self._pipe, b"".join(os.fsencode(folder) + b"\n" for folder in folders))

    def dismiss(self) -> None:
        """Let it leave, whatever it was to watch."""
        if self._pipe < 0:
            return
        with suppress(OSError):  # somebody has killed it
            os.write(self._pipe, _DISMISSED.encode() + b"\n")
        os.close(self._pipe)
        self._pipe = -1
        os.waitpid(self.pid, 0)


@contextmanager
def present(*, wanted: bool) -> Iterator[Caretaker | None]:
    """A caretaker until the end at most; None if it is not wanted."""
    caretaker = Caretaker() if wanted else None
    try:
        yield caretaker
    finally:
        if caretaker is not None:
            caretaker.dismiss()
