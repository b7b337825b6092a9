"""Jobs of one process with replicas on several devices, in traced steps of 100 ms: what each does is chosen here."""

from __future__ import annotations

from collections.abc import Sequence

from tests.derive.graph_tables import Tables
from tests.derive.op_traces import Maker
from tests.derive.sessions import Job
from tests.detectors.graph_jobs import read
from tests.detectors.traced_jobs import STEP, TRACED, holding

LINE, MORE = 12, 33
"""Lines of what all replicas do, and of what a slow one does beyond."""
US = 1e3
EXCHANGE = 20 * US
"""An exchange without waits."""


def mirrored(work_ms: Sequence[Sequence[float]], *, waits: bool = True, device: str = "CPU") -> Job:
    """Replicas that work for times (each list in turn, step by step), then exchange gradients.

    ``waits``: the exchange of each begins when its own work is done and ends for all at once; else they begin it
    together, so that none waits for another.
    """
    made, tables = Maker(), Tables()
    graph = tables.graph()
    threads = [made.thread(f"tf_Compute{number}") for number in range(len(work_ms))]
    for number in range(len(work_ms)):
        place = f"/job:localhost/replica:0/task:0/device:{device}:{number}"
        graph.op(_name(number, "MatMul"), "MatMul", line=LINE, device=place)
        graph.op(_name(number, "extra"), "MatMul", line=MORE, device=place)
        graph.op(_name(number, "CollectiveReduceV2"), "CollectiveReduceV2", device=place)
    for i in range(TRACED):
        begin = STEP * i
        made.step(begin, STEP - 1, i)
        work = [US * one[i % len(one)] for one in work_ms]
        least, most = min(work), max(work)
        for number, (thread, mine) in enumerate(zip(threads, work, strict=True)):
            at = begin + 10
            made.op(thread, f"{_name(number, 'MatMul')}:MatMul", at, least)
            if mine > least:
                made.op(thread, f"{_name(number, 'extra')}:MatMul", at + least, mine - least)
            enters = at + (mine if waits else most)
            name = f"{_name(number, 'CollectiveReduceV2')}:CollectiveReduceV2"
            made.op(thread, name, enters + 1, at + most + EXCHANGE - enters)
    job = holding(made.trace())
    read(job, tables)
    return job


def _name(replica: int, op: str) -> str:
    return f"replica_{replica}/{op}" if replica else op
