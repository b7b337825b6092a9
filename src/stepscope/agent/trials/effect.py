"""What becomes of one intervention in one process."""

from __future__ import annotations

import threading

from stepscope.wire.trials import FAILED, IN_EFFECT, NOT_REACHED, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Optional, Protocol

    from stepscope.agent.core.guard import Guard
    from stepscope.agent.state import AgentState

    class Delays(Protocol):
        """Delays that blocks switch on and off, and what is known of their place: ``slopes.preparing``."""

        seconds: float
        buffered: int
        block_ns: int
        prepared: bool

        def restart(self) -> None:
            """Find out all again."""

        def prepare(self, ends: Sequence[int], now_ns: int) -> bool:
            """Find out more; whether there can be blocks."""

        def counts(self) -> tuple[int, int, int, int]:
            """Calls, delayed ones, ns that were added, and the place's ns."""

        def enough(self, blocks: Sequence[tuple[bool, float]]) -> bool:
            """Whether more blocks would not change the answer."""

        def line(self) -> dict[str, object]:
            """The line of the log."""


class Inside(threading.local):
    """Whether the calling thread runs our code: what that calls, the program does not call."""

    depth = 0


INSIDE = Inside()


class Effect:
    """One intervention: how often it took hold, or why it did not."""

    __slots__ = (
        "argument",
        "count",
        "delays",
        "failure",
        "name",
        "on",
        "on_steady",
        "on_switch",
        "passes",
        "pending",
        "probe",
        "reason",
        "since_ns",
        "state",
        "switched",
        "wall",
    )

    def __init__(self, state: AgentState, text: str, *, switched: bool = False) -> None:
        """``text``: the intervention as ``NAME[:ARGUMENT]``; ``switched``: it is off until ``switch``."""
        self.state = state
        self.name, self.argument = split(text)
        self.probe = "trial-" + self.name
        """Name under which its patches and failures are kept."""
        self.count = 0
        self.since_ns = 0
        """When it first took hold; 0: it has not."""
        self.pending = False
        """Whether it waits for steady steps, or looks for what it changes: the trial does not end meanwhile."""
        self.on_steady: Optional[Callable[[], object]] = None
        """Function to call on the agent's thread when steps are first steady."""
        self.switched = switched
        """Whether it is switched on and off while the process runs, see ``switching``."""
        self.on = not switched
        """Whether it is in effect now."""
        self.passes = 0
        """Calls that it would have changed while it was off."""
        self.on_switch: Optional[Callable[[], object]] = None
        """Function to call on the agent's thread after ``on`` has changed, where asking it at calls is not enough."""
        self.delays: Optional[Delays] = None
        """What its blocks wait for and count, where they are of delays (``slopes``)."""
        self.failure = ""
        self.reason = "what it changes never came"
        self.wall = Wall(self, state.guard(self.probe))
        """Context manager for our code: its failures are recorded and go no further."""

    def took(self) -> None:
        """Note that it has taken hold of something."""
        self.since_ns = self.since_ns or self.state.now()
        self.count += 1
        self.pending = False

    def passed(self) -> bool:
        """Whether it is off; notes a call that it would have changed."""
        if self.on:
            return False
        self.passes += 1
        self.pending = False
        return True

    def switch(self, *, on: bool) -> None:
        """Put it in effect, or out of effect."""
        if on != self.on:
            self.on = on
            if self.on_switch is not None:
                with self.wall:
                    self.on_switch()

    def missed(self, why: str) -> None:
        """Note why it cannot take hold of something; what is noted last is logged if it never does."""
        self.reason = why

    def number(self) -> int:
        """The argument as a number.

        Raises:
            ValueError: it is none, or less than one.
        """
        number = int(self.argument)
        if number < 1:
            raise ValueError("%s:%s; expected a number of at least 1" % (self.name, self.argument))
        return number

    def line(self) -> dict[str, object]:
        """The line of the log."""
        outcome = FAILED if self.failure else IN_EFFECT if self.count else NOT_REACHED
        text = self.failure or ("" if self.count else self.reason)
        line: dict[str, object] = {"t": "intervention", "at": self.since_ns or self.state.now(), "name": self.name}
        line.update(argument=self.argument, outcome=outcome, count=self.count, text=text[:2000])
        return line


class Wall:
    """The agent's guard, which also marks the effect as failed. Exceptions of the job's code pass."""

    __slots__ = ("_effect", "_guard")

    def __init__(self, effect: Effect, guard: Guard) -> None:
        self._effect = effect
        self._guard = guard

    def __enter__(self) -> None:
        INSIDE.depth += 1

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> bool:
        INSIDE.depth -= 1
        if kind is not None and any(base.__name__ == "OpError" for base in kind.__mro__):
            return False  # of an op that we ran for the program: it reads the program's input, say
        swallowed = self._guard.__exit__(kind, error, trace)
        if swallowed:
            self._effect.failure = "%s: %s" % (type(error).__name__, error)
            self._effect.pending = False
        return swallowed
