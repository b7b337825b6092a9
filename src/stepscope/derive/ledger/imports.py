"""Imports of libraries that stack samples see; the import hook knows those of frameworks, before which none is taken.

A sample is of an import if the innermost line of the user's code waits for one. What a module of the user's own does
while it is imported is that module's lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.derive.python import stack_samples
from stepscope.model.log.events import Code

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.model.session.session import Worker

LEAST_NS = 1_000_000_000
"""Shorter ones stay with what is built meanwhile: a sample or two may be chance."""
LONGEST_NS = 5_000_000_000
"""Longest time that one sample stands for: a thread that holds the interpreter's lock is not sampled meanwhile."""


def sampled(worker: Worker, threads: tuple[int, ...]) -> Intervals:
    """When these threads imported libraries for a second or more, from sample to sample."""
    if not any(code.file.startswith(stack_samples.IMPORTING) for code in worker.all(Code)):
        return intervals.empty()
    found = intervals.empty()
    for thread in threads:
        samples = sorted(stack_samples.thread_samples(worker, [thread], gaps=True), key=lambda sample: sample.at)
        at = np.array([sample.at for sample in samples], np.int64)
        mine = np.array([_imports(sample) for sample in samples], np.bool_)
        begun = np.maximum(np.append(at[:1] - LONGEST_NS, at[:-1]), at - LONGEST_NS)
        found = intervals.union(found, intervals.merge(begun[mine], at[mine]))
    long = found[1] - found[0] >= LEAST_NS
    return found[0][long], found[1][long]


def _imports(sample: stack_samples.Sample) -> bool:
    return any(frame.file.startswith(stack_samples.IMPORTING) for frame in sample.below_user())
