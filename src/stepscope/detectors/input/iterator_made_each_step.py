"""Each step makes a new iterator over the dataset to take one batch from it.

## What it detects
A loop that takes a batch or two from a tf.data iterator and then makes the next iterator, `next(iter(dataset))` or `for
batch in dataset.take(1)`, if making iterators and waiting for their first batch take a tenth of the time.

## Why it matters
A new iterator restarts its pipeline: threads, the filling of the shuffle buffer and of every prefetch, files that are
reopened, all for one batch; the rest is discarded. It also begins at the first element each time, so that a dataset
without a shuffle gives the same batch in every step.

## Evidence
`fresh_ratio`: share of the steady wall time spent waiting for batches of such iterators and making them, the latter by
samples (`samples_on_making`). `iterators`, `batches_per_iterator`: in the steady steps.

## Known limits
Iterators within Keras' own loops and within a tf.function are not included. Work that threads of discarded iterators
still do during the step is not counted: the real saving is larger.

## Remedy
One iterator before the loop: `batches = iter(dataset.repeat())`, then `next(batches)`; or `for batch in dataset`.
## References
TensorFlow guide "tf.data: Build TensorFlow input pipelines"; FSE'22 study, inefficient API usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import iterator_made_each_step
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.model.log.events import DatasetMade, IteratorMade
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.input.iterator_made_each_step import FreshIterators
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of steady wall time."""
    min_iterators: int = 20
    """In the steady steps: fewer are a look at the data, or a short evaluation."""
    max_pulls: int = 2
    """Batches per iterator: a dataset of one batch is pulled from twice, for the batch and for the end."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = iterator_made_each_step.build(view, params.min_iterators, params.max_pulls)
    if found is None or found.ratio < params.min_ratio:
        return
    yield Seen(
        title=f"a new iterator over the dataset is made for each batch ({found.iterators:,} iterators): "
        f"{format_ratio(found.ratio)} of the time",
        confidence=0.9,
        where=_places(view, found),
        evidence=(
            Evidence(metric="fresh_ratio", value=found.ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="iterators", value=found.iterators, unit="iterators", threshold=params.min_iterators),
            Evidence(metric="batches_per_iterator", value=found.pulls / found.iterators, unit="batches"),
            Evidence(metric="samples_on_making", value=found.samples, unit="samples"),
        ),
        cost=cost_of(view, found.ratio),
        remedies=(
            Remedy(
                id="one-iterator",
                text="make the iterator once, before the loop: batches = iter(dataset.repeat()), then next(batches) "
                "in each step, or for batch in dataset",
            ),
        ),
        explanation="Each of these batches came from a new iterator, which was discarded after it, or whose dataset "
        "has "
        "only one or two batches. Each restarts the whole pipeline: it fills the shuffle buffer and the prefetch "
        "buffers.",
    )


def _places(view: StepsView, found: FreshIterators) -> tuple[Place, ...]:
    """Where the iterators are made, then the pipeline that each of them starts."""
    here = (view.place(found.file, found.line, function=found.function),) if found.file else ()
    worker = view.worker
    made = {d.id: d for d in worker.all(DatasetMade)}
    todo = [i.dataset for i in worker.all(IteratorMade)][-1:]
    places = list(here)
    while todo:
        dataset = made.pop(todo.pop(), None)
        if dataset is not None:
            todo += dataset.inputs
            place = view.dataset_place(dataset)
            places += [place] if place is not None else []
    return tuple(dict.fromkeys(places))[:MAX_PLACES]


MAX_PLACES = 4

DETECTOR = Detector(
    code="INP009",
    name="iterator-made-each-step",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    frameworks=frozenset({"tf.data"}),
    params=Params(),
    detect=detect,
)
