"""The meaning of names in an op trace: op name, op type and category of a kind of event.

Profilers identify an event by its name and its line, so this is a table of the names that TensorFlow (2.4-2.21), JAX,
XLA, CUPTI and kineto use. A name that no row matches is ``Category.OTHER``; nothing is guessed from parts of words.

Source: ``xla/tsl/profiler/utils/tf_op_utils.cc`` (openxla/xla) for ``name:Type``; the names themselves from captures of
those versions.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from stepscope.tables.optrace import Category, LineKind, PlaneKind

if TYPE_CHECKING:
    from collections.abc import Callable

_OP = re.compile(r"(?P<name>[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*):(?P<type>[A-Z_][a-zA-Z0-9_]*)")
_JAX_TYPE = re.compile(r"[a-z_][a-z0-9_]*(\[.*\])?", re.DOTALL)
_HLO = re.compile(r"%?(?P<name>[\w.-]+) = .*?[\])}\w] (?P<opcode>[a-z][a-z0-9-]*)\(", re.DOTALL)
_MEMCPY = re.compile(r"(?i)memcpy ?(?P<way>[hd]to[hd]|[hdp]2[hdp])|mem(cpy|set|ory copy)")
_COLLECTIVE_OP = re.compile(
    r"Collective(Reduce|Gather|Bcast|Permute|AllToAll|InitializeCommunicator)\w*"
    r"|_?Nccl(AllReduce|Reduce|Broadcast)(Send|Recv)?"
    r"|Horovod(Allreduce|Allgather|Broadcast|Alltoall|Reducescatter|GroupedAllreduce)"
)
_COLLECTIVE_HLO = re.compile(r"%?(all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute)")
_COLLECTIVE_WORK = re.compile(r"nccl(Dev)?Kernel|nccl:|rccl|ncclx?:|c10d::|gloo:", re.IGNORECASE)
_RUNTIME = re.compile(r"(cu|cuda|hip|hsa)[A-Z]\w+")
_RUNTIME_WAIT = re.compile(r"(cu|cuda|hip)(Stream|Event|Device|Ctx)?Synchronize")

THREADPOOL_PREFIX = "ThreadpoolListener::"
"""Prefix of the bookkeeping of thread pools: two thirds of a TensorFlow capture's events, and none of its work."""

WHOLE_PROGRAM = "XlaModule:"
"""What JAX's kernels name as their op: the program that they are a part of, and so nothing."""

LOWERS = "lower_sharding_computation"
"""JAX writes a new program, which it compiles next or takes from a cache (0.10, jax/_src/interpreters/pxla.py)."""
CALLS_JITTED = "PjitFunction("

ITERATOR_PREFIX = "Iterator::"
DATASET = "Dataset"
"""Op type of a stage of a tf.data pipeline, as xprof calls it."""

