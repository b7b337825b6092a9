"""Whether the steps of Keras' fit see identical examples in pass after pass.

Serves frozen_features_recomputed, beside the cause of its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.graph.frozen_features_recomputed import VARYING
from stepscope.derive.steps import epochs
from stepscope.model.log.events import IteratorMade, Traced
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.input.pipeline import Pipeline
    from stepscope.derive.steps_view import StepsView

INFINITE = -1
_RANDOM = ("Random", "Generator")
"""Parts of the class names of datasets that differ in each pass."""
_EXAMPLES = "TensorSliceDataset"
"""A source whose elements are examples."""
_UNFOLDING = ("FlatMap", "Interleave", "Unbatch")
"""Transformations that make several elements of one."""
_SHUFFLES = ("RandomShuffle",)
"""An op of the framework's own functions that reorders examples, as Keras does for arrays."""
_PASSING = ("Iterator", "Optional", "While", "If", "Case", "Stack", "TensorArray")
"""Parts of ``VARYING`` that say nothing about the functions of a dataset, whose calls are examined in full."""


def passes(view: StepsView) -> int:
    """Number of passes over the same examples; 0 if unknown, or if examples are made in each pass."""
    steps, pipe, index = view.steps, view.pipeline, view.graphs
    if index is None or steps.kind != Kind.EXECUTION or not pipe.datasets:
        return 0
    if pipe.functions or any(part in d.cls for d in pipe.datasets for part in _RANDOM) or _changes(index, view):
        return 0
    fed = {one.dataset for one in pipe.iterators}
    return min(len(epochs.ends_of(steps)), *(_passes_of(view, pipe, dataset) for dataset in fed)) if fed else 0


def _changes(index: GraphIndex, view: StepsView) -> bool:
    """Whether a function of a dataset may give different results for the same example, or was not read."""
    worker = view.worker
    traced = [t for t in worker.all(Traced) if t.owner == "tf.data"]
    read = {g.of for g in index.graphs.values() if g.role == "function" and g.state == "read"}
    known = {t.definition_key for t in traced if t.id in read}
    if any(t.definition_key not in known for t in traced):
        return True
    table = index.table
    varying = [part for part in VARYING if part not in _PASSING]
    return any(
        any(part in table.type_of(row) for part in varying)
        and not (table.type_of(row).startswith(_SHUFFLES) and not table.line[row])
        and not table.type_of(row).startswith("StatefulPartitionedCall")
        for graph in index.graphs
        if index.of_data(graph)
        for row in range(*table.rows_of(graph).indices(len(table)))
    )


def _passes_of(view: StepsView, pipe: Pipeline, dataset: int) -> int:
    """Passes over a dataset: the number of its iterators, or, with ``repeat``, its samples over its length."""
    if any(d.id == dataset and d.cardinality == INFINITE for d in pipe.datasets):
        return _repeats(view, pipe)
    made = view.worker.all(IteratorMade)
    return sum(1 for one in made if one.dataset == dataset)


def _repeats(view: StepsView, pipe: Pipeline) -> int:
    sources = [d for d in pipe.datasets if not d.inputs]
    known = all(d.cls == _EXAMPLES and d.cardinality > 0 for d in sources)
    unfolded = any(part in d.cls for d in pipe.datasets for part in _UNFOLDING)
    if not sources or not known or unfolded or not any("Repeat" in d.cls for d in pipe.datasets):
        return 0
    return int(view.steps.samples.sum()) // sum(d.cardinality for d in sources)
