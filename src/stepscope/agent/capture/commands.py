"""Receives the collector's commands to this process, on the agent's thread: one ``stat`` a second."""

from __future__ import annotations

import os

from stepscope.wire.commands import COMMANDS_NAME, Inbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepscope.agent.core.lines import AgentLog

LOOK_NS = 500_000_000


class Commands:
    """The commands of one process. ``tick`` is called by the agent's thread."""

    def __init__(self, lines: AgentLog, handlers: Mapping[str, Callable[[dict[str, object]], object]]) -> None:
        """``handlers``: functions that handle a command, by its ``kind``.

        Raises:
            OSError: the folder cannot be made.
        """
        self._lines = lines
        self._handlers = handlers
        self._inbox = Inbox(os.path.join(lines.folder, COMMANDS_NAME))
        self._next_ns = 0

    def tick(self, now_ns: int) -> None:
        """Handle the commands that have arrived."""
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + LOOK_NS
        if not self._inbox.changed():
            return
        commands, problems = self._inbox.take()
        for problem in problems:
            self._lines.diagnostic("DX915", problem)
        for command in commands:
            handler = self._handlers.get(str(command.get("kind")))
            if handler is None:
                self._lines.diagnostic("DX915", "ignored a command of unknown kind %.40r" % command.get("kind"))
                continue
            handler(command)
