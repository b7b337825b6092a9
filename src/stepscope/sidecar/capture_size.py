"""How many steps an op trace has that nobody waits for: as many as the job has earned, by what one is expected to cost.

What is written and read costs by the event, so a step of a graph of many nodes, or of a loop of many turns, costs as
much as many steps of a small one. A step that is long costs by its length: recording slows it down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps

EVENT_NS = 3_500
"""CPU time to write an event and to read it, and what the steps are slower meanwhile. Measured: 2.9 to 3.2 us of CPU
time for traces of 42,000 and 278,000 events, 0.2 us in the steps."""
SLOW_RATIO = 0.03
"""Of a traced step. Source: decision 0004, level 2."""
START_NS = 20_000_000
"""Of any trace, however few events it has."""
UNKNOWN_STEP_NS = 2_500_000
"""Of a step whose graphs were not looked at: one of a small model."""


def step_cost_ns(events: float | None, steps: Steps | None) -> float:
    """What each traced step is expected to cost; ``events``: of one step, None where that is not known."""
    written = UNKNOWN_STEP_NS if events is None else events * EVENT_NS
    return written + SLOW_RATIO * step_ns(steps)


def step_ns(steps: Steps | None) -> float:
    """The mean steady step; 0 where none is known."""
    return steps.steady_ns / steps.steady_count if steps is not None and steps.steady_count else 0.0


def cost_ns(count: int, each_ns: float) -> int:
    """Of a trace of so many whole steps: recording begins within one more."""
    return START_NS + round((count + 1) * each_ns)


def affordable(balance_ns: int, each_ns: float, most: int) -> int:
    """How many steps what has been earned covers, ``most`` at most; 0: not even one."""
    return max(0, min(most, int((balance_ns - START_NS) / max(1.0, each_ns)) - 1))
