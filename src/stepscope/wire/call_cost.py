"""The cost of a wrapped call in a training step: used by the agent to plan and by the session to account.

In a loop that does nothing else a wrapped call takes 0.5 to 1.5 us, as each process's calibration measures. In a step
the caches hold the step's data and code, and it takes 7 to 10 us. Steps with all wrappers, alternating with steps with
none in one process, cost 6.7 us per call (6.2 to 7.2) where the loop measures 0.68, 8.3 (7.8 to 8.7) where it measures
1.19, and 10.4 (8.8 to 12.0) where it measures 1.5, because a neighbour keeps the core's other half busy.

Calls that follow each other closely find the caches warm: 1.2 us of CPU time a call where a call comes each
microsecond, 3.2 with 19 us of eager ops between two, 4.5 with 56, 4.9 with 109, 6.7 with 357 (the loop: 0.52).

Source: docs/benchmarks/overhead.md, printed by bench/call_cost.py.
"""

from __future__ import annotations

MISSES_NS = (3_500, 5_000, 7_000)
"""Time that cache misses add to a wrapped call: at least, usually, at most."""
EXECUTED = 3
"""Factor of a real probe's executed code over the calibration's."""
COOLING_NS = (200_000, 40_000, 20_000)
"""Time of other work after which half of a call's cache lines are gone: at most, usually, at least. Copies of arrays
between the calls leave the code cached (2.3 us a call with 60 us of them between), eager ops do not."""
LIGHT_NS = (200, 750, 1_100)
"""Time of a call that is only counted, in C, in a gap of the duty cycle, from cold caches: least, usual, most."""
HOOK_LIGHTS = 2
"""A call that PyTorch's hook counts costs as much as so many that are counted in C: 1.3 to 3.3 us against 1.5, after
8 MB of other data (PyTorch 2.13, Python 3.11, lower quarter of 800 calls); one that it records, 13 to 16."""
WARM_LIGHT_NS = 100
"""The same with warm caches, at most."""


def wrapped_ns(calibrated_ns: float) -> tuple[float, float, float]:
    """Time of a wrapped call in a step, from the time in a loop that does nothing else: at least, usually, at most.

    The caches are taken as cold; ``executed_ns`` is the part without cache misses.
    """
    low, usual, high = MISSES_NS
    executed = executed_ns(calibrated_ns)
    return low + executed, usual + executed, high + executed


def executed_ns(calibrated_ns: float) -> float:
    """Time of a wrapped call whose code and data are cached."""
    return EXECUTED * calibrated_ns
