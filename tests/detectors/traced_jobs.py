"""Jobs whose steps of 100 ms are traced: what the ops do is chosen here. Times are microseconds."""

from __future__ import annotations

from msgspec.structs import replace
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, Job

from stepscope.model.session.session import StoredOpTrace
from stepscope.tables.optrace import OpTrace, Program, TraceSource

TRACE, DEVICE = "op trace of some steps", "op trace with GPU or TPU work"
STEP = 100_000.0
TRACED = 12
"""Steps of a trace, of which the last is left out."""


def holding(trace: OpTrace, *, measured: bool = True) -> Job:
    """A job that holds a trace; ``measured``: of 40 steps of 100 ms in a loop, else an imported file."""
    job = Job(ended_ns=4_000 * MS)
    if measured:
        job.execution().every(100 * MS, 40, dur=90 * MS)
    else:
        job.mode = "import"
    worker = str(job.pid) if measured else ""
    source = TraceSource(format="test")
    job.resources["op_traces"] = [StoredOpTrace(name="ops-001", worker=worker, source=source, load=lambda: trace)]
    return job


def untraced() -> Job:
    """A job without a trace."""
    job = Job(ended_ns=4_000 * MS)
    job.execution().every(100 * MS, 40, dur=90 * MS)
    return job


def compiled(extra: float, *, again: bool = True, same: bool = False) -> Job:
    """A program is compiled in the fifth of eleven steps, which takes ``extra`` longer; an older one ran before."""
    made, at = Maker(), 0.0
    for i in range(TRACED):
        dur = STEP + (extra if i == 4 else 0.0)
        made.step(at, dur - 1, i)
        if i == 4:
            made.span(made.main, "backend_compile_and_load", at + 5, extra * 0.9, name="jit_f")
        if again or i >= 4:
            program = 1 if i < 4 else 2
            made.span(made.main, "dot", at + dur - 90, 50, hlo_op="dot", hlo_module="jit_f", program_id=program)
        at += dur
    now = "f32[8,4]" if same else "f32[6,4]"
    programs = Program(name="jit_f", id=1, parameters=("f32[8,4]",)), Program(name="jit_f", id=2, parameters=(now,))
    return holding(replace(made.trace(), programs=programs))


def fed(wait: float, *, calls: int = 8, work: float = 0.2, kind: str = "Sin", measured: bool = True) -> Job:
    """Steps wait ``wait`` for a map of ``calls`` records; its function works ``work`` of the time in ops of a kind."""
    made = Maker()
    fetch, pool, compute = made.thread("tf_data_get_next"), made.thread("tf_data_pool"), made.thread("tf_Compute")
    for i in range(TRACED):
        at, run = STEP * i, 1 + i
        made.step(at, STEP - 1, i)
        made.call(at, STEP - 2, run)
        made.get_next(fetch, at + 3, wait - 3, run)
        made.stage(fetch, "Root", at + 4, wait - 5)
        made.stage(fetch, "Root::Batch", at + 5, wait - 7)
        each = (wait - 20) / calls
        for k in range(calls):
            begin, number = at + 8 + k * each, 10_000 + 100 * i + k
            made.stage(fetch, "Root::Batch::Map", begin, each * 0.98)
            made.span(fetch, "InstantiatedCapturedFunction::Run", begin + 1, each * 0.96, id=number)
            made.op(pool, f"map/{kind}:{kind}", begin + 2, each * 0.96 * work, number)
        made.op(compute, "model/MatMul:MatMul", at + wait + 1, STEP - wait - 100, run)
    return holding(made.trace(), measured=measured)


def served(wait: float, stage: str = "DataService") -> Job:
    """An imported file: steps wait ``wait`` for one stage, by default for the workers of a tf.data service."""
    made = Maker()
    fetch, compute = made.thread("tf_data_get_next"), made.thread("tf_Compute")
    for i in range(TRACED):
        at, run = STEP * i, 1 + i
        made.step(at, STEP - 1, i)
        made.call(at, STEP - 2, run)
        made.get_next(fetch, at + 3, wait - 3, run)
        made.stage(fetch, "Root", at + 4, wait - 5)
        made.stage(fetch, f"Root::{stage}", at + 5, wait - 7)
        made.op(compute, "model/MatMul:MatMul", at + wait + 1, STEP - wait - 100, run)
    return holding(made.trace(), measured=False)