_EXACT = {
    "ExecutorState::Process": Category.EXECUTOR,
    "ExecutorState::ProcessAsync::Start": Category.EXECUTOR,
    "ExecutorState::ProcessAsync::Done": Category.EXECUTOR,
    "ExecutorState::PropagateOutputs": Category.EXECUTOR,
    "ExecutorState::NodeDone": Category.EXECUTOR,
    "ExecutorState::ScheduleReady": Category.EXECUTOR,
    "ExecutorState::RunAsync": Category.EXECUTOR,
    "ExecutorPropagateOutputs": Category.EXECUTOR,
    "ExecutorNodeDone": Category.EXECUTOR,
    "ExecutorPrepareInputs": Category.EXECUTOR,
    "ExecutorDoneCallback": Category.EXECUTOR,
    "RemoteCallOpDone": Category.EXECUTOR,
    "SameWorkerRecvDone": Category.EXECUTOR,
    "EagerExecute": Category.CALL,
    "EagerKernelExecute": Category.CALL,
    "KernelAndDeviceFunc::Run": Category.CALL,
    "KernelAndDeviceFunc::RunAsync": Category.CALL,
    "KernelAndDeviceOp::Run": Category.CALL,
    "FunctionRun": Category.CALL,
    "InstantiatedCapturedFunction::Run": Category.CALL,
    "InstantiatedCapturedFunction::RunAsync": Category.CALL,
    "InstantiatedCapturedFunction::RunInstantiated": Category.CALL,
    "PyFunc": Category.PYTHON,
    "ParseArguments": Category.CALL,
    "IteratorGetNextOp::DoCompute": Category.INPUT,
    "IteratorGetNextAsOptionalOp::DoCompute": Category.INPUT,
    "MultiDeviceIteratorGetNextFromShard": Category.INPUT,
    "ParallelMapProduce": Category.INPUT,
    "ParallelMapConsume": Category.INPUT,
    "EagerCopyToDevice": Category.COPY,
    "MemCpyAsync": Category.COPY,
    "DevicePut": Category.COPY,
    "H2D Dispatch": Category.COPY,
    "D2H Copy From Staging Buffer": Category.COPY,
    "MemoryAllocation": Category.MEMORY,
    "MemoryDeallocation": Category.MEMORY,
    "[memory]": Category.MEMORY,
    "ThunkExecutor::Execute (wait for completion)": Category.WAIT,
    "CommonPjRtBuffer::Await": Category.WAIT,
    "dependency-wait": Category.WAIT,
    "barrier-cores": Category.WAIT,
    "TraceContext": Category.STEP,
}
_PREFIXES = (
    (THREADPOOL_PREFIX, Category.EXECUTOR),
    ("MakeIterator::", Category.INPUT),
    ("BaseCollectiveExecutor::", Category.COLLECTIVE),
    ("CollectiveExecutor::", Category.COLLECTIVE),
    ("CollectiveOpV2Kernel::", Category.COLLECTIVE),
    ("EagerLocalExecute", Category.CALL),
    ("TFE_", Category.CALL),
    (CALLS_JITTED, Category.CALL),
    ("TfrtTpuLoadedExecutable::", Category.CALL),
    ("PjRtCApiLoadedExecutable::", Category.CALL),
    ("PJRT_LoadedExecutable_", Category.CALL),
    ("TfrtCpuExecutable::", Category.CALL),
    ("CommonPjRtLoadedExecutable::", Category.CALL),
    ("backend_compile", Category.COMPILE),
    ("trace_to_jaxpr", Category.COMPILE),
    (LOWERS, Category.COMPILE),
    ("XlaCompile", Category.COMPILE),
    ("CpuCompiler::", Category.COMPILE),
    ("GpuCompiler::", Category.COMPILE),
    ("XLA::TPU ", Category.COMPILE),
    ("JitCompiler::", Category.COMPILE),
    ("FusionCompiler::", Category.COMPILE),
    ("Grappler", Category.COMPILE),
    ("GraphOptimizationPass", Category.COMPILE),
    ("OptimizationPassRunner", Category.COMPILE),
    ("TransferToDevice", Category.COPY),
    ("BatchedCopyToDevice", Category.COPY),
    ("batched_copy_array_to_devices", Category.COPY),
    ("ProfilerStep#", Category.STEP),
    ("Profiled batch", Category.STEP),  # Keras; on JAX with the number in the name, and without the stat step_num
    ("$", Category.PYTHON),
)
_ALL_PREFIXES = tuple(prefix for prefix, _ in _PREFIXES)
_BY_LINE = {
    LineKind.STEPS: Category.STEP,
    LineKind.XLA_MODULES: Category.CALL,
    LineKind.NAME_SCOPE: Category.OTHER,
    LineKind.SOURCE: Category.OTHER,
}


class Meaning(NamedTuple):
    """The meaning of a name. ``op_name`` and ``op_type`` are empty if it is not an op."""

    category: Category
    op_name: str = ""
    op_type: str = ""


def parse_op(full_name: str) -> tuple[str, str] | None:
    """Name and type of a framework op ``scope/name:Type``, or of a copy; None if it is neither.

    Stages of a dataset (``Iterator::Map``) are not ops here.
    """
    op = _OP.fullmatch(full_name)
    if op is not None:
        return op[1], op[2]
    name, colon, kind = full_name.partition(":")
    if not colon or name == "Iterator":
        return None
    kind = kind or _derived_type(name)
    if _JAX_TYPE.fullmatch(kind) and name:
        return name, kind.partition("[")[0]
    return (name, kind) if full_name.endswith(":") and name else None


@lru_cache(maxsize=1024)
def op_category(op_type: str) -> Category:
    """The category of an op on the host."""
    return Category.COLLECTIVE if _COLLECTIVE_OP.fullmatch(op_type) else Category.OP


def _derived_type(name: str) -> str:
    """The type in the last part of a name without one: ``a/dot_general_1`` gives ``dot_general``."""
    last = name.rpartition("/")[2]
    stem, underscore, number = last.rpartition("_")
    return stem if underscore and number.isdigit() else last


