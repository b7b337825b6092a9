"""What is called by the agent's thread, at the end and when the agent leaves."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Hooks:
    """Functions to be called, and the CPU time of those that do not count as the thread's own."""

    def __init__(self) -> None:
        self.children: list[Callable[[], object]] = []
        """Called in a forked child once it records: restarts the agent's thread."""
        self.ticks: list[Callable[[int], object]] = []
        self.errand: Callable[[int], object] | None = None
        """What the agent's thread has to do besides, piece by piece, in its pauses."""
        self.apart_ns = 0
        """CPU time of errands: the rate of samples does not follow it."""
        self._finishes: list[Callable[[], object]] = []
        self._cleanups: list[Callable[[], object]] = []

    def on_tick(self, function: Callable[[int], object]) -> None:
        """Have ``function(now_ns)`` called by the agent's thread, about 20 times a second."""
        self.ticks.append(function)

    def on_finish(self, function: Callable[[], object]) -> None:
        """Have ``function()`` called before the last line is written."""
        self._finishes.append(function)

    def on_uninstall(self, function: Callable[[], object]) -> None:
        """Have ``function()`` called when the agent leaves: for what ``patch`` cannot undo."""
        self._cleanups.append(function)

    def finish(self) -> None:
        """Before the last line."""
        for function in self._finishes:
            function()

    def clean_up(self) -> None:
        """The agent leaves; once."""
        cleanups, self._cleanups = self._cleanups, []
        for cleanup in cleanups:
            cleanup()
