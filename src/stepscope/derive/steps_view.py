"""A view of a session that has steps: what detectors that need steps, and the causes of these, are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.steps import calls
from stepscope.derive.view import SessionView

if TYPE_CHECKING:
    from stepscope.derive.input.pipeline import Pipeline
    from stepscope.derive.steps.anatomy import Anatomy
    from stepscope.derive.steps.calls import Calls
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.session.session import Worker
    from stepscope.wire.kinds import Kind


class StepsView(SessionView):
    """The view of one maker of steps: with steps, and what follows from them, there."""

    if TYPE_CHECKING:
        steps: Steps
        worker: Worker
        pipeline: Pipeline
        anatomy: Anatomy

    def __init__(self, view: SessionView) -> None:
        """The steps of ``view``, with which it shares all that was computed."""
        self.__dict__ = view.__dict__

    def calls(self, *kinds: Kind) -> Calls:
        """The calls of some kinds on the thread that makes the steps."""
        return calls.of(self.steps, *kinds)


def of(view: SessionView) -> StepsView | None:
    """The view of the session's steps; None without steps."""
    return StepsView(view) if view.steps is not None else None
