"""A loop takes elements from a dataset one by one, and taking them costs more than making them.

## What it detects
Steps of which a large part is the hand-over of elements that are ready: `next` of a dataset in Python takes some 30
microseconds whatever the element is, and the pipeline needs less than half of that for one. A dataset that gives
batches is none of it, however short its steps are.

## Why it matters
The same elements in batches are handed over once for each batch, and Python does its part once as well.

## Evidence
`handover_ratio`: share of the steady wall time; of each `next` the 10th percentile counts. `handover_ns`: of an
element. `elements_per_s`.

## Known limits
Without tf.data's model, what the pipeline needs is not known: then it is told up to 60 us of a `next`. What the
loop's own Python would take for batches is not known, so that its part of the cost is a guess.

## Remedy
`batch()` before the loop and work on arrays, or let the pipeline compute what the loop does (`reduce`, `map`,
`cardinality`).

## References
tf.data performance guide, vectorising; TensorFlow documentation of Dataset.reduce.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.input.stage_totals import family
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ns, Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import DatasetMade
    from stepscope.tables.place import Place


TAKES_APART = frozenset({"Unbatch", "FlatMap", "Interleave"})
"""Transformations that may give single rows of the batches before them."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.25)
    """Of the steady wall time. Steps of 0.2 ms and more that take one ready batch each stay below."""
    ready: Ns = Ns(60_000)
    """Time of a ``next`` that surely found its element ready, where the pipeline's own time is not known."""
    max_made_ratio: Ratio = Ratio(0.5)
    """Time in which the pipeline makes an element, over that of handing it over: beyond, batches may bring little."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    pipe, parts = view.pipeline, view.anatomy
    if not pipe.handover_ns or not parts.wall_ns or _gives_batches(pipe.datasets):
        return
    each = pipe.handover_ns / pipe.batches_per_step
    slowest = pipe.slowest
    if each > params.ready if slowest is None else slowest.latency_ns > params.max_made_ratio * each:
        return
    count = pipe.batches_per_step * view.steps.steady_count
    ratio = min(each * count / parts.wall_ns, parts.ratio("input-wait"))
    if ratio >= params.min_ratio:
        yield _finding(view, each, count, ratio, params)


def _gives_batches(datasets: Iterable[DatasetMade]) -> bool:
    """Whether the dataset nearest to the loop that says how many rows an element has gives several.

    ``datasets``: from the consumer to the source.
    """
    for made in datasets:
        if made.batch > 1:
            return True
        if family(made.cls) in TAKES_APART:
            return False
    return False


def _finding(view: StepsView, handed: float, count: float, ratio: float, params: Params) -> Seen:
    parts = view.anatomy
    per_second = count / parts.wall_ns * 1e9
    python = parts.ratio("other-python")
    return Seen(
        title=f"the loop takes elements from the dataset one by one: handing over {per_second:,.0f} a second takes "
        f"{format_ns(handed)} each, {format_ratio(ratio)} of the time",
        confidence=0.85,
        where=_places(view),
        evidence=(
            Evidence(metric="handover_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="handover_ns", value=handed, unit="ns"),
            Evidence(metric="elements_per_s", value=per_second, unit="per second"),
        ),
        # In batches the loop's Python goes as well, and most of what the pipeline does for each element alone.
        cost=cost_of(view, ratio + python, low=ratio, high=parts.ratio("input-wait") + python),
        remedies=(
            Remedy(
                id="take-batches",
                text="batch() the dataset before the loop and work on whole arrays, or let the pipeline compute what "
                "the loop does (reduce, map, cardinality)",
            ),
        ),
        explanation="The elements were ready, and the pipeline made each in less than half of the time that it took to "
        "hand it over to Python.",
    )


def _places(view: StepsView) -> tuple[Place, ...]:
    """The loop's line, and where the dataset was made."""
    places = [place for made in view.pipeline.datasets if (place := view.dataset_place(made)) is not None]
    if view.loop is not None and view.call_line is not None:
        places.insert(0, view.place(view.loop[0], view.call_line, function=view.loop[1]))
    return tuple(dict.fromkeys(places))


DETECTOR = Detector(
    code="INP013",
    name="single-elements",
    cause="API: not using batch API",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tf.data"}),
    params=Params(),
    detect=detect,
)
