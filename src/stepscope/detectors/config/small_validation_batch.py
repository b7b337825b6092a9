"""A fit validates on batches so small that a validated sample costs more than a training sample.

## What it detects
Validation inside `fit` that takes a tenth of the time or more, on batches of at most a quarter of the training's size,
at twice the training time per sample or more.

## Why it matters
Validation runs only the forward pass: per sample it should cost a third of training. Each batch has a fixed cost, for
the call, Keras' loop and the scheduling of the ops; with batches of one sample every sample pays it.

## Evidence
`validation_ratio`: share of the steady time inside of `evaluate`, gaps of the duty cycle included.
`cost_ratio`: time for a validated sample to time for one that is trained on. `validation_batch`, `training_batch`.

Measured (bench/cases/36-validation-of-single-rows): 3.9x faster without `validation_batch_size=1` (74 % saved);
predicted 82 %.

## Known limits
The gain is modelled: a sample is assumed to cost as much as in training, which is the most that it should. Samples that
differ in size (whole images for validation, crops for training) look the same.

## Remedy
`validation_batch_size` of the training's size or more, or a validation dataset in larger batches: it changes no
weights. Keras uses `batch_size` if none is given.

## References
Keras documentation of Model.fit, validation_batch_size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.steps import evaluations
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.model.log.events import BatchSeen, DatasetMade
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Share of the steady time that validation takes."""
    max_batch_ratio: Ratio = Ratio(0.25)
    """Relative to the training's batch."""
    min_cost_ratio: float = 2.0
    """Time per validated sample over time per training sample."""


class _Batches(NamedTuple):
    """Samples per batch, of training and of validation; samples of one validation."""

    training: int
    validation: int
    samples: int


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    steps = view.steps
    if steps.kind != Kind.EXECUTION:
        return
    batches = _batches(steps)
    first, last = steps.span
    inside = (np.array([first], np.int64), np.array([last], np.int64))
    loops = intervals.clip(evaluations.loops(steps), inside)
    if batches is None or not len(loops[0]) or batches.validation > params.max_batch_ratio * batches.training:
        return
    ratio = intervals.total(loops) / max(1, last - first)
    usual = steps.durations[steps.steady & steps.recurring]
    if not len(usual) or ratio < params.min_ratio:
        return
    validated = float(np.median(loops[1] - loops[0])) / batches.samples
    cost_ratio = validated * batches.training / max(1.0, float(np.median(usual)))
    if cost_ratio >= params.min_cost_ratio:
        yield _finding(view, batches, ratio, cost_ratio, params)


def _batches(steps: Steps) -> _Batches | None:
    """The batches of the last fit that validates."""
    seen = [batch for batch in steps.worker.all(BatchSeen) if batch.size > 0]
    training = [batch for batch in seen if batch.role == "train"]
    fits = {batch.loop for batch in training}
    validation = [batch for batch in seen if batch.role == "test" and batch.loop in fits]
    if not training or not validation:
        return None
    samples = validation[-1].samples or validation[-1].size * validation[-1].steps
    return _Batches(training[-1].size, validation[-1].size, samples) if samples else None


def _finding(view: StepsView, batches: _Batches, ratio: float, cost_ratio: float, params: Params) -> Seen:
    saved = ratio * (1.0 - 1.0 / cost_ratio)
    return Seen(
        title=f"validation on batches of {batches.validation} takes {format_ratio(ratio)} of the time: a sample takes "
        f"{cost_ratio:.3g}x as long as in training, which uses batches of {batches.training}",
        confidence=0.85,
        where=_places(view, batches.validation),
        evidence=(
            Evidence(metric="validation_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="cost_ratio", value=cost_ratio, unit="ratio", threshold=params.min_cost_ratio),
            Evidence(metric="validation_batch", value=batches.validation, unit="samples"),
            Evidence(metric="training_batch", value=batches.training, unit="samples"),
        ),
        cost=cost_of(view, saved, low=0.8 * saved, high=ratio, basis="modelled"),
        remedies=(
            Remedy(
                id="larger-validation-batch",
                text=f"validation_batch_size={batches.training} or more in fit, or the validation dataset in batches "
                "of that size: the trained weights stay the same",
                safety="safe",
            ),
        ),
    )


def _places(view: StepsView, size: int) -> tuple[Place, ...]:
    steps = view.steps
    made = [d for d in steps.worker.all(DatasetMade) if d.batch == size and d.file]
    fit = view.fit_place()
    datasets = [place for d in made[:1] if (place := view.dataset_place(d)) is not None]
    return tuple(dict.fromkeys([*([fit] if fit else []), *datasets]))


DETECTOR = Detector(
    code="CFG004",
    name="small-validation-batch",
    cause="Model: improper hyper parameter",
    introduced_stage="evaluation",
    exposed_stage="training",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
