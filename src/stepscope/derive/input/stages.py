"""The stages of an input pipeline after tf.data's own rewriting, with their self times and the user's lines.

tf.data fuses, drops and inserts stages but keeps their order, so its tree and the user's constructions can be aligned.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.input import stage_totals
from stepscope.derive.input.stage_totals import StageTotals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.input.model_reads import Read
    from stepscope.derive.input.stage_totals import Key
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.log.events import DatasetMade, IteratorMade
    from stepscope.readers.iterator_model import IteratorModelData

READERS = ("TFRecord", "TextLine", "FixedLengthRecord", "Csv", "ReadFile", "ListFiles", "Sql")
"""Stages that read files: the raw input rather than preprocessing. Source: tensorflow/core/kernels/data."""


class Stage(Struct, frozen=True, kw_only=True):
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
    bytes: float = 0.0
    """Memory of the elements that it gives for a batch."""
    depth: int = 0
    """Stages between it and the consumer: those that feed it follow it, deeper than it."""
    stretch: int = 0
    """Number of its stretch: stages of one stretch run one after the other, those of others at the same time."""

    @property
    def latency_ns(self) -> float:
        """The shortest time in which the stage can make a batch: self time over its parallelism."""
        return self.self_ns / max(1.0, self.parallelism)

    @property
    def reads(self) -> bool:
        """Whether it reads files."""
        return self.name.startswith(READERS)

    @property
    def served(self) -> bool:
        """Whether the workers of a tf.data service make its elements, so that its time is theirs."""
        return self.name.startswith("DataService")

    @property
    def family(self) -> str:
        """Name without version and parallel prefix: Map, Interleave."""
        return stage_totals.family(self.name)

    @property
    def sequential(self) -> bool:
        """Whether it runs on one thread and no parallelism was requested."""
        asked = any(d.parallel != 0 or "Parallel" in d.cls for d in self.datasets)
        return self.parallelism <= 1 and not asked

    @property
    def element_ns(self) -> float:
        """Self time per element of the stage."""
        return self.self_ns / self.elements if self.elements else self.self_ns


def limiting(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stretch that needs the most time for a batch: the stages that set the pace, one after the other."""
    stretches: dict[int, list[Stage]] = {}
    for stage in stages:
        stretches.setdefault(stage.stretch, []).append(stage)
    return tuple(max(stretches.values(), key=lambda these: sum(s.latency_ns for s in these), default=()))


def build(
    steps: Steps, reads: list[Read], iterators: dict[int, IteratorMade], datasets: dict[int, DatasetMade]
) -> tuple[Stage, ...]:
    """Stages of the iterator that delivered most batches, summed over iterators of the same shape (epochs)."""
    by_iterator: dict[int, list[Read]] = {}
    for read in reads:
        by_iterator.setdefault(read.iterator, []).append(read)
    shapes: dict[tuple[Key, ...], tuple[StageTotals, dict[Key, tuple[DatasetMade, ...]]]] = {}
    for iterator, every in by_iterator.items():
        series = _before_its_end(every)
        first, last = _ends_of_series(series, steps)
        between = [r.data for r in series if first is None or first.at < r.at <= last.at]
        found = stage_totals.of_series(first.data if first is not None else None, between)
        made = iterators.get(iterator)
        begun = first if first is not None else made
        found.wall_ns = float(last.at - begun.at) if begun is not None else math.nan
        totals, matched = shapes.setdefault(found.shape, (StageTotals(shape=found.shape), {}))
        totals.add(found)
        if made is not None and not matched:
            for data in between:
                by_node = align(data, datasets.get(made.dataset), datasets)
                matched.update({key: by_node[n.id] for key, n in stage_totals.walk(data) if n.id in by_node})
    if not shapes:
        return ()
    return _stages(*max(shapes.values(), key=lambda shape: shape[0].batches))


def of_tree(data: IteratorModelData) -> tuple[Stage, ...]:
    """Stages of one tree, without the user's lines."""
    return _stages(stage_totals.of_series(None, [data]), {})


def _stages(totals: StageTotals, matched: dict[Key, tuple[DatasetMade, ...]]) -> tuple[Stage, ...]:
    rows = stage_totals.per_batch(totals)
    return tuple(
        Stage(
            name=key[-1][1],
            self_ns=row.busy_ns,
            parallelism=row.parallelism,
            elements=row.elements,
            buffered=row.buffered,
            bytes=row.bytes,
            depth=len(key),
            stretch=row.stretch,
            datasets=matched.get(key, ()),
        )
        for key, row in rows.items()
    )


def _before_its_end(series: list[Read]) -> list[Read]:
    """The reads before the input gave its last element: with it, tf.data drops the stages below, and what they did."""
    made = [stage_totals.made_with_it(read.data) for read in series]
    whole = frozenset().union(*made)
    count = next((number for number in range(len(series), 0, -1) if made[number - 1] == whole), 0)
    return series[:count] or series


def _ends_of_series(series: list[Read], steps: Steps) -> tuple[Read | None, Read]:
    """First and last read to take differences between; the first only if it is past the warm-up and not the last.

    Reads of op traces are those of single captures, and not in the order of time.
    """
    lo, _ = steps.windows
    steady = [r for r in series if len(lo) and r.at >= lo[0]]
    if len(steady) > 1 and steady[-1].elements > steady[0].elements and steady[-1].at > steady[0].at:
        return steady[0], steady[-1]
    return None, series[-1]


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


def align(
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
        for family in stage_totals.families(node.name):
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
                if position >= len(below) and inner not in matched:
                    matched[inner] = tuple(found)

    visit(data.output, root)
    return matched


def _search(made: DatasetMade | None, family: str, datasets: dict[int, DatasetMade]) -> DatasetMade | None:
    """The nearest construction of a family, following single inputs upwards."""
    while made is not None:
        if stage_totals.family(made.cls) == family:
            return made
        if len(made.inputs) != 1:
            return None
        made = datasets.get(made.inputs[0])
    return None
