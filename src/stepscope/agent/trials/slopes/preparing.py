"""What must be known of a place before its calls are delayed: its time, how it waits, how far ahead it runs.

First it is watched. Then its calls are held until no step ends any more: as many steps as end meanwhile are buffered
between the place and the step, and blocks must be longer. Then blocks may begin. ``switching`` asks, on the agent's
thread; the rest of the agent's ticks go on.
"""

from __future__ import annotations

import math
import operator
import threading
import time

from stepscope.agent.trials.slopes import tally as numbers
from stepscope.agent.trials.slopes.order import unordered
from stepscope.wire.trimmed import middle_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Optional

    from stepscope.agent.trials.effect import Effect
    from stepscope.agent.trials.slopes.tally import Tally

WATCH_NS, WATCH_STEPS = 1_500_000_000, 10
"""Time and steps for which the place is watched."""
MOST_WATCH_NS = 30_000_000_000
"""Time without a call of the place, or with too few steps, after which there is no slope; or half of all time."""
HOLD_NS, MOST_HOLD_NS, HOLD_STEPS = 3_000_000_000, 6_000_000_000, 24
"""Longest time for which calls are held, and that for so many steps where it is longer, at most the second."""
STALL_NS, STALL_STEPS, END_STEPS = 250_000_000, 5, 2.5
"""Time without a step after which what was buffered is used up, and the same in usual steps; and steps without one at
the end of the longest time, where neighbours hold the job up."""
SETTLE_NS = 1_000_000_000
"""Least time in which buffers fill again, which is also that of twice as many steps as they hold."""
SHARE, MOST_SHARE, LEAST_SHARE = 0.10, 0.25, 0.02
"""Time that is added to a step, as a share of it: little against the slack of what is hidden; up to the second where
steps differ much, so that the slope is known in time. It is no more than the place takes, but for the third."""
ERROR = 0.05
"""Standard error of the slope for which the share is chosen: an interval of 0.2."""
COMPUTES = 0.5
"""CPU time over time of the place from which it computes, and does not wait."""
HOLDS = 0.5
"""Share of the place's time in which a thread that wants the interpreter lock cannot have it, from which it is held."""
PROBES, PROBE_S = 3, 0.001
"""Sleeps in a tick, and the time of one: one that lasts longer had to wait for the lock."""
EXACT_NS = 60_000
"""By how much a sleep is longer where nothing is to be waited for."""
BLOCK_STEPS, MOST_BLOCK_NS = 8, 15_000_000_000
"""Steps of a block beyond twice those that are buffered, and the longest block."""
PAIRS, WIDTH, REACH = 12, 0.2, 2.36
"""Pairs of blocks after which it may be enough, the width of the interval from which it is, and its half in standard
errors (Student's t at 95 % with 7 degrees of freedom: of 12 pairs, 2 are cut off at each end)."""


