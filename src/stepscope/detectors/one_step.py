"""Launches in the only whole step of a file are no rule: the first use of a kernel takes milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.optrace.steps.traced_steps import StepKind

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView

FEWEST = 2
"""Whole steps of an imported file from which one of them may be other than cold."""
HINT = "the file has one whole step, and the first use of each kernel takes longer: record steps after a warm-up"


def only_one(view: SessionView) -> bool:
    """Whether all that is known of the steps is one step of an imported file. A traced run is chosen by hand."""
    trace = view.traces.main
    if view.session.manifest.mode != "import" or trace is None:
        return False
    return trace.periods.how not in {None, StepKind.RUN} and len(trace.periods) < FEWEST
