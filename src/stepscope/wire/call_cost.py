"""What a wrapped call costs in a training step: the agent plans with it, the session accounts with it.

In a loop that does nothing else a wrapped call takes 0.5 to 1.5 us: the calibration of each process says. In a step
the caches hold the step's data and code, and it takes 7 to 10 us. Steps with all wrappers beside steps with none, in
turn in one process, cost 6.7 us a call (6.2 to 7.2) where the loop says 0.68, 8.3 (7.8 to 8.7) where it says 1.19, and
10.4 (8.8 to 12.0) where it says 1.5, because a neighbour keeps the core's other half busy.

Source: docs/benchmarks/overhead.md, printed by benchmarks/call_cost.py.
"""

from __future__ import annotations

MISSES_NS = (3_500, 5_000, 7_000)
"""What cache misses add to a wrapped call: at least, usually, at most."""
EXECUTED = 3
"""What a call of a real probe executes, against the calibration's."""
LIGHT_NS = (200, 750, 1_100)
"""A call that is only counted, in C, in a gap of the duty cycle: at least, usually, at most."""


def wrapped_ns(calibrated_ns: float) -> tuple[float, float, float]:
    """A wrapped call in a step, from one in a loop that does nothing else: at least, usually, at most."""
    low, usual, high = MISSES_NS
    executed = EXECUTED * calibrated_ns
    return low + executed, usual + executed, high + executed
