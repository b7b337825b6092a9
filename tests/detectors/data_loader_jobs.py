"""Jobs of PyTorch whose steps wait for a DataLoader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tests.derive.sessions import MS, SCRIPT, Job, S, filled

from stepscope.model.log.program import DataLoaderMade
from stepscope.model.session.session import HostInfo
from stepscope.tables.records import GpuTable
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

STEP = 100 * MS
STEPS = 200


def torch_job(
    wait: int, *, workers: int = 0, busy: int | None = None, second: int = 0, batch: int = 32, own: bool = True
) -> Job:
    """A training whose optimizer steps once in 100 ms, after a ``next`` of ``wait``.

    Args:
        wait: in the loader's ``next``, ns.
        workers: the loader's.
        busy: percent of the time in which the job's GPU computes; None: it has none.
        second: steps of another optimizer at another line, in the same steps.
        batch: samples of a batch.
        own: the dataset is the user's.
    """
    job = Job(host=HostInfo(cpus=8))
    job.framework("torch", "2.11.0")
    made = job.iterator(batch=batch)
    about: dict[str, Foreign] = {"file": SCRIPT, "line": 30, "function": "main"}
    about |= {"fn_name": "Set.__getitem__", "fn_file": SCRIPT, "fn_line": 12} if own else {}
    job.event(DataLoaderMade(id=made, workers=workers, batch=batch, **about))
    taken = job.call(Kind.NEXT, "next", call_file=SCRIPT, call_line=30, call_function="main")
    taken.every(STEP, STEPS, dur=wait, arg=made)
    place: dict[str, Foreign] = {"role": "optimizer", "call_file": SCRIPT, "call_function": "main"}
    job.call(Kind.APPLY, "optimizer step", call_line=40, **place).every(STEP, STEPS, dur=0, start=90 * MS)
    if second:
        job.call(Kind.APPLY, "optimizer step", call_line=38, **place).every(STEP, second, dur=0, start=80 * MS)
    if busy is not None:
        at = np.arange(STEPS * STEP // S + 1, dtype=np.int64) * S
        zero = at * 0
        columns = {"at_ns": at, "busy_percent": zero + busy, "job_reserved_bytes": zero + 1, "total_bytes": zero + 9}
        job.resources["gpus"] = filled(GpuTable, len(at), **columns)
        job.resources["resource_names"] = ("gpu:0 H100",)
    return job
