"""Python between the steps takes a noticeable part of the time, and no detector says why.

## What it detects
Python on the thread of the steps that belongs to no call of the framework, if it takes five percent of the time or
more, with the lines that stack samples show and what they call. If the thread mostly did not run in that time, it
waited (for a lock, a queue, a socket, a timer), and the finding says so.

## Why it matters
The device waits while the thread runs Python, or while the thread itself waits.

## Evidence
`other_python_ratio`: share of the steady wall time; `part at FILE:LINE`: the part of it on a line. `waiting_ratio`:
share of that time in which the thread was on no CPU, by samples of its CPU clock. The title leaves out what the code of
stepscope takes after each call that it measures, which is most of it where a call takes 50 microseconds.

In a job of PyTorch, JAX or NumPy the framework's calls are in it, too: the lines are named, and nothing is claimed. Of
PyTorch the forward pass, the backward pass and the optimizer are parts of the step: each is named in the same way.

## Known limits
Reported only where no specific finding explains the time. Lines rest on stack samples, 20 a second: a run of a few
seconds names only large parts. What the code is for is not known. Where it is known what the thread waits for, that is
GEN014. It is information, unless a function that the loop calls has a fifth of the time, or a line three tenths
(docs/decisions/0120).

## Remedy
Do the work on whole arrays, less often, or in another thread; or put it into the compiled step. Where the thread waits:
prepare what it waits for earlier, or wait for less.

## References
py-spy and pyinstrument on sampling bias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.derive import unmeasured
from stepscope.derive.ledger import wrapped_calls
from stepscope.derive.python import stack_samples
from stepscope.detectors.base import Detector, Signal
from stepscope.detectors.shared import general_loss, loop_python
from stepscope.model.report import components
from stepscope.model.report.components import components_with
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.detectors.base import Seen
    from stepscope.detectors.shared.general_loss import Loss


NOTED = 0.05
"""Share of our own code from which the explanation names it."""
MIN_SAMPLES = 8
"""Stack samples from which a function is claimed to take the time."""
RUNS = (
    Remedy(id="vectorise", text="do it with NumPy on whole arrays, or inside of the compiled step"),
    Remedy(id="do-it-less-often", text="or every N steps, or in another thread or process"),
)
OPS = Remedy(
    id="see-the-ops",
    text="see which ops these lines run: stepscope import the file that the framework's profiler writes",
)
WAITS = (
    Remedy(id="have-it-ready", text="prepare what it waits for before the step needs it, in a thread that works ahead"),
    Remedy(id="wait-for-less", text="or wait for less: a shorter timeout, a smaller request, more workers behind it"),
)


class Params(general_loss.Params, frozen=True, kw_only=True):
    """Thresholds."""

    min_waiting_ratio: Ratio = Ratio(0.7)
    """Of the component's time, from which it counts as a wait: most of it, with room for the code around the wait."""
    min_clear_ratio: Ratio = Ratio(0.2)
    """Of the steady wall time in one function that the loop calls: above information (docs/decisions/0057)."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding, and one for each part of a step of PyTorch."""
    for part in components_with(components.Trait.TORCH):
        calls = general_loss.find(view, part, params)
        if calls is not None:
            subject = f"the {components.COMPONENTS[part].word} takes"
            yield _with_calls(view, calls, params, unmeasured.framework(view), subject)
    loss = general_loss.find(view, "other-python", params)
    if loss is None:
        return
    untold = unmeasured.framework(view)
    if untold:
        yield _with_calls(view, loss, params, untold, f"calls of {untold} and other Python take")
        return
    ours = _own_share(view)
    loss = replace(loss, ratio=loss.ratio * (1.0 - ours), ns_per_step=loss.ns_per_step * (1.0 - ours))
    if loss.ratio < params.min_ratio:
        return
    waiting = stack_samples.waiting_ratio(view.samples, "other-python")
    idle = waiting is not None and waiting >= params.min_waiting_ratio
    shown = Evidence(metric="waiting_ratio", value=waiting or 0.0, unit="ratio", threshold=params.min_waiting_ratio)
    subject = "the thread of the steps waits between steps for" if idle else "Python between the steps takes"
    clear = 0.0 if idle else _in_one_function(view, loss)
    yield loss.seen(
        view,
        params,
        clear_ratio=clear if clear >= params.min_clear_ratio else 0.0,
        title=f"{subject} {loss.share_text}{loss.top_text}",
        more=() if waiting is None else (shown,),
        remedies=WAITS if idle else RUNS,
        explanation="Nothing of the framework runs on the thread of the steps in this time"
        f"{', and the thread is on no CPU for most of it' if idle else ''}."
        + (f" Without what is put down to the code of stepscope: {format_ratio(ours)} of it." if ours >= NOTED else ""),
    )


def _own_share(view: StepsView) -> float:
    """Share of the time between calls in a usual step that our own code takes there, after each call that it measures.

    After calls within others it is in these. Of a usual step: the mean is as much larger as the thread was interrupted,
    in our code as in the job's.
    """
    usual, steps = float(np.median(view.anatomy.per_step_of("other-python"))), view.steps
    costs = wrapped_calls.in_steps(steps.worker, steps.windows)
    ended = view.calls(*(kind for kind in Kind if kind not in kinds_with(Trait.OURS))).begun_in(steps.windows).ends
    followed = view.anatomy.component_at(ended).count("other-python") / steps.steady_count
    return min(1.0, followed * costs.ns[1] / max(1, costs.calls) / usual) if usual else 0.0


def _with_calls(view: StepsView, loss: Loss, params: Params, framework: str, subject: str) -> Seen:
    """The lines of a step whose framework's calls are not measured: which of them are its calls is not known."""
    rest = loss.component == "other-python"
    known = f"The calls of {framework} are not measured" if rest else f"This is the host's time in {framework}"
    return loss.seen(
        view,
        params,
        title=f"{subject} {loss.share_text}{loss.top_text}",
        remedies=() if framework == unmeasured.NUMPY else (OPS,),
        explanation=f"{known}: a line's time may be its work, a wait for a device, or Python.",
    )


def _in_one_function(view: StepsView, loss: Loss) -> float:
    """Share of the steady wall time in the costliest function; 0 if it is the loop's own, which has to run."""
    spot = next(iter(view.hot_spots("other-python")), None)
    if spot is None or spot.samples < MIN_SAMPLES or loop_python.is_loop(view, spot.culprit):
        return 0.0
    return loss.ratio * spot.ratio


DETECTOR = Detector(
    code="GEN012",
    name="time-in-other-python",
    cause="Python: interpreter overhead",
    introduced_stage="training",
    pipeline_stage="output-processing",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"GEN013"}),
)
