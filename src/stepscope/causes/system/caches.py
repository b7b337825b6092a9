"""Caches of the CPU that a step shares with Python that runs between its calls, or on another thread of the same CPU.

Code that reads much memory evicts what the step's ops will read, so that these take longer, though it runs at another
moment. How much it reads is not measured: the time that a step would get back is only part of a cost's upper end.

Serves input_cause and detectors of Python in the loop.
"""

from __future__ import annotations

SLOWER = 1.7
"""Factor on the time of a step's calls. Measured on pairs of bench/strangers, slow against fixed: 1.6 and 1.4
where a probability for each of many rows is computed between the calls (batch-3/01 and 12), 1.5 and 1.7 where a thread
reads 29 MB for each batch (two runs of batch-3/13), 0.8 in batch-3/03."""


def freed(ratio: float) -> float:
    """The most of a share of the time, in calls of the step, that they get back where nothing else uses the caches."""
    return max(0.0, ratio) * (1.0 - 1.0 / SLOWER)