class Delays:
    """The delays of a place, and what is known of it."""

    def __init__(self, effect: Effect, tally: Tally) -> None:
        self.buffered = 0
        """Steps that are buffered between the place and the step."""
        self.deep = False
        """Whether steps went on for as long as calls were held: more is buffered, or no step needs the place."""
        self.block_ns = 0
        """Least time of a block."""
        self.prepared = False
        self.why = ""
        """Why there can be no blocks; "" if there can."""
        self._effect = effect
        self._tally = tally
        self._since_ns = 0
        self._held_ns = 0
        self._step_ns = 0.0
        self._per_step = 0.0
        """Calls of a step."""
        self._delay_ns = 0
        self._how = numbers.SLEEP
        self._before: Optional[tuple[int, int, int]] = None
        """Calls, time and CPU time as watching began."""
        self._threads_before = (0, 0)
        """CPU time of the place's threads then, and time for which they were ready without a CPU."""
        self.seconds = 60.0
        """Time for blocks."""
        self._late_ns = self._probed_ns = 0
        effect.on_switch = self._switch

    def restart(self) -> None:
        """Other calls are the steps: all is to be watched again."""
        self._since_ns = self._held_ns = 0
        self._before = None
        self.prepared = False
        self._tally.set(numbers.HELD_UNTIL, 0)

    def prepare(self, ends: Sequence[int], now_ns: int) -> bool:
        """Find out more of what is to be known before blocks; whether there can be any. ``ends``: of the steps."""
        if not self._since_ns:
            self._since_ns = now_ns
            self._before, self._threads_before = self._totals(), self._of_threads()
        if not self._held_ns:
            self.why = self._watch(ends, now_ns)
        elif self._tally.words[numbers.HELD_UNTIL]:
            self.why = self._hold(ends, now_ns)
        else:
            self._settle(now_ns)
        return not self.why

    def counts(self) -> tuple[int, int, int, int]:
        """Calls that ended, calls that began while delays were on, time that was added, and time of the place, ns."""
        tally = self._tally
        return (
            tally.total(numbers.CALLS),
            tally.total(numbers.DELAYS),
            tally.total(numbers.ADDED),
            tally.total(numbers.WALL),
        )

    def enough(self, blocks: Sequence[tuple[bool, float]]) -> bool:
        """Whether the slope's interval is narrow. ``blocks``: on or not, and mean time of a step, ns (0: none)."""
        slopes = []
        for first in range(0, len(blocks) - 1, 2):
            (on, one), (_, other) = blocks[first], blocks[first + 1]
            if one and other:
                slopes.append((one - other if on else other - one) / (self._delay_ns * self._per_step))
        return len(slopes) >= PAIRS and 2 * REACH * middle_of(slopes)[1] <= WIDTH

    def line(self) -> dict[str, object]:
        """The line of the log."""
        return {
            "t": "delay",
            "at": self._since_ns,
            "argument": self._effect.argument,
            "how": ("sleep", "busy", "busy-held")[self._how],
            "delay_ns": self._delay_ns,
            "calls_per_step": round(self._per_step, 4),
            "step_ns": int(self._step_ns),
            "buffered": self.buffered,
            "deep": self.deep,
            "held_ratio": round(self._late_ns / max(1, self._probed_ns), 3),
            "threads": self._tally.threads(),
            "why": self.why,
        }

    def _switch(self) -> None:
        self._tally.set(numbers.DELAY, self._delay_ns if self._effect.on else 0)

    def _totals(self) -> tuple[int, int, int]:
        tally = self._tally
        return tally.total(numbers.CALLS), tally.total(numbers.WALL), tally.total(numbers.CPU)

    def _watch(self, ends: Sequence[int], now_ns: int) -> str:
        self._probe()
        lasted, before = now_ns - self._since_ns, self._before or (0, 0, 0)
        calls, wall, cpu = map(operator.sub, self._totals(), before)
        own = [end for end in ends if end >= self._since_ns]
        if lasted < WATCH_NS or len(own) < WATCH_STEPS or not calls:
            return "" if lasted < min(MOST_WATCH_NS, self.seconds * 5e8) else self._why(calls)
        self._effect.pending = False
        self._effect.took()
        with self._effect.wall:
            if unordered(self._effect.state):
                return "a tf.data pipeline gives its elements in no fixed order, which delays change"
        steps = len(own)
        self._step_ns, self._per_step = lasted / steps, calls / steps
        added_ns = max(min(self._share(own) * self._step_ns, wall / steps), LEAST_SHARE * self._step_ns)
        self._delay_ns = max(1, int(added_ns / self._per_step))
        held = self._late_ns > HOLDS * self._probed_ns
        computes = cpu * self._stretched() > COMPUTES * wall
        self._how = numbers.SLEEP if not computes else numbers.BUSY_HELD if held else numbers.BUSY
        self._tally.set(numbers.HOW, self._how)
        self._held_ns = now_ns
        hold_ns = min(MOST_HOLD_NS, max(HOLD_NS, int(HOLD_STEPS * self._step_ns)))
        self._tally.set(numbers.HELD_UNTIL, time.monotonic_ns() + hold_ns)
        return ""

    def _share(self, ends: Sequence[int]) -> float:
        """The share of a step that is added, by how much steps differ."""
        times: list[int] = list(map(operator.sub, ends[1:], ends))
        mean = sum(times) / len(times)
        spread = math.sqrt(sum((one - mean) ** 2 for one in times) / len(times)) / mean
        steps = self.seconds * 1e9 / mean
        return min(MOST_SHARE, max(SHARE, 2 * spread / (ERROR * math.sqrt(steps))))

    def _of_threads(self) -> tuple[int, int]:
        found = [_schedstat(tid) for tid in self._tally.ids()]
        return sum(cpu for cpu, _ in found), sum(queued for _, queued in found)

    def _stretched(self) -> float:
        """How many times as long as its CPU time a computation takes: threads may be ready and have no CPU."""
        cpu, queued = map(operator.sub, self._of_threads(), self._threads_before)
        return 1.0 + queued / cpu if cpu > 0 and queued > 0 else 1.0

    def _why(self, calls: int) -> str:
        if not calls:
            return "%s is not called while steps are made" % self._effect.argument
        return "its steps are too long for a slope"

    def _probe(self) -> None:
        """Whether the interpreter lock can be had while the place runs: sleeps that last too long, but for the time in
        which this thread was ready and another one had its CPU.
        """
        if not self._tally.total(numbers.ACTIVE):
            return
        for _ in range(PROBES):
            tid = threading.get_native_id()
            (_, queued), began = _schedstat(tid), time.perf_counter_ns()
            time.sleep(PROBE_S)
            lasted = time.perf_counter_ns() - began
            late = lasted - int(PROBE_S * 1e9) - EXACT_NS - (_schedstat(tid)[1] - queued)
            self._probed_ns += lasted
            self._late_ns += max(0, late)

    def _hold(self, ends: Sequence[int], now_ns: int) -> str:
        own = [end for end in ends if end >= self._held_ns]
        last_ns = own[-1] if own else self._held_ns
        over = time.monotonic_ns() >= self._tally.words[numbers.HELD_UNTIL]
        least_steps = END_STEPS if over else STALL_STEPS
        stalled = now_ns - last_ns > max(STALL_NS, least_steps * self._step_ns)
        if not (stalled or over):
            return ""
        self._tally.set(numbers.HELD_UNTIL, 0)
        self._since_ns = now_ns
        self.buffered, self.deep = len(own), not stalled
        steps = 2 * self.buffered + BLOCK_STEPS
        self.block_ns = int(steps * self._step_ns)
        if self.deep:
            return "more than %d steps are buffered between the place and the step, or none needs it" % self.buffered
        if self.block_ns > MOST_BLOCK_NS:
            return "%d steps are buffered between the place and the step: blocks would last too long" % self.buffered
        return ""

    def _settle(self, now_ns: int) -> None:
        self.prepared = now_ns - self._since_ns >= max(SETTLE_NS, 2 * self.buffered * self._step_ns)


def _schedstat(tid: int) -> tuple[int, int]:
    """CPU time of a thread, and time for which it was ready without a CPU, ns; 0 if the kernel does not say.

    Source: Documentation/scheduler/sched-stats.rst.
    """
    try:
        with open("/proc/%d/schedstat" % tid, encoding="ascii") as file:
            ran, queued = file.read().split()[:2]
            return int(ran), int(queued)
    except (OSError, ValueError):
        return 0, 0
