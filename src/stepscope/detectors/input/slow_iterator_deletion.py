"""Letting go of a tf.data iterator blocks until its pipeline's autotuning looks up, for seconds up to a minute.

## What it detects
Waits of the thread that makes the steps, off the CPU and inside TensorFlow, where one iterator takes the place of
another and that end at a time at which the old iterator's tuning thread wakes: 10.2, 20.5, 41 or 82 s after its first
element, and each minute from then on.

## Why it matters
Nothing computes meanwhile, and no profile of ops shows it. It happens at ends of epochs, where it looks like slow
input or like Keras' own time, and mostly where the process has one CPU, or others use them: containers, busy machines.

## Evidence
`deletion_ratio`: these waits as a share of the time of the steps; of the run where none lies in a step. `deletions`:
their number. `longest_ns`. `slept_ns`: sleeps of the tuning thread, from the first element to the end of the longest
wait.

## Known limits
That the iterator is deleted in these waits is concluded from where they lie, and from the time at which they end: by
chance a wait of some seconds ends so in one of ten cases. Waits below a second are not looked for. Iterators that are
let go of at the program's end are not included, those at the end of a `fit` are. A single one, at the end of a
`fit`, is information: it does not grow with the run.

## Remedy
Keep one iterator: `repeat()` the dataset and give `fit` `steps_per_epoch`; in a loop `batches = iter(dataset.repeat())`
before the epochs. Or `options.autotune.enabled = False` with numbers for `num_parallel_calls` and `prefetch`: then
there is no such thread, nor a wait at the end of a fit; where `fit` is given a generator or arrays, give it such a
dataset of them. A second CPU makes it rare.

## References
TensorFlow, `tensorflow/core/framework/model.cc` (`OptimizeLoop`) and `cancellation.cc` (`StartCancel`); measured with
2.15 and 2.21 by findings/tf-data-iterator-deletion-sleeps-out-autotuning.sh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.general import phase_lines
from stepscope.causes.input import slow_iterator_deletion
from stepscope.derive.ledger import own_steps
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.model.log.events import DatasetMade
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.input.slow_iterator_deletion import Deletion
    from stepscope.derive.steps_view import StepsView

SURE, LESS_SURE = 0.9, 0.7
SURE_FROM = 2
"""Waits of which not all end at such times by chance; one may."""


OF_KERAS = Remedy(
    id="own-dataset-without-autotuning",
    text="give fit a tf.data dataset of the same batches (Dataset.from_generator, from_tensor_slices) with "
    "options.autotune.enabled = False (tf.data.Options), in place of the one that Keras makes",
)
"""Where no dataset is made but in the call of fit."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.03)
    """Of the time of the steps, or of the run: the least that a report calls low."""


REMEDIES = (
    Remedy(
        id="one-iterator-for-all-epochs",
        text="keep one iterator: repeat() the dataset and give fit steps_per_epoch; in a loop, "
        "batches = iter(dataset.repeat()) before the epochs",
    ),
    Remedy(
        id="without-autotuning",
        text="set options.autotune.enabled = False (tf.data.Options), with numbers for num_parallel_calls and prefetch",
    ),
)
"""The second one spares the wait at the end of a fit, too."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    low, high = view.steps.span
    loops = own_steps.holding_loops(view.steps)
    last = max([high, *loops[1][loops[0] <= high].tolist()])  # the end of the fit that made the last step
    found = [one for one in view.get(slow_iterator_deletion.build) if low <= one.begin and one.end <= last]
    if not found:
        return
    parts, whole = _parts(view, found), max(1, high - low)
    run = view.get(phase_lines.job)
    if not parts and run is not None:
        whole = run.wall_ns
    if sum(one.long_ns for one in found) / whole >= params.min_ratio:
        yield _seen(view, params, found, whole, parts)


def _seen(view: StepsView, params: Params, found: Sequence[Deletion], whole: int, parts: tuple[str, ...]) -> Seen:
    """``whole``: the time of which shares are; ``parts``: the components of steps that hold the waits."""
    total = sum(one.long_ns for one in found)
    ratio = total / whole
    least, most = sum(one.least_ns for one in found) / whole, sum(one.most_ns for one in found) / whole
    longest = max(found, key=lambda one: one.long_ns)
    times = "once" if len(found) == 1 else f"the longest of {len(found)} such waits"
    return Seen(
        title=f"deleting a tf.data iterator waits {format_ns(longest.long_ns)} for its autotuning, {times}: "
        f"{format_ratio(ratio)} of the {'time' if parts else 'run'}",
        severity="info" if len(found) == 1 and longest.ends_loop and not parts else None,
        confidence=SURE if len(found) >= SURE_FROM else LESS_SURE,
        where=tuple(dict.fromkeys(view.place(s.file, s.line, function=s.function) for s in (o.spot for o in found))),
        evidence=(
            Evidence(metric="deletion_ratio", value=ratio, unit="ratio", threshold=params.min_ratio, refs=parts),
            Evidence(metric="deletions", value=len(found), unit="deletions"),
            Evidence(metric="longest_ns", value=longest.long_ns, unit="ns"),
            Evidence(metric="slept_ns", value=longest.after_ns, unit="ns"),
        ),
        cost=cost_of(view, ratio, low=least, high=most, ns_per_step=None if parts else total // view.steps.count),
        pipeline_stage=None if parts else "none",
        remedies=_remedies(view, found),
        explanation="The thread of the steps does not run in these waits. They lie where one iterator takes the place "
        "of another, or where a fit lets go of its last one, and the longest ends "
        f"{format_ns(longest.after_ns)} after the old one's first element: there its tuning thread, which sleeps 10, "
        "20, 40 ms and so on, wakes and sees that it should end.",
    )


def _remedies(view: StepsView, found: Sequence[Deletion]) -> tuple[Remedy, ...]:
    fit = view.fit_place()
    made = {(place.file, place.line) for one in view.worker.all(DatasetMade) if (place := view.dataset_place(one))}
    if fit is not None and made == {(fit.file, fit.line)}:
        return (OF_KERAS,)
    return tuple(reversed(REMEDIES)) if any(one.ends_loop for one in found) else REMEDIES


def _parts(view: StepsView, found: Sequence[Deletion]) -> tuple[str, ...]:
    """The components of the step in which the waits lie."""
    middle = np.array([(one.begin + one.end) // 2 for one in found], np.int64)
    return tuple(dict.fromkeys(f"component:{name}" for name in view.anatomy.component_at(middle) if name))


DETECTOR = Detector(
    code="INP016",
    name="slow-iterator-deletion",
    cause="Library: buggy library version",
    introduced_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    frameworks=frozenset({"tf.data"}),
    params=Params(),
    detect=detect,
)
