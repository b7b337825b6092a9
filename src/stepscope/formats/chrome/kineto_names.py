"""The meaning of events in a kineto trace (PyTorch), by their categories. The names have changed over the years.

Source: pytorch/kineto, ``libkineto/include/ActivityType.h`` and ``libkineto/src/output_json.cpp`` (2021-2026).
"""

from __future__ import annotations

from stepscope.formats.op_names import Meaning, meaning
from stepscope.model.session.optrace import Category, LineKind, PlaneKind

STEP_PREFIX = "ProfilerStep#"
DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "concurrent_kernel"})
ANNOTATIONS = frozenset({"gpu_user_annotation"})
"""Spans on a device that repeat the host's annotations, around kernels of the same stream."""
_CATEGORIES = {
    "cpu_op": Category.OP,
    "operator": Category.OP,
    "cuda_runtime": Category.RUNTIME,
    "cuda_driver": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
    "runtime": Category.RUNTIME,
    "cuda_sync": Category.WAIT,
    "python_function": Category.PYTHON,
    "cpu_instant_event": Category.MEMORY,
}
_EXCHANGES = ("nccl:", "c10d::", "gloo:", "mpi:", "ucc:", "xccl:", "record_param_comms")
"""Names of exchanges: ops, or annotations where a backend of torch.distributed has a thread of its own."""
_KNOWN = {*_CATEGORIES, *DEVICE_CATEGORIES, *ANNOTATIONS, "user_annotation", "trace", "ac2g", "fwdbwd"}
KNOWN = frozenset(_KNOWN)
"""Lower-case categories that only kineto writes."""


def kineto_meaning(name: str, category: str) -> Meaning | None:
    """The meaning of an event by its lower-case category; None if the name alone determines it."""
    if category in DEVICE_CATEGORIES:
        return meaning(name, PlaneKind.GPU, LineKind.STREAM)
    known = _CATEGORIES.get(category)
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
