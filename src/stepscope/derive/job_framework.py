"""The framework that a job computes with, and what of a job can be looked at by whom.

A job may import several frameworks. What makes its steps decides; if that is not known, all that compute may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive import unmeasured
from stepscope.derive.kinds import KINDS
from stepscope.model import frameworks
from stepscope.model.frameworks import KERAS, LEGACY_KERAS, PLAIN, TITLES
from stepscope.model.log.events import Framework
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from stepscope.derive.view import SessionView

SAMPLED = frozenset({"tensorflow", "onnxruntime", "torch", "jax"})
"""Frameworks whose import starts the sampling of Python stacks (``agent.bootstrap.COMPUTES``; a test compares). Other
processes are sampled from some seconds after their start (``collector.recording.waking``)."""


class JobFramework(Struct, frozen=True, kw_only=True):
    """What computes in a job."""

    computes: tuple[str, ...]
    """Names of packages, keys of ``TITLES``: one if it is known what makes the steps."""
    imported: frozenset[str]
    """All frameworks of the job's processes, by the names of their packages."""
    backend: str = ""
    """Keras' backend as Keras said it; "" without Keras, or if it did not say."""

    @property
    def title(self) -> str:
        """``PyTorch``; ``Keras on JAX``; ``TensorFlow and JAX`` if either may make the steps."""
        names = " and ".join(TITLES[name] for name in self.computes) or PLAIN
        return f"Keras on {names}" if self.backend and self.computes == (self.backend,) != ("tensorflow",) else names

    @property
    def parts(self) -> frozenset[str]:
        """What can be looked at and changed."""
        return frameworks.parts(self.computes, self.imported)

    @property
    def traceable(self) -> bool:
        """Whether ``stepscope trace`` can take an op trace of such a job: by TensorFlow's profiler."""
        return "tensorflow" in self.imported and "onnxruntime" not in self.computes

    @property
    def sampled(self) -> bool:
        """Whether Python stacks are sampled in such a job from its first import of a framework on."""
        return not self.imported.isdisjoint(SAMPLED)


def build(view: SessionView) -> JobFramework | None:
    """The framework of a measured job; None if nothing says which it is: no process was measured, or by an agent that
    did not tell.
    """
    lines = [line for worker in view.workers for line in worker.all(Framework)]
    imported = {line.name for line in lines} | {name for worker in view.workers for name in worker.info.frameworks}
    if not imported and (not view.workers or _unknown(view)):
        return None
    backend = next((line.detail for line in reversed(lines) if line.name == KERAS and line.detail), "")
    if LEGACY_KERAS in imported:
        imported.add("tensorflow")
    return JobFramework(computes=_computes(view, imported, backend), imported=frozenset(imported), backend=backend)


def is_jax(view: SessionView) -> bool:
    """Whether JAX alone makes the steps."""
    framework = view.get(build)
    return framework is not None and framework.computes == ("jax",)


def untraced(view: SessionView) -> str:
    """Why ``stepscope trace`` takes no op trace of such a job; "" if it does, or if the framework is not known."""
    framework = view.get(build)
    return "" if framework is None or framework.traceable else f"stepscope takes no op trace of {framework.title}"


def _unknown(view: SessionView) -> bool:
    """Whether something was recorded that a program without a framework does not make."""
    kinds = {int(kind) for worker in view.workers for kind in set(worker.records.kind.tolist())}
    return not kinds or not kinds <= {int(kind) for kind, about in KINDS.items() if about.anywhere}


def _computes(view: SessionView, imported: Collection[str], backend: str) -> tuple[str, ...]:
    steps = view.steps
    if made := unmeasured.maker(view):
        return (made,)
    if steps is not None and steps.kind == Kind.INFERENCE:
        return ("onnxruntime",)
    if backend in TITLES and backend != "tensorflow":
        return (backend,)
    found = tuple(name for name in TITLES if name in imported)
    return tuple(name for name in found if name != "numpy") or found
