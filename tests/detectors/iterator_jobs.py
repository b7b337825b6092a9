"""Loops that make iterators of tf.data."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.jobs import MAKE, PERIOD, STEPS, TF, train_loop

from stepscope.wire.kinds import Kind

NEXT = 40
"""The line that takes a batch."""
MAKES = Frame(f"{TF}/data/ops/iterator_ops.py", "OwnedIterator.__init__", 1, own=False)


def fresh(wait: int, making: int = 0, *, batches: int = 1) -> Job:
    """Each step makes an iterator for ``making`` and waits for its first batch; or every few ``batches``."""
    job = train_loop(PERIOD - wait - making, offset=wait + making)
    job.trace(0, MS, owner="user", updates=2)
    dataset = job.dataset("BatchDataset", job.dataset("ShuffleDataset", line=71), line=72, batch=8)
    pulls = job.call(Kind.NEXT, "next", call_file=SCRIPT, call_line=NEXT, call_function="main")
    for i in range(STEPS):
        if i % batches == 0:
            iterator = job.iterator(dataset, batch=8)
        pulls.at(i * PERIOD + making, wait, arg=iterator)
    if making:
        job.samples([i * PERIOD + making // 2 for i in range(STEPS)], Frame(SCRIPT, "main", MAKE), MAKES, dur=making)
    else:
        job.samples([i * PERIOD + PERIOD - MS for i in range(STEPS)], Frame(SCRIPT, "main", MAKE))
    return job
