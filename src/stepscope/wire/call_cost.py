"""The cost of a wrapped call in a training step: used by the agent to plan and by the session to account.

In a loop that does nothing else a wrapped call takes 0.5 to 1.5 us, as each process's calibration measures. In a step
the caches hold the step's data and code, and it takes 7 to 10 us. Steps with all wrappers, alternating with steps with
none in one process, cost 6.7 us per call (6.2 to 7.2) where the loop measures 0.68, 8.3 (7.8 to 8.7) where it measures
1.19, and 10.4 (8.8 to 12.0) where it measures 1.5, because a neighbour keeps the core's other half busy.

Source: docs/benchmarks/overhead.md, printed by benchmarks/call_cost.py.
"""

from __future__ import annotations

MISSES_NS = (3_500, 5_000, 7_000)
"""Time that cache misses add to a wrapped call: at least, usually, at most."""
EXECUTED = 3
"""Factor of a real probe's executed code over the calibration's."""
LIGHT_NS = (200, 750, 1_100)
"""Time of a call that is only counted, in C, while wrappers rest: at least, usually, at most."""


def wrapped_ns(calibrated_ns: float) -> tuple[float, float, float]:
    """Time of a wrapped call in a step, from the time in a loop that does nothing else: at least, usually, at most."""
    low, usual, high = MISSES_NS
    executed = EXECUTED * calibrated_ns
    return low + executed, usual + executed, high + executed
