"""Evaluations inside of a fit wait for input that is prepared again each time.

## What it detects
Evaluations that take a tenth of the steps or more and wait inside of the compiled function for a third of their time or
more (running forward takes no longer than training on as many samples; the rest of the calls' time is waiting), while
functions of the user's prepare their input without a cache that is kept: there is none, or `take()` behind it cuts each
pass short, or most of what is prepared is then discarded.

## Why it matters
Validation data are the same in every epoch. Decoding them again each time often takes longer than the model, and tools
that look at training steps do not see it.

## Evidence
`evaluation_ratio`: share of the steady wall time. `computing_ratio`: the largest share of it that can be the model's:
its batches times what a training step takes without input. `waiting_ratio`: share of it in calls of the compiled
function, by stack samples, beyond that. `kept_ratio`: share of the prepared elements that are used.

## Known limits
Without a known length of the dataset, and without tf.data's model, the number of batches is not known and nothing is
reported; the same with fewer than eight stack samples.
No cache is advised behind random functions: it would change what they give.

## Remedy
`cache()` behind the last function that gives the same each time; `take()`, `filter` and `skip` before it.

## References
tf.data performance guide, on caching; the kernel of `CacheDataset`, which discards what is not read to its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import random_input, slow_evaluation_input
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.input.slow_evaluation_input import EvaluationInput
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the steady wall time in evaluations: a validation once an epoch takes some percent."""
    min_waiting_ratio: Ratio = Ratio(0.33)
    """Of the evaluations' time: below it the model, or Python, is most of it."""
    min_saved: Ratio = Ratio(0.05)
    """Of the steady wall time that a remedy may save."""
    min_evaluations: int = 2
    """The first fills a cache."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    ratio = view.anatomy.ratio("evaluation")
    found = slow_evaluation_input.build(view) if ratio >= params.min_ratio else None
    if found is None or found.evaluations < params.min_evaluations:
        return
    drawn = random_input.of_datasets(view, found.maps) is not None
    part = 1 - found.kept_ratio if drawn else 1.0
    if found.waiting_ratio >= params.min_waiting_ratio and part * ratio * found.waiting_ratio >= params.min_saved:
        yield _finding(view, found, ratio, part, drawn=drawn, params=params)


def _finding(
    view: StepsView, found: EvaluationInput, ratio: float, part: float, *, drawn: bool, params: Params
) -> Seen:
    saved = ratio * found.waiting_ratio * part
    remedy, why = _what(found, drawn=drawn)
    return Seen(
        title=f"evaluations take {format_ratio(ratio)} of the step time and wait for input for "
        f"{format_ratio(found.waiting_ratio)} of it: {why}",
        confidence=0.8,
        where=_places(view, found),
        evidence=(
            Evidence(
                metric="evaluation_ratio",
                value=ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=("component:evaluation",),
            ),
            Evidence(
                metric="waiting_ratio", value=found.waiting_ratio, unit="ratio", threshold=params.min_waiting_ratio
            ),
            Evidence(metric="computing_ratio", value=found.computing_ratio, unit="ratio"),
            Evidence(metric="kept_ratio", value=found.kept_ratio, unit="ratio"),
            Evidence(metric="evaluations", value=found.evaluations, unit="calls"),
        ),
        cost=cost_of(view, saved, low=0.5 * saved, high=ratio * part, basis="modelled"),
        remedies=(remedy,),
        explanation="A forward pass takes no longer than a training step on as many samples; what the compiled "
        "function takes beyond that, it waits for its input.",
    )


def _what(found: EvaluationInput, *, drawn: bool) -> tuple[Remedy, str]:
    """(remedy, reason)."""
    if found.cut is not None:
        text = "call take() before cache(), which is only kept after a pass has read it to its end"
        why = "take() cuts each pass short, so the cache before it is discarded and filled again in every evaluation"
        return Remedy(id="take-first", text=text, safety="review"), why
    if found.drops is not None and (drawn or found.kept_ratio < 1):
        word = found.drops.cls.removesuffix("Dataset").lower()
        text = f"{word} before these functions, so that they run only for what is used; then cache() behind them"
        why = f"their input is prepared for all elements, of which {word} then keeps {format_ratio(found.kept_ratio)}"
        return Remedy(id="drop-first", text=text, safety="review"), why
    text = "cache() the validation data behind the last function that gives the same each time"
    return (
        Remedy(id="cache-evaluation-input", text=text, safety="review"),
        "their input is prepared again in every evaluation, without a cache",
    )


def _places(view: StepsView, found: EvaluationInput) -> tuple[Place, ...]:
    cut = (found.cut.take, found.cut.cache) if found.cut is not None else ()
    drops = (found.drops,) if found.drops is not None else ()
    made = [view.dataset_place(one) for one in (*cut, *drops, *found.maps)]
    own = [view.place(one.fn_file, one.fn_line, one.fn_end_line, one.fn_name) for one in found.maps]
    return tuple(dict.fromkeys([*(place for place in made if place is not None), *own]))


DETECTOR = Detector(
    code="INP011",
    name="slow-evaluation-input",
    cause="Data: inefficient data preprocessing",
    introduced_stage="data preparation",
    exposed_stage="evaluation",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
