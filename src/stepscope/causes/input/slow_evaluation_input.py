"""What prepares the input of the evaluations inside of a fit, and how much of their time it must take.

An evaluation only runs the model forward, which takes no longer than a training step on as many samples. By stack
samples, its thread stands in the calls of the compiled function, or in Python of Keras, metrics and callbacks. What the
calls take beyond computing is waiting for input. Its datasets are those of the iterators that are made while it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.input import cut_caches
from stepscope.causes.input.cut_caches import CACHES
from stepscope.derive.input import model_reads, stages
from stepscope.derive.python import stack_samples
from stepscope.derive.steps import evaluations
from stepscope.model.log.events import DatasetMade, IteratorMade

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.causes.input.cut_caches import CutCache
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps_view import StepsView

DROPS = ("Filter", "Skip", "Shard")
"""Parts of class names of transformations that discard elements of their input."""
MIN_SAMPLES = 8
"""Stack samples of evaluations; fewer do not say where their time goes."""


class EvaluationInput(Struct, frozen=True, kw_only=True):
    """The input of the evaluations."""

    evaluations: int
    computing_ratio: float
    """Largest share of their time that can be the model's."""
    calling_ratio: float
    """Share of their time inside of the compiled function's calls, by stack samples."""
    maps: tuple[DatasetMade, ...]
    """Transformations with a function of the user's, from the consumer on, whose output no cache keeps."""
    cut: CutCache | None
    """A cache above them that is discarded after each pass."""
    drops: DatasetMade | None
    """The transformation that discards elements after these functions were called for them."""
    kept_ratio: float
    """Share of the elements that it keeps; 1 without one, or if it is not known."""

    @property
    def waiting_ratio(self) -> float:
        """Share of their time in which the compiled function does not compute."""
        return max(0.0, self.calling_ratio - self.computing_ratio)


def build(view: StepsView) -> EvaluationInput | None:
    """The input; None if nothing of the user's is computed in it, or if the evaluations' batches are not known."""
    loops = evaluations.loops(view.steps)
    datasets = {made.id: made for made in view.worker.all(DatasetMade)}
    iterators = [made for made in view.worker.all(IteratorMade) if made.dataset in datasets and _within(loops, made.at)]
    if not len(loops[0]) or not iterators:
        return None
    chain = stages.upstream([iterators[-1].dataset], datasets)
    cut = cut_caches.build(chain)
    maps = _functions(chain, cut)
    batches = _batches(view, iterators, chain)
    training = view.anatomy.mean_ns("call")
    size = float(np.mean(view.steps.samples[view.steps.steady])) if view.steps.steady_count else 0.0
    samples = [sample for sample in view.samples if sample.component == "evaluation"]
    if not maps or not batches or not size or len(samples) < MIN_SAMPLES:
        return None
    batch = iterators[-1].batch or size
    usual_ns = float(np.median(loops[1] - loops[0]))
    calling = stack_samples.weight_of(s for s in samples if s.in_op) / max(1, stack_samples.weight_of(samples))
    drops, kept = _dropped(chain, maps, batches * batch)
    return EvaluationInput(
        evaluations=len(loops[0]),
        computing_ratio=min(1.0, batches * max(1.0, batch / size) * training / usual_ns),
        calling_ratio=calling,
        maps=maps,
        cut=cut,
        drops=drops,
        kept_ratio=kept,
    )


def _within(loops: Intervals, at: int) -> bool:
    number = int(np.searchsorted(loops[0], at, "right")) - 1
    return number >= 0 and at <= int(loops[1][number])


def _functions(chain: Sequence[DatasetMade], cut: CutCache | None) -> tuple[DatasetMade, ...]:
    """Maps with functions, down to the first cache that is kept; the consumer's first."""
    found: list[DatasetMade] = []
    for made in chain:
        if CACHES in made.cls and (cut is None or made.id != cut.cache.id):
            break
        if made.fn_file and not any(part in made.cls for part in DROPS):
            found.append(made)
    return tuple(found)


def _batches(view: StepsView, iterators: Sequence[IteratorMade], chain: Sequence[DatasetMade]) -> int:
    """Batches of one evaluation: by the length of the dataset, else by tf.data's model; 0: not known."""
    if chain[0].cardinality >= 0:
        return chain[0].cardinality
    wanted = {made.id for made in iterators}
    return max((read.elements for read in model_reads.read_all(view.worker)[0] if read.iterator in wanted), default=0)


def _dropped(
    chain: Sequence[DatasetMade], maps: Sequence[DatasetMade], delivered: float
) -> tuple[DatasetMade | None, float]:
    """(what discards elements behind the functions, share that it keeps)."""
    order = [made.id for made in chain]
    deepest = max((order.index(made.id) for made in maps), default=-1)
    for position, made in enumerate(chain):
        source = next((one for one in chain if one.id in made.inputs), None)
        if position < deepest and any(part in made.cls for part in DROPS) and source is not None:
            known = source.cardinality > 0 and delivered < source.cardinality
            return (made, delivered / source.cardinality) if known else (None, 1.0)
    return None, 1.0