def made_by_python(wait: float, *, works: float, maker: str = "$data.py:9 make") -> Job:
    """An imported file with traced Python: steps wait ``wait`` in ``next``, another thread works for part of it."""
    made = Maker()
    other = made.thread("loader")
    for i in range(TRACED):
        at = STEP * i
        made.step(at, STEP - 1, i)
        made.span(made.main, "$builtins next", at + 1, wait)
        made.op(made.main, "model/MatMul:MatMul", at + wait + 2, STEP - wait - 100)
        made.span(other, maker, at + 2, works * wait)
    return holding(made.trace(), measured=False)


def on_gpu(
    kernels: list[tuple[str, float, float, float]],
    *,
    copy: float = 0.0,
    fetch: float = 0.0,
    host_op: float = 0.0,
    launching: float = 0.0,
    capability: int = 7,
    op: str = "",
) -> Job:
    """Each step runs kernels (name, launched at, start, duration), then copies, ops on the host, or hands out ops.

    ``op``: name:type of the op that the kernels work for.
    """
    stats = {"tf_op": op} if op else {}
    made = Maker()
    device = made.device(compute_cap_major=capability, core_count=80)
    stream, copies = made.stream(device), made.stream(device, "Stream #2(MemcpyH2D)")
    fetches = made.stream(device, "Stream #3(MemcpyD2H)")
    pool = made.thread("tf_Compute")
    for i in range(TRACED):
        at = STEP * i
        made.step(at, STEP - 1, i)
        for name, launched, start, dur in kernels:
            made.launch(made.main, stream, name, at + launched, at + start, dur, **stats)
        after = at + max((start + dur for _, _, start, dur in kernels), default=0.0)
        if copy:
            made.span(copies, "MemcpyH2D", after, copy, transfer_bytes=1_000_000)
        if fetch:
            made.span(fetches, "MemcpyD2H", after, fetch, transfer_bytes=1_000_000)
        if host_op:
            made.op(pool, "model/Where:Where", after, host_op)
        if launching:
            made.span(made.main, "EagerExecute", after, launching)
    return holding(made.trace())


def many_kernels(gap: float, count: int = 1_600, *, op: str = "") -> Job:
    """A step of ``count`` element-wise kernels of 20 us, all in the queue, with ``gap`` between two."""
    kernels = [("AddV2_kernel", 3.0 * k, 700 + k * (20 + gap), 20.0) for k in range(count)]
    return on_gpu(kernels, op=op)


def transposed(spent: float, *, name: str = "Conv-0-TransposeNHWCToNCHW-LayoutOptimizer") -> Job:
    """Steps spend some time in transposes on the host."""
    made = Maker()
    pool = made.thread("tf_Compute")
    for i in range(TRACED):
        made.step(STEP * i, STEP - 1, i)
        made.op(pool, f"model/{name}:Transpose", STEP * i + 10, spent)
        made.op(pool, "model/Conv2D:Conv2D", STEP * i + 20 + spent, 1000)
    return holding(made.trace())


def loaded(wait: float, *, workers: bool = False, steps: int = TRACED) -> Job:
    """A file of PyTorch's profiler whose steps take their batch from a DataLoader for so long; the last has no end."""
    made = Maker(TraceSource(format="kineto"))
    who = "_MultiProcessingDataLoaderIter" if workers else "_SingleProcessDataLoaderIter"
    for i in range(steps):
        at = STEP * i
        made.step(at, STEP - 1, i)
        made.span(made.main, f"enumerate(DataLoader)#{who}.__next__", at + 1, wait)
        made.op(made.main, "aten::mm:mm", at + wait + 2, STEP - wait - 100)
    return holding(made.trace(), measured=False)


HEAD = ("gemm_kernel", 0.0, 10.0, 20_000.0)
"""A kernel of a fifth of the step."""


def exchanging(share: float, *, measured: bool = True) -> Job:
    """Steps of a host that exchange gradients for a share of the step, with no op beside that."""
    made = Maker()
    pool = made.thread("tf_Compute")
    for i in range(TRACED):
        at, run = STEP * i, 1 + i
        made.step(at, STEP - 1, i)
        made.call(at, STEP - 2, run)
        made.op(pool, "a/MatMul:MatMul", at + 10, STEP * (1 - share) - 20, run)
        made.op(pool, "b/CollectiveReduceV2:CollectiveReduceV2", at + STEP * (1 - share), STEP * share - 10, run)
    return holding(made.trace(), measured=measured)
