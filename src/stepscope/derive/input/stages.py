"""The stages of an input pipeline after tf.data's own rewriting, with their self times and the user's lines.

tf.data fuses, drops and inserts stages but keeps their order, so its tree and the user's constructions can be aligned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.input.model_reads import Read
    from stepscope.derive.steps.steps import Steps
    from stepscope.formats.agent_files.iterator_model import IteratorModelData, Node
    from stepscope.model.log.events import DatasetMade, IteratorMade
    from stepscope.model.records import F64

INJECTED = frozenset({"Root", "Model", "MaxIntraOpParallelism", "PrivateThreadPool", "Options"})
"""Nodes that tf.data inserts and that are no stage of the user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a pipeline. Times are means per batch delivered to the consumer."""

    name: str
    """tf.data's name after its own rewriting: Map, ParallelMapV2, MapAndBatch, Generator ..."""
    self_ns: float
    """Self time per batch, summed over the stage's threads."""
    parallelism: float
    elements: float
    """Number of elements per batch."""
    datasets: tuple[DatasetMade, ...] = ()
    """The constructions it came from; two for a fused stage, none for one inserted by tf.data."""
    buffered: float = 0.0

    @property
    def latency_ns(self) -> float:
        """The shortest time in which the stage can make a batch: self time over its parallelism."""
        return self.self_ns / max(1.0, self.parallelism)

    @property
    def sequential(self) -> bool:
        """Whether it runs on one thread and no parallelism was requested."""
        asked = any(d.parallel != 0 or "Parallel" in d.cls for d in self.datasets)
        return self.parallelism <= 1 and not asked

    @property
    def element_ns(self) -> float:
        """Self time per element of the stage."""
        return self.self_ns / self.elements if self.elements else self.self_ns


def build(
    steps: Steps, reads: list[Read], iterators: dict[int, IteratorMade], datasets: dict[int, DatasetMade]
) -> tuple[Stage, ...]:
    """Stages of the iterator that delivered most batches, summed over iterators of the same shape (epochs)."""
    by_iterator: dict[int, list[Read]] = {}
    for read in reads:
        by_iterator.setdefault(read.iterator, []).append(read)
    shapes: dict[tuple[str, ...], _Totals] = {}
    for iterator, series in by_iterator.items():
        first, last = _ends_of_series(series, steps)
        path = [n for n in _walk(last.data) if _family(n.name) not in INJECTED]
        totals = shapes.setdefault(tuple(n.name for n in path), _Totals(len(path)))
        totals.add(first, last, path)
        made = iterators.get(iterator)
        if made is not None and not totals.matched:
            totals.matched = _align(last.data, datasets.get(made.dataset), datasets)
            totals.ids = [n.id for n in path]
    if not shapes:
        return ()
    names, totals = max(shapes.items(), key=lambda item: item[1].batches)
    batches = max(1, totals.batches)
    return tuple(
        Stage(
            name=name,
            self_ns=float(totals.busy[i]) / batches,
            parallelism=float(totals.parallelism[i]),
            elements=float(totals.elements[i]) / batches,
            buffered=float(totals.buffered[i]) / max(1, totals.series),
            datasets=totals.matched.get(totals.ids[i], ()) if totals.ids else (),
        )
        for i, name in enumerate(names)
    )


class _Totals:
    """Sums over iterators whose pipelines have the same shape."""

    def __init__(self, stages: int) -> None:
        self.batches = 0
        self.series = 0
        self.busy: F64 = np.zeros(stages)
        self.elements: F64 = np.zeros(stages)
        self.parallelism: F64 = np.ones(stages)
        self.buffered: F64 = np.zeros(stages)
        self.matched: dict[int, tuple[DatasetMade, ...]] = {}
        self.ids: list[int] = []

    def add(self, first: Read | None, last: Read, path: Sequence[Node]) -> None:
        """Adds what happened between two reads, or since the iterator's start if there is only one."""
        before = first.data.nodes if first else {}
        self.batches += last.elements - (first.elements if first else 0)
        self.series += 1
        for i, node in enumerate(path):
            earlier = before.get(node.id)
            self.busy[i] += node.processing_ns - (earlier.processing_ns if earlier else 0)
            for worked in self._worked_on(node, last.data.nodes):
                past = before.get(worked.id)
                self.elements[i] += worked.num_elements - (past.num_elements if past else 0)
            self.parallelism[i] = max(self.parallelism[i], node.parameters.get("parallelism", 1.0))
            self.buffered[i] += node.buffered_elements

    @staticmethod
    def _worked_on(node: Node, nodes: dict[int, Node]) -> list[Node]:
        """Elements on which a stage works: its own, or its inputs' if it batches while mapping."""
        inputs = [nodes[i] for i in node.inputs if i in nodes]
        return inputs if _family(node.name) == "MapAndBatch" and inputs else [node]


