"""Python's garbage collection takes a noticeable part of the steps.

## What it detects
Garbage collections on the thread of the steps that take five percent of the time or more, with the lines during which
they run.

## Why it matters
A full collection walks all container objects of the process: with millions of them it takes seconds, and no step
runs.

## Evidence
`gc_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line. `collections`: per step.
`saved_ratio`: the steps with a collection compared with those without (`steps_with`, `steps_without`), with the lower
end of its 95 % interval as the threshold.

## Known limits
Reported only where no specific finding explains the time. If every step collects, the run does not show what a step
without it takes: from a tenth of the steps on, all of it counts as saved at best (`modelled`), as nothing else runs on
the thread meanwhile. The line is the one that ran when the collector started, which need not be the one that makes the
garbage.

## Remedy
`gc.freeze()` after loading, no `gc.collect()` in the loop, fewer long-lived container objects (arrays instead of
lists of objects).

## References
Python documentation of the gc module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.general import step_without
from stepscope.detectors.base import Detector, Signal
from stepscope.detectors.shared import general_loss
from stepscope.detectors.shared.general_loss import Params
from stepscope.tables.findings import Evidence, Remedy
from stepscope.wire.kinds import Kind

CLEAR = 0.1
"""Share of the steps from which collections in every step are a loss without a comparison."""

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.base import Seen


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    loss = general_loss.find(view, "gc", params, step_without.build(view, "gc"))
    if loss is None:
        return
    often, each = general_loss.how_often(view, Kind.GC)
    yield loss.seen(
        view,
        params,
        title=f"Python's garbage collection takes {loss.share_text}{often and f': it runs {often}'}{loss.top_text}",
        more=(Evidence(metric="collections", value=each, unit="per step"),),
        remedies=(
            Remedy(
                id="freeze-objects",
                text="call gc.freeze() once after loading, and take gc.collect() out of the loop: reference counts "
                "free tensors",
            ),
            Remedy(id="fewer-objects", text="or keep data in arrays instead of many Python objects"),
        ),
        explanation="A full collection walks all container objects of the process.",
        clear_ratio=loss.ratio if loss.saving is None and loss.ratio >= CLEAR else 0.0,
    )


DETECTOR = Detector(
    code="GEN010",
    name="time-in-garbage-collection",
    cause="Python: interpreter overhead",
    introduced_stage="training",
    pipeline_stage="output-processing",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
