"""What looks at eager code saw of the steps.

Serves same_ops_again, whole_copied_for_part and, through eager_time, eager_step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.python import eager_looks

if TYPE_CHECKING:
    from stepscope.derive.python.eager_looks import EagerLooks
    from stepscope.derive.view import SessionView


def build(view: SessionView) -> EagerLooks | None:
    """None if no look lies in the steady steps."""
    return eager_looks.build(view.steps) if view.steps is not None else None


def missing(view: SessionView) -> str:
    """Why there is none; "" if there is one, or no step."""
    seen = view.steps is None or view.get(build) is not None
    return "" if seen else "the steps run hardly any op from Python, or ended before a look"
