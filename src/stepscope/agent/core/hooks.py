"""Functions that run on the agent's thread, at the end, and when the agent leaves."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.off_watch import OffWatch


class Hooks:
    """Registered functions, and the CPU time of those that do not count as the agent's thread's own."""

    def __init__(self, off: OffWatch) -> None:
        self.off = off
        self.children: list[Callable[[], object]] = []
        """Functions called in a forked child once it records; they restart the agent's thread."""
        self.ticks: list[Callable[[int], object]] = []
        self.errand: Callable[[int], object] | None = None
        """Background work (graph reading), done in slices while the agent's thread is idle."""
        self.held: Callable[[], object] | None = None
        """Logs what the job's variables hold; None: the probe that knows is not attached."""
        self.apart_ns = 0
        """CPU time of errands, which does not affect the sampling rate."""
        self._finishes: list[Callable[[], object]] = []
        self._cleanups: list[Callable[[], object]] = []

    def on_tick(self, function: Callable[[int], object]) -> None:
        """Call ``function(now_ns)`` on the agent's thread, about 20 times a second."""
        self.ticks.append(function)

    def on_finish(self, function: Callable[[], object]) -> None:
        """Call ``function()`` before the last line is written."""
        self._finishes.append(function)

    def on_uninstall(self, function: Callable[[], object]) -> None:
        """Call ``function()`` when the agent leaves, to undo what ``patch`` cannot."""
        self._cleanups.append(function)

    def finish(self) -> None:
        """Run the functions registered for the end, before the last line."""
        for function in self._finishes:
            function()

    def clean_up(self) -> None:
        """Run the functions registered for when the agent leaves, once."""
        cleanups, self._cleanups = self._cleanups, []
        for cleanup in cleanups:
            cleanup()

    def let_go(self) -> None:
        """Forget the functions, and with them what probes hold; those that undo something stay."""
        for functions in (self.children, self.ticks, self._finishes):
            functions.clear()
        self.errand = self.held = None
