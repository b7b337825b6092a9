"""The early end of a trial: enough steady steps were seen.

The agent's thread reads the ring as the first look does, and elects the calls that make the steps. When they have been
steady for long enough, with all interventions in effect, the process ends by ``os._exit``: no ``finally``, no exit
handler and no final save of the job runs. A process that makes no steps never ends so.
"""

from __future__ import annotations

import os
import time

from stepscope.agent.capture.repeats import RESTLESS_CALLS, RESTLESS_NS, TRAINS, RepeatingCalls
from stepscope.agent.core import side_thread
from stepscope.wire.kinds import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Optional

    from stepscope.agent.capture.repeats import Key, Repeat
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect
    from stepscope.agent.trials.switching import Switching

MOST = 16_384
"""Records read in one look; of more, the newest."""
PENDING_NS = 3_000_000_000
"""How long steady steps wait for an intervention that has not found what it changes."""
LEAVE_S = 2.0
"""Time for the last records and lines."""
SECOND_NS = 1_000_000_000
_LOOP = int(Kind.LOOP)
_NESTED = int(Flag.NESTED)


class CountedSteps:
    """Steady steps of one repeating call, in stretches without a trace or a pause."""

    __slots__ = ("base", "base_ns", "fits", "ns", "since_ns", "steps", "traces")

    def __init__(self, repeat: Repeat, fits: int, *, fresh: bool) -> None:
        """``fits``: fits that had ended; ``fresh``: count the running stretch from its beginning, not from now on."""
        self.fits = fits
        self.traces = repeat.traces
        self.steps = self.ns = 0
        self.since_ns = repeat.since_ns
        self.base = 0 if fresh else repeat.since
        self.base_ns = repeat.since_ns if fresh else repeat.ends[-1]

    def update(self, repeat: Repeat) -> tuple[int, int]:
        """(steps, nanoseconds) so far, the running stretch included."""
        if repeat.since_ns != self.since_ns:
            self.since_ns = self.base_ns = repeat.since_ns
            self.base = 0
        return self.steps + repeat.since - self.base, self.ns + repeat.ends[-1] - self.base_ns

    def fold(self, steps: int, ns: int) -> None:
        """Keep what a stretch has counted: the next one begins."""
        self.steps, self.ns = steps, ns


class Ending:
    """Ends the process in time; with 0 seconds, never. ``tick`` on the agent's thread."""

    def __init__(
        self,
        state: AgentState,
        effects: Sequence[Effect],
        steps: int,
        seconds: float,
        switching: Optional[Switching] = None,
    ) -> None:
        """``switching``: what decides, in place of seconds and steps, when it is enough."""
        self._switching = switching
        self._state = state
        self._effects = effects
        self._steps = steps
        self._least_ns = int(seconds * SECOND_NS)
        self._repeats = RepeatingCalls(state.lines.named, state.captures.sizes.trains)
        self._read = 0
        self._fits = 0
        """Number of fits that have ended."""
        self._counted: dict[Key, tuple[CountedSteps, int, int]] = {}
        self._settled_ns = 0
        """When the last intervention took hold."""
        self._steady_ns = 0
        """When steps were first steady."""
        state.captures.sizes.wanted = True

    def tick(self, now_ns: int) -> None:
        """Read what is new; end the process if it is enough."""
        began = time.thread_time_ns()
        self._read, records = self._state.records.since(self._read, MOST)
        self._fits += sum(record[4] == _LOOP and not record[5] & _NESTED for record in records)
        self._repeats.add(records)
        self._settle()
        elected = self._repeats.elect(now_ns)
        if elected is not None and not self._steady_ns:
            self._steady_ns = now_ns
            self._tell()
        if self._switching is not None:
            self._switch(records, elected, now_ns)
        elif self._least_ns and ((elected is not None and self._enough(elected, now_ns)) or self._restless()):
            leave(self._state)
        self._state.hooks.apart_ns += time.thread_time_ns() - began

    def _switch(self, records: Sequence[tuple[int, ...]], elected: Optional[Repeat], now_ns: int) -> None:
        if self._switching is None:
            return
        self._switching.tick(records, elected, now_ns, self._state.lines.named)
        if self._switching.over or self._restless():
            leave(self._state)

    def _tell(self) -> None:
        """Let the interventions begin that come after the warm-up."""
        for effect in self._effects:
            if effect.on_steady is not None:
                with effect.wall:
                    effect.on_steady()

    def _settle(self) -> None:
        """Begin to count again if an intervention has taken hold meanwhile."""
        settled_ns = max((effect.since_ns for effect in self._effects), default=0)
        if settled_ns > self._settled_ns:
            self._settled_ns = settled_ns
            self._counted.clear()

    def _enough(self, repeat: Repeat, now_ns: int) -> bool:
        if any(effect.pending for effect in self._effects) and now_ns - self._steady_ns < PENDING_NS:
            return False
        counted, steps, ns = self._counted.get(repeat.key) or (self._count(repeat), 0, 0)
        if counted.fits != self._fits and counted.traces != repeat.traces:  # another fit, of another function
            counted, steps, ns = self._count(repeat), 0, 0
        if repeat.since_ns != counted.since_ns:
            counted.fold(steps, ns)
        steps, ns = counted.update(repeat)
        self._counted[repeat.key] = (counted, steps, ns)
        return steps >= self._steps and ns >= self._least_ns

    def _count(self, repeat: Repeat) -> CountedSteps:
        return CountedSteps(repeat, self._fits, fresh=repeat.since_ns > self._settled_ns)

    def _restless(self) -> bool:
        """Whether calls that train have gone on for long without ever being steady: each makes a trace."""
        found = None if self._steady_ns else self._repeats.longest(TRAINS)
        if found is None:
            return False
        return found.calls >= self._steps + RESTLESS_CALLS and (
            found.last_ns - max(found.first_ns, self._settled_ns) >= 2 * self._least_ns + RESTLESS_NS
        )


def leave(state: AgentState) -> None:
    """Write the last records and lines, and end the process."""
    side_thread.start(_leave_late)
    try:
        state.captures.finish()
        state.finish(time.thread_time_ns())
    finally:
        os._exit(0)


def _leave_late() -> None:
    """End the process even if its last lines cannot be written."""
    time.sleep(LEAVE_S)
    os._exit(0)