def _ends_of_series(series: list[Read], steps: Steps) -> tuple[Read | None, Read]:
    """First and last read to take differences between; the first only if it is past the warm-up and not the last."""
    lo, _ = steps.windows
    steady = [r for r in series if len(lo) and r.at >= lo[0]]
    if len(steady) > 1 and steady[-1].elements > steady[0].elements:
        return steady[0], steady[-1]
    return None, series[-1]


def _walk(data: IteratorModelData) -> list[Node]:
    """Nodes from the consumer to the sources, depth first."""
    order, todo, seen = [], [data.output], set()
    while todo:
        number = todo.pop()
        node = data.nodes.get(number)
        if node is None or number in seen:
            continue
        seen.add(number)
        order.append(node)
        todo.extend(reversed(node.inputs))
    return order


def upstream(roots: Sequence[int], datasets: dict[int, DatasetMade]) -> list[DatasetMade]:
    """Every construction from which some datasets were made, each once, the consumer's first."""
    order: list[DatasetMade] = []
    todo = list(roots)
    while todo:
        made = datasets.get(todo.pop())
        if made is not None and made not in order:
            order.append(made)
            todo.extend(made.inputs)
    return order


def _family(name: str) -> str:
    """Stage name without version, parallel prefix and "Dataset": ParallelMapV2 and MapDataset are both Map."""
    name = re.sub(r"V\d+$", "", name.lstrip("_"))
    name = re.sub(r"(V\d+)?Dataset(V\d+)?$", "", name)
    name = re.sub(r"^(Parallel|Legacy|Forever|Finite|Memory|File|Experimental)+", "", name)
    return {"CacheImpl": "Cache", "FilterFusion": "Filter", "DirectedInterleave": "Interleave"}.get(name, name)


def _families(name: str) -> tuple[str, ...]:
    """The user's transformations that a node stands for, consumer first."""
    if _family(name) == "MapAndBatch":
        return ("Batch", "Map")
    return (_family(name),)


def _align(
    data: IteratorModelData, root: DatasetMade | None, datasets: dict[int, DatasetMade]
) -> dict[int, tuple[DatasetMade, ...]]:
    """The constructions from which each node came. Both trees keep their order; tf.data only fuses, drops and
    inserts.
    """
    matched: dict[int, tuple[DatasetMade, ...]] = {}

    def visit(number: int, made: DatasetMade | None) -> None:
        node = data.nodes.get(number)
        if node is None:
            return
        found: list[DatasetMade] = []
        below: Sequence[int] | None = None
        at = made
        for family in _families(node.name):
            hit = _search(at, family, datasets)
            if hit is None:
                continue
            found.append(hit)
            below = hit.inputs
            at = datasets.get(hit.inputs[0]) if hit.inputs else None
        if found:
            matched[number] = tuple(found)
        for position, inner in enumerate(node.inputs):
            if below is None:
                visit(inner, made)
            else:
                visit(inner, datasets.get(below[position]) if position < len(below) else None)

    visit(data.output, root)
    return matched


def _search(made: DatasetMade | None, family: str, datasets: dict[int, DatasetMade]) -> DatasetMade | None:
    """The nearest construction of a family, following single inputs upwards."""
    while made is not None:
        if _family(made.cls) == family:
            return made
        if len(made.inputs) != 1:
            return None
        made = datasets.get(made.inputs[0])
    return None
