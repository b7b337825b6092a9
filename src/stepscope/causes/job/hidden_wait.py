"""Whether a wait for input may hide inside the step, with nothing to measure it.

Serves several detectors and causes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive import unmeasured
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import calls
from stepscope.model.log.events import DatasetMade, ModelBuilt
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.view import SessionView


def build(view: SessionView) -> bool:
    """Whether the step pulls its batches itself and no measured window of the pipeline shows the wait; or nothing is
    seen of the step's calls, its input among them.
    """
    steps = view.steps
    if steps is None or view.pipeline is None or view.pipeline.windows:
        return False
    if unmeasured.framework(view) and not len(calls.of(steps, Kind.NEXT)):
        return True
    if steps.kind == Kind.EXECUTION:
        eager = any(m.run_eagerly for m in steps.worker.all(ModelBuilt))
        return not eager and not _pulled(steps) and _pulls_inside(view, steps)
    return steps.kind == Kind.FUNCTION and _iterates_inside(steps)


def _pulled(steps: Steps) -> bool:
    """Whether most steps' batches were taken in Python, as Keras on JAX and on PyTorch takes them."""
    return 2 * len(calls.of(steps, Kind.NEXT).begun_in(steps.windows)) > steps.steady_count


def _iterates_inside(steps: Steps) -> bool:
    """Whether the user made datasets and Python pulls from none of them, so that the function does."""
    return any(d.file for d in steps.worker.all(DatasetMade)) and not len(calls.of(steps, Kind.NEXT))


def _pulls_inside(view: SessionView, steps: Steps) -> bool:
    """Whether the steps run in fit, evaluate or predict, whose compiled functions take an iterator rather than a
    batch.
    """
    ids = [n.id for n in view.names.values() if n.role in {"fit", "evaluate", "predict"}]
    loops = calls.of(steps, Kind.LOOP).named(ids)
    return 2 * intervals.total(intervals.clip(loops.spans, steps.windows)) > steps.steady_ns