def meaning(name: str, plane: PlaneKind, line: LineKind, *, hlo_category: str = "", step: bool = False) -> Meaning:
    """The meaning of a kind of event.

    Args:
        name: the event's, without a display name.
        plane: the plane's kind.
        line: kind of the line that it is on.
        hlo_category: XLA's category of the op, if the trace holds it.
        step: it is marked as the root of a step.
    """
    return Meaning(category=Category.STEP) if step else meanings(plane, line)(name, hlo_category)


def meanings(plane: PlaneKind, line: LineKind) -> Callable[[str, str], Meaning]:
    """A function from a name and XLA's category of the op to the meaning on one kind of line."""
    if line is LineKind.FRAMEWORK_OPS:
        return _framework_op
    if line in _BY_LINE:
        return partial(_any_name, Meaning(category=_BY_LINE[line]))
    if line in {LineKind.XLA_OPS, LineKind.ASYNC_OPS}:
        return _hlo_op
    if line is LineKind.STREAM:
        return _device_work
    if plane is PlaneKind.HOST or line in {LineKind.THREAD, LineKind.DEVICE_TRACES, LineKind.OTHER}:
        return _host_span
    return partial(_any_name, Meaning(category=Category.OTHER))


def _any_name(known: Meaning, _name: str, _hlo_category: str) -> Meaning:
    return known


def _framework_op(name: str, _hlo_category: str) -> Meaning:
    op_name, op_type = parse_op(name) or (name, name.rpartition("/")[2])
    return Meaning(Category.OP, op_name, op_type)


def _hlo_op(name: str, hlo_category: str) -> Meaning:
    match = _HLO.match(name)
    op_name = match["name"] if match else name.lstrip("%")
    op_type = hlo_category or (match["opcode"] if match else "")
    if _COLLECTIVE_HLO.match(name):
        category = Category.COLLECTIVE
    elif op_type.startswith(("copy", "infeed", "outfeed", "host send", "host recv")):
        category = Category.COPY
    else:
        category = Category.KERNEL
    return Meaning(category=category, op_name=op_name, op_type=op_type)


def hlo_type(name: str) -> str:
    """The opcode as far as the name of an HLO op shows it: ``dot.1`` is a dot, ``wrapped_tanh.3`` a tanh."""
    stem, dot, number = name.rpartition(".")
    base = stem if dot and number.isdigit() else name
    return "fusion" if base.endswith("fusion") else base.removeprefix("wrapped_")


def _device_work(name: str, _hlo_category: str) -> Meaning:
    if _COLLECTIVE_WORK.match(name):
        return Meaning(category=Category.COLLECTIVE)
    copy = _MEMCPY.match(name)
    if copy:
        return Meaning(category=Category.COPY, op_name=name, op_type=_copy_type(copy["way"], name))
    return Meaning(category=Category.KERNEL)


def _copy_type(way: str | None, name: str) -> str:
    """The type ``MemcpyHToD`` in every spelling (``MemcpyH2D``, ``Memcpy HtoD (Pageable -> Device)``)."""
    if way is None:
        return "Memset" if "set" in name.lower() else "Memcpy"
    return f"Memcpy{way[0].upper()}To{way[-1].upper()}"


def _host_span(name: str, _hlo_category: str) -> Meaning:
    op = parse_op(name)
    if op is not None:
        return Meaning(op_category(op[1]), *op)
    if name.startswith(ITERATOR_PREFIX):
        return Meaning(category=Category.INPUT, op_name=name, op_type=DATASET)
    known = _EXACT.get(name)
    if known is None and name.startswith(_ALL_PREFIXES):
        known = next(category for prefix, category in _PREFIXES if name.startswith(prefix))
    if known is not None:
        return Meaning(category=known)
    if _MEMCPY.match(name):  # the call that starts a copy, not the copy
        return Meaning(category=Category.COPY)
    if _RUNTIME.match(name):
        return Meaning(category=Category.WAIT if _RUNTIME_WAIT.fullmatch(name) else Category.RUNTIME)
    return Meaning(category=Category.COLLECTIVE if _COLLECTIVE_WORK.match(name) else Category.OTHER)


def is_derived(plane: PlaneKind, line: LineKind) -> bool:
    """Whether the times of such a line repeat those of another line of its plane."""
    if line is LineKind.XLA_OPS:
        return plane is PlaneKind.GPU
    return line in _DERIVED


_DERIVED = frozenset(
    {LineKind.XLA_MODULES, LineKind.STEPS, LineKind.FRAMEWORK_OPS, LineKind.NAME_SCOPE, LineKind.SOURCE}
)
