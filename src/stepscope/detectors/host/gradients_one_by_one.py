"""An eager step asks its tape for the gradients one variable at a time.

## What it detects
`[tape.gradient(loss, v) for v in variables]`, or the equivalent loop, in a step that runs op by op, if it takes a large
part of the time.

## Why it matters
Each call runs the backward pass from the loss to that variable and recomputes what the previous call computed: with n
variables about n / 2 backward passes instead of one. In a `tf.function`, equal nodes are merged.

## Evidence
`gradient_ratio`: share of the samples of the steady steps in that statement; `samples`: the number of these samples.
The program's source shows that the loss stays the same while the loop goes through the variables.

Measured (bench/cases/71-gradient-per-variable, 14 variables, TensorFlow 2.21): 5.0x faster (80 % saved); predicted
73 %.

## Known limits
The gain is modelled, because the number of variables is not known. Gradients of several losses with respect to the same
variables are meant to be separate and are not reported.

## Remedy
One call with all variables: `tape.gradient(loss, variables)` returns a list; `persistent=True` is then unnecessary.

## References
TensorFlow guide "Introduction to gradients and automatic differentiation"; FSE'22 study, inefficient API usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import gradients_one_by_one
from stepscope.derive.numeric import proportion
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.gradients_one_by_one import SeparateGradients
    from stepscope.derive.view import SessionView

GAIN, LEAST, MOST = 0.85, 0.5, 0.98
"""Share of the statement's time that one call saves: 1 - 2 / n for n variables, with n = 13, 4 and 100."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Share of the steady time that one call is predicted to save."""
    min_samples: int = 20
    """In the statement: fewer are too few to conclude from."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    found = gradients_one_by_one.build(view.samples, view.session.sources)
    if found is not None and found.samples >= params.min_samples and GAIN * found.ratio >= params.min_ratio:
        yield _finding(view, found, params)


def _finding(view: SessionView, found: SeparateGradients, params: Params) -> Seen:
    saved = GAIN * found.ratio
    low, high = proportion.interval(found.ratio, found.of)
    return Seen(
        title=f"the step computes gradients one variable at a time, {format_ratio(found.ratio)} of the time: each "
        "call repeats the backward pass",
        confidence=0.85,
        where=(view.place(found.file, found.line, function=found.function),),
        evidence=(
            Evidence(metric="gradient_ratio", value=found.ratio, unit="ratio"),
            Evidence(metric="saved_ratio", value=saved, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="samples", value=found.samples, unit="samples", threshold=params.min_samples),
        ),
        cost=cost_of(view, saved, low=LEAST * low, high=MOST * high, basis="modelled"),
        remedies=(
            Remedy(
                id="gradients-in-one-call",
                text="compute all gradients in one call, tape.gradient(loss, variables), which returns a list; or put "
                "the step into a tf.function, where equal ops are merged",
            ),
        ),
        explanation="The samples fall on this statement; the source shows that its loop goes through the variables "
        "while the loss stays the same.",
    )


DETECTOR = Detector(
    code="HST014",
    name="gradients-one-by-one",
    cause="API: inefficient API usage",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
