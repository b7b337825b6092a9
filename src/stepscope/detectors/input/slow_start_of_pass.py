"""Each pass over the data begins with a long wait for its first batch.

## What it detects
First batches of passes (epochs) for which steps wait longer than for other batches, if these waits take a large part of
the time.

## Why it matters
Some transformations consume many elements before they yield the first: `skip` those that it discards, `shuffle` as many
as its buffer holds. After a costly map all of these are computed in each pass, while nothing else runs; and a pass is
prepared only after the previous one has ended.

## Evidence
`first_batch_ns`: the median wait for the first batch of a pass, beyond that of other steps. `passes`.
`first_batches_ratio`: all these waits as a share of the steady time; at most the time that steps wait for input.

Measured (bench/cases/70-skip-behind-decode, TensorFlow 2.21): 3.7x faster (73 % saved) with `skip` and `shuffle` before
the map; predicted 69 %.

## Known limits
The share of each transformation is not measured. Each one that follows a map with a function is named; a `skip` only if
it discards at least 30 % of the elements, or an unknown number. Work that each pass needs is saved only by a cache;
reordering can at best overlap it with the steps. If the data is read from a disk or a network, opening it is part of
the wait. What a DataLoader's workers take to start is INP017's.

## Remedy
`skip` before the map; `shuffle` before it, on file names or records rather than on the results; `cache()` after it; or
`repeat()` the dataset and give `fit` `steps_per_epoch`: the next pass is then prepared while this one ends.

## References
tf.data performance guide; tf.data.Dataset.shuffle, on when the buffer is filled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import turn_times
from stepscope.causes.input import random_input, slow_start_of_pass
from stepscope.causes.input.slow_start_of_pass import FILLS, SKIPS
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.input.parts import cut_cache
from stepscope.detectors.shared import drawn
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.input.slow_start_of_pass import PassStarts
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.15)
    """Of the steady time, if a transformation is known that consumes many elements of a map."""
    min_unexplained_ratio: Ratio = Ratio(0.25)
    """The same if none is known. Filling a buffer with rows in memory takes a tenth of short epochs, which is fine."""
    min_passes: int = 3
    """Within the steady steps."""
    min_skipped_ratio: Ratio = Ratio(0.3)
    """Share of the elements, if both counts are known: skipping a header line costs nothing."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    found = slow_start_of_pass.build(view, params.min_skipped_ratio)
    if found is None or found.passes < params.min_passes:
        return
    least = params.min_ratio if found.causes else params.min_unexplained_ratio
    if found.ratio >= least:
        yield _finding(view, found, params, least)


def _finding(view: StepsView, found: PassStarts, params: Params, least: Ratio) -> Seen:
    skips = [d for d in found.causes if d.cls == SKIPS]
    causes = skips or list(found.causes)
    places = [*causes, *(found.maps if skips else ())]
    cut = cut_cache.above(view, found.maps)
    why = ""
    if cut is not None:
        why = f": the {cut_cache.WHY}"
        places = [cut.cache, cut.take, *found.maps]
    elif skips:
        why = ": skip() comes after map(), which computes elements that are then discarded"
    elif causes:
        why = ": shuffle follows a map and fills its buffer from it"
    return Seen(
        title=f"each pass over the data begins with a wait of {format_ns(found.wait_ns)} for its first batch, "
        f"{format_ratio(found.ratio)} of the time{why}",
        confidence=0.8 if causes else 0.6,
        where=tuple(dict.fromkeys(place for d in places if (place := view.dataset_place(d)) is not None)),
        evidence=(
            Evidence(metric="first_batches_ratio", value=found.ratio, unit="ratio", threshold=least),
            Evidence(metric="first_batch_ns", value=found.wait_ns, unit="ns"),
            Evidence(metric="passes", value=found.passes, unit="passes", threshold=params.min_passes),
        ),
        cost=cost_of(view, found.ratio, low=(found.ratio if skips else min(found.ratio, 1 - found.ratio)) / 2),
        remedies=(
            *((cut_cache.REMEDY,) if cut is not None else ()),
            *((_ONE_DATASET,) if cut is None and found.cached and view.get(turn_times.build) is not None else ()),
            *_remedies(
                skips=bool(skips),
                shuffled=any(d.cls == FILLS for d in found.causes),
                cached=random_input.of_datasets(view, found.maps) is None,
            ),
        ),
        explanation="The cost is how much longer the first batch of a pass takes than later ones. Elements consumed "
        "before "
        "the first output (by skip or shuffle) are computed again in each pass.",
    )


_ONE_DATASET = Remedy(
    id="one-dataset",
    text="make the dataset once, before the turns, and use it in each: its cache is then filled once",
)


def _remedies(*, skips: bool, shuffled: bool, cached: bool) -> tuple[Remedy, ...]:
    remedies = []
    if skips:
        text = "skip before the map: elements that are discarded need not be computed"
        remedies.append(Remedy(id="throw-away-first", text=text, safety="review"))
    if shuffled:
        text = "shuffle before the map, or with a smaller buffer: it is filled before the first batch arrives"
        remedies.append(Remedy(id="shuffle-first", text=text, safety="review"))
    text = f"cache() after the map, {drawn.IF_THE_SAME}; or " if cached else ""
    text += "repeat() the dataset and give fit steps_per_epoch, so that the next pass is prepared while this one ends"
    kept = Remedy(
        id="keep-workers",
        text="keep the workers of a DataLoader from pass to pass: persistent_workers=True with num_workers",
        safety="safe",
    )
    return (*remedies, Remedy(id="prepare-next-pass", text=text, safety="review"), kept)


DETECTOR = Detector(
    code="INP010",
    name="slow-start-of-pass",
    cause="Data: inefficient data preprocessing",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS, Signal.BATCHES}),
    frameworks=frozenset({"tf.data", "torch.data"}),
    params=Params(),
    detect=detect,
)
