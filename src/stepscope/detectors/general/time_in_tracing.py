"""Functions are traced within the steady steps.

## What it detects
Tracing of tf.functions, and of JAX's jitted functions with their compilation, within the steady steps that takes five
percent of the time or more, with the functions and the lines that call them.

## Why it matters
Tracing runs the Python of a function and builds a graph: it takes tens to thousands of times as long as the call.

## Evidence
`tracing_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line. `saved_ratio`: the
steps that traced compared with those that did not (`steps_with`, `steps_without`), with the lower end of its 95 %
interval as the threshold.

## Known limits
Reported only where no specific finding explains the time. If every step traces, the run does not show what a step
without it takes, and no saving is claimed. Tracing for models that are built again to be trained, as for folds or
trials, is wanted: information.

## Remedy
Call one function object with tensors of one signature (`input_signature`, `reduce_retracing=True`), made once outside
of the loop. Functions of datasets that Keras makes in each of its calls (`predict`, `fit`): fewer and larger calls.

## References
TensorFlow guide "Better performance with tf.function".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.causes.general import step_without
from stepscope.causes.host import rebuilt_in_loop
from stepscope.derive import job_framework
from stepscope.derive.python.framework_files import is_framework
from stepscope.detectors.base import Detector, Signal
from stepscope.detectors.shared import general_loss
from stepscope.detectors.shared.general_loss import Params
from stepscope.model.log.events import Traced
from stepscope.tables.findings import Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.base import Seen


_USERS = (
    Remedy(id="one-function", text="make the tf.function once, outside of the loop, and call that one object"),
    Remedy(
        id="one-signature",
        text="call it with tensors of one shape and type: input_signature=[...], or reduce_retracing=True",
    ),
)
_OF_JAX = (
    Remedy(id="one-jit", text="make the jitted function once, outside of the loop: each jax.jit(...) compiles again"),
    Remedy(
        id="one-shape", text="call it with arrays of one shape and type: pad, or drop the last batch of JAX's input"
    ),
)
_LIBRARY = (
    Remedy(
        id="fewer-library-calls",
        text="call the library less often there, with more rows in each call: every call makes a dataset and traces "
        "its functions",
    ),
)
MOST = 0.5
"""Share of the traced time from which functions of the library's datasets are what is traced."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    loss = general_loss.find(view, "tracing", params, step_without.build(view, "tracing"))
    if loss is None:
        return
    trials = rebuilt_in_loop.traces_of_trials(view)
    seen = loss.seen(
        view,
        params,
        title=f"functions are traced within the steps: {loss.share_text}{loss.top_text}"
        f"{', for models that are built and trained again, as for folds or trials' if trials else ''}",
        remedies=_LIBRARY if _of_library(view) else _OF_JAX if job_framework.is_jax(view) else _USERS,
        explanation="Tracing runs Python and builds a graph; only the first call of a signature needs it.",
    )
    yield replace(seen, severity="info") if trials else seen


def _of_library(view: StepsView) -> bool:
    """Whether most is traced because the framework makes a dataset with new functions in each of its calls."""
    lo, hi = view.steps.windows
    traced = [one for one in view.steps.worker.all(Traced) if lo[0] <= one.at < hi[-1]]
    mine = [one for one in traced if one.owner == "tf.data" and one.cause == "new-function" and is_framework(one.file)]
    return sum(one.dur for one in mine) > MOST * sum(one.dur for one in traced)


DETECTOR = Detector(
    code="GEN007",
    name="time-in-tracing",
    cause="Model: confusion with computation model",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
