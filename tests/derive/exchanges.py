"""Traced runs of a worker that receives its layers' weights from a server: when each comes is chosen. Times us."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.readers import run_metadata
from stepscope.readers.op_names import Meaning
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.tables.optrace import Category, LineKind, OpTrace, PlaneKind, TraceSource
from stepscope.tables.optrace_stats import PlainStat, StatName

US = 1_000
WORKER, SERVER = "/job:worker/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0"
SIZE = 4_000_000


class Exchange:
    """Runs of which each op and transfer is written by the test."""

    def __init__(self) -> None:
        self.builder = OpTraceBuilder(TraceSource(format=run_metadata.FORMAT))
        self.planes = [self.builder.plane(name, PlaneKind.HOST) for name in (WORKER, SERVER)]
        self.threads = [self.builder.line(plane, "thread 0") for plane in self.planes]
        self.came = [self.builder.line(plane, run_metadata.TRANSFERS) for plane in self.planes]
        self.runs = self.builder.line(self.planes[0], run_metadata.RUNS, LineKind.STEPS)

    def op(self, name: str, start: float, dur: float, inputs: str = "", *, kind: str = "MatMul", at: int = 0) -> None:
        """An op of the worker, or of the server (``at=1``)."""
        known = Meaning(category=Category.OP, op_name=name, op_type=kind)
        stats: dict[str, PlainStat] = {StatName.INPUTS: inputs} if inputs else {}
        self.builder.event(self.threads[at], f"{name}:{kind}", US * start, US * dur, stats=stats, known=known)

    def transfer(self, name: str, start: float, end: float, size: int = SIZE, *, to: int = 0) -> None:
        """What an op of the one sent to the other."""
        stats: dict[str, PlainStat] = {
            StatName.TRANSFER_BYTES: size,
            run_metadata.TENSOR: f"edge_7_{name}",
            run_metadata.SOURCE: (SERVER, WORKER)[to],
            run_metadata.TARGET: (WORKER, SERVER)[to],
        }
        known = Meaning(category=Category.COLLECTIVE)
        self.builder.event(self.came[to], "RecvTensor", US * start, US * (end - start), stats=stats, known=known)

    def run(self, start: float, dur: float) -> None:
        """The time of a run."""
        self.builder.event(self.runs, "Session.run", US * start, US * dur)

    def trace(self) -> OpTrace:
        """All of it."""
        return self.builder.build()


def layers(came: Sequence[float], work: float, *, runs: int = 3, period: float = 0.0) -> OpTrace:
    """A chain of layers of which each works ``work`` once its weights and the layer before are there.

    Args:
        came: when the weights of each layer came, in us since the begin of the run.
        work: time of a layer.
        runs: number of runs.
        period: from run to run; 0: without a pause.
    """
    made = Exchange()
    at = 0.0
    for _ in range(runs):
        made.op("x", at, 1, kind="IteratorGetNext")
        done = at + 1
        for i, weights in enumerate(came):
            made.transfer(f"w{i}/read", at, at + weights)
            begin = max(done, at + weights)
            made.op(f"layer{i}", begin, work, f"{f'layer{i - 1}' if i else 'x'}, w{i}/read_S{30 + i}")
            done = begin + work
        made.transfer(f"layer{len(came) - 1}", done, done + 1, 4, to=1)
        made.op("apply", done + 1, 1, f"layer{len(came) - 1}_S99", kind="AssignAdd", at=1)
        made.run(at, done + 2 - at)
        at += max(period, done + 2 - at)
    return made.trace()
