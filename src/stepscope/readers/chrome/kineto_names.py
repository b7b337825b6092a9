"""The meaning of events in a kineto trace (PyTorch), by their categories. The names have changed over the years.

Source: pytorch/kineto, ``libkineto/include/ActivityType.h`` and ``libkineto/src/output_json.cpp`` (2021-2026).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.readers.op_names import Meaning, meaning
from stepscope.tables.optrace import Category, LineKind, PlaneKind

if TYPE_CHECKING:
    from collections.abc import Iterable

STEP_PREFIX = "ProfilerStep#"
DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "concurrent_kernel"})
ANNOTATIONS = frozenset({"gpu_user_annotation"})
"""Spans on a device that repeat the host's annotations, around kernels of the same stream."""
PYTHON = "python_function"
"""Category of the Python calls that ``with_stack`` records."""
_CATEGORIES = {
    "cpu_op": Category.OP,
    "operator": Category.OP,
    "cuda_runtime": Category.RUNTIME,
    "cuda_driver": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
    "runtime": Category.RUNTIME,
    "cuda_sync": Category.WAIT,
    PYTHON: Category.PYTHON,
    "cpu_instant_event": Category.MEMORY,
}
_EXCHANGES = ("nccl:", "c10d::", "gloo:", "mpi:", "ucc:", "xccl:", "record_param_comms")
"""Names of exchanges: ops, or annotations where a backend of torch.distributed has its thread."""
_KNOWN = {*_CATEGORIES, *DEVICE_CATEGORIES, *ANNOTATIONS, "user_annotation", "trace", "ac2g", "fwdbwd"}
KNOWN = frozenset(_KNOWN)
"""Lower-case categories that only kineto writes."""
_COMPILED = "## Call CompiledFxGraph "
"""Name of a call of a graph that torch.compile made, whose category varies with the profiler's options. Source: torch
2.14.1, torch/_inductor/output_code.py.
"""
COMPILED_TYPE = "compiled graph"
_HASH_SHOWN = 8


_KERNEL_PROFILE = "cpp_fused"
"""Part of the names of Inductor's C++ kernels, which are events if ``cpp.enable_kernel_profile`` is set."""


def unseen_kernels(named: Iterable[tuple[str, str, int]]) -> str:
    """What to say of compiled graphs whose kernels have no events; "" without such.

    Args:
        named: names and categories of events, and the number of those that have them.
    """
    graphs = 0
    for name, category, events in named:
        if category in DEVICE_CATEGORIES or _KERNEL_PROFILE in name:
            return ""
        graphs += events if name.startswith(_COMPILED) else 0
    if not graphs:
        return ""
    return (
        f"{graphs:,} calls of compiled graphs have no events of their kernels: "
        "torch._inductor.config.cpp.enable_kernel_profile=True records them"
    )


def kineto_meaning(name: str, category: str) -> Meaning | None:
    """The meaning of an event by its lower-case category; None if the name alone determines it."""
    if category in DEVICE_CATEGORIES:
        return meaning(name, PlaneKind.GPU, LineKind.STREAM)
    known = _CATEGORIES.get(category)
    if name.startswith(_COMPILED) and category not in ANNOTATIONS:
        graph = name.removeprefix(_COMPILED)[:_HASH_SHOWN]
        return Meaning(category=Category.OP, op_name=f"{COMPILED_TYPE} {graph}", op_type=COMPILED_TYPE)
    if category in {"user_annotation", "operator"} and name.startswith(STEP_PREFIX):
        known = Category.STEP
    elif name.startswith("enumerate(DataLoader)"):
        known = Category.INPUT
    elif known is Category.OP:
        return _op(name)
    elif category == "user_annotation" and name.startswith(_EXCHANGES):
        known = Category.COLLECTIVE
    elif known is Category.RUNTIME:
        said = meaning(name, PlaneKind.HOST, LineKind.THREAD).category
        known = said if said in {Category.WAIT, Category.COPY} else known
    elif known is None and category in KNOWN:
        known = Category.OTHER
    return None if known is None else Meaning(category=known)


def _op(name: str) -> Meaning:
    """The meaning of an op: ``aten::mm`` is of type mm; ``autograd::engine::evaluate_function: X`` calls X and is not
    an op.
    """
    if ": " in name:
        return Meaning(category=Category.CALL)
    collective = name.startswith(_EXCHANGES)
    kind = name.rpartition("::")[2].rpartition(":")[2]
    return Meaning(category=Category.COLLECTIVE if collective else Category.OP, op_name=name, op_type=kind)
