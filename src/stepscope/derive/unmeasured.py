"""The framework whose calls make the steps and are not measured: PyTorch, JAX, or NumPy where it is the only one.

Of PyTorch an optimizer's steps, backward passes and the waits for a DataLoader are seen, of JAX the moments of its
calls, its compilations and the host's waits; of both the steps that stepscope.step() marks. What other calls do is not:
all else of such a step looks like Python between calls. Nothing may be concluded from that, least of all that Python
takes the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.steps import sampled_parts
from stepscope.model.frameworks import TITLES
from stepscope.model.log.program import DataLoaderMade
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView

NUMPY = TITLES["numpy"]
NAMES = {name: TITLES[name] for name in ("torch", "jax")}
"""Frameworks whose calls are not measured, and their names in reports."""
MIN_RATIO = 0.9
"""Of the step in Python between calls, besides what is seen, from which none of its work was seen."""
JIT = "jit"
"""Role of the calls of JAX's jitted functions."""


def maker(view: SessionView) -> str:
    """The package whose moments are the steps: torch or jax; "" if something else makes them."""
    steps = view.steps
    if steps is None:
        return ""
    if sampled_parts.made_by_torch(steps):
        return "torch"
    called = steps.call
    return "jax" if called is not None and (steps.kind, called.role) == (Kind.FUNCTION, JIT) else ""


def framework(view: SessionView) -> str:
    """The name of the framework; "" if the steps' work was measured, or none of these was imported."""
    anatomy, steps = view.anatomy, view.steps
    if anatomy is None or steps is None or anatomy.ratio("call") > 0:
        return ""
    if made := maker(view):
        return NAMES[made]
    seen = anatomy.ratio("input-wait") if steps.worker.all(DataLoaderMade) else 0.0
    if "jax" in view.frameworks and "tensorflow" not in view.frameworks:
        seen += anatomy.ratio("host-sync") + anatomy.ratio("tracing")
    if anatomy.ratio("other-python") < MIN_RATIO * (1.0 - seen):
        return ""
    if set(view.frameworks) == {"numpy"}:
        return NUMPY
    return next((title for name, title in NAMES.items() if name in view.frameworks), "")


def input_seen(view: SessionView) -> bool:
    """Whether the input of the steps was seen: of such a framework, batches that the thread of the steps took from a
    DataLoader or tf.data. Others may come from any code."""
    steps = view.steps
    if steps is None or not framework(view):
        return steps is not None
    records = steps.worker.records
    taken = (records.kind == Kind.NEXT) & (records.thread == steps.thread)
    return bool((taken & (records.start_ns >= steps.starts[0])).any())
