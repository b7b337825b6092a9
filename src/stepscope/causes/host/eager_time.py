"""Time that the steps of a session run op by op from Python, and the setting that causes it.

Serves eager_step, run_eagerly and small_batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.causes.host import eager_looks
from stepscope.derive.python import eager
from stepscope.model.log.events import ModelBuilt
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.python.eager import EagerTime
    from stepscope.derive.view import SessionView


def build(view: SessionView) -> EagerTime | None:
    """The time that runs op by op; None if there is none."""
    if view.steps is not None and view.steps.kind == Kind.SESSION_RUN:
        return None  # a program with sessions adds ops to a graph: nothing of it runs eagerly
    found = eager.build(view.samples, keras=_of_keras(view))
    looks = view.get(eager_looks.build)
    if found is None or looks is None:
        return found
    # A sample cannot tell an op's work from Python of the same line; a look times each op. What samples show in calls
    # of ops beyond the ops themselves is the way into the runtime: arguments, handles, the layers in between.
    python = min(found.python_ratio, looks.python_ratio)
    way = looks.python_ratio - python
    return replace(
        found,
        python_ratio=python,
        dispatch_ratio=looks.dispatch_ratio + way,
        most_dispatch_ratio=looks.most_dispatch_ratio + way,
    )


def setting(view: SessionView) -> str | None:
    """The setting that makes the steps run eagerly, see ``eager.setting``; None if there is none."""
    if view.steps is None:
        return None
    found = view.get(build)
    told = view.worker is not None and any(model.run_eagerly for model in view.worker.all(ModelBuilt))
    within = found is not None and 2 * found.trainer_ratio > found.eager_ratio
    return eager.setting(found, keras=_of_keras(view) and (told or within))


def _of_keras(view: SessionView) -> bool:
    return view.steps is not None and view.steps.kind in kinds_with(Trait.KERAS)
