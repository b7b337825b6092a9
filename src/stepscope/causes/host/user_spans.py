"""The user's own spans and the step: how much of the Python between the calls lies inside each span.

Serves detectors of the loop's own Python (``detectors.shared.loop_python``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import Name

NAMED_FROM = 0.5
"""A span explains a finding if at least this share of the finding's time lies inside it."""


def python_inside(view: StepsView) -> list[tuple[Name, float]]:
    """Spans of the step's thread by the share of the steady wall time that is Python inside them, largest first."""
    steps, anatomy = view.steps, view.anatomy
    painting = anatomy.painting
    python = painting.layer == painting.background
    pieces = painting.edges[:-1][python], painting.edges[1:][python]
    spans = view.calls(Kind.SPAN)
    found = []
    for number in np.unique(spans.names).tolist():
        inside = intervals.total(intervals.clip(spans.named([number]).spans, pieces))
        if inside and number in view.names:
            found.append((view.names[number], inside / steps.steady_ns))
    return sorted(found, key=lambda f: -f[1])


def explaining(view: StepsView, ratio: float) -> list[tuple[Name, float]]:
    """The user's spans that hold most of a finding about Python between the calls, with their own share.

    Args:
        view: the session.
        ratio: cost of the finding, as a share of the steady wall time.
    """
    return [(name, inside) for name, inside in python_inside(view) if inside >= NAMED_FROM * ratio]
