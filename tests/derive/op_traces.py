"""Builds op traces in memory: the test chooses who ran when, and what is derived must say so. Times are in us."""

from __future__ import annotations

from stepscope.derive.optrace.trace_view import OpView
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.tables.optrace import LineKind, OpTrace, PlaneKind, TraceSource
from stepscope.tables.optrace_stats import PlainStat

US = 1_000


class Maker:
    """An op trace that is being written: a host with a thread ``python`` that makes the steps."""

    def __init__(self, source: TraceSource | None = None) -> None:
        self.builder = OpTraceBuilder(source or TraceSource(format="test"))
        self.plane = self.builder.plane("/host:CPU", PlaneKind.HOST)
        self.main = self.thread("python")
        self.launches = 0

    def thread(self, name: str) -> int:
        """A thread of the host."""
        return self.builder.line(self.plane, name)

    def device(self, **stats: PlainStat) -> int:
        """A GPU."""
        return self.builder.plane("/device:GPU:0", PlaneKind.GPU, ordinal=0, stats=stats)

    def stream(self, device: int, name: str = "Stream #1(Compute)") -> int:
        """A stream of a device."""
        return self.builder.line(device, name, LineKind.STREAM)

    def span(self, line: int, name: str, start: float, dur: float, /, **stats: PlainStat) -> None:
        """An event from ``start`` on."""
        self.builder.event(line, name, US * start, US * dur, stats=stats)

    def step(self, start: float, dur: float, number: int) -> None:
        """A step marker."""
        stats = {"step_num": number, "_r": 1}
        self.builder.event(self.main, "train", US * start, US * dur, stats=stats, step=True)

    def call(self, start: float, dur: float, run: int = 0) -> None:
        """The step's call of its compiled function, which waits for the function's ops."""
        self.span(self.main, "EagerLocalExecute: __inference_train_function_1", start, dur)
        self.span(self.main, "KernelAndDeviceFunc::Run", start + 1, dur - 2)
        self.span(self.main, "FunctionRun", start + 2, 1, id=run)

    def op(self, line: int, name: str, start: float, dur: float, run: int = 0) -> None:
        """An op in the executor."""
        self.span(line, "ExecutorState::Process", start, dur, id=run)
        self.span(line, name, start, dur)

    def get_next(self, line: int, start: float, dur: float, run: int = 0) -> None:
        """The op that takes the next batch."""
        self.span(line, "IteratorGetNextOp::DoCompute", start, dur, id=run)

    def stage(self, line: int, path: str, start: float, dur: float, /, **stats: PlainStat) -> None:
        """A call of a stage of the pipeline; iterators are numbered by their paths."""
        caller = path.rpartition("::")[0].partition("[")[0]
        said: dict[str, PlainStat] = {"id": _number(path), "parent_id": _number(caller) if "::" in path else 0, **stats}
        self.span(line, f"Iterator::{path}", start, dur, **said)

    def launch(
        self, line: int, stream: int, kernel: str, called: float, start: float, dur: float, **stats: PlainStat
    ) -> None:
        """A kernel and its launch call, which takes 2 us."""
        self.launches += 1
        number = self.launches
        self.span(line, "cudaLaunchKernel", called, 2, correlation_id=number)
        self.span(stream, kernel, start, dur, correlation_id=number, **stats)

    def allocate(self, line: int, at: float, op: str, size: int, live: int, **stats: PlainStat) -> None:
        """An allocation of an allocator with a pool of 1000 bytes."""
        self._memory("MemoryAllocation", line, at, op, size, live, stats)

    def free(self, line: int, at: float, op: str, size: int, live: int, **stats: PlainStat) -> None:
        """Its end."""
        self._memory("MemoryDeallocation", line, at, op, size, live, stats)

    def _memory(
        self, name: str, line: int, at: float, op: str, size: int, live: int, more: dict[str, PlainStat]
    ) -> None:
        said: dict[str, PlainStat] = {
            "allocator_name": "GPU_0_bfc",
            "bytes_allocated": live,
            "bytes_available": 1000 - live,
            "bytes_reserved": 0,
            "peak_bytes_in_use": live,
            "allocation_bytes": size,
            "addr": size,
            "tf_op": op,
            "fragmentation": 0.25,
        }
        self.span(line, name, at, 0, **{**said, **more})

    def trace(self) -> OpTrace:
        """The trace."""
        return self.builder.build()

    def view(self) -> OpView:
        """What can be said of it."""
        return OpView(self.trace())


def _number(path: str) -> int:
    return 1 + int.from_bytes(path.encode(), "big") % ((1 << 61) - 1)
