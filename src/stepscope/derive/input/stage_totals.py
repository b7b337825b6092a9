"""What each stage of tf.data's tree did for one batch, by the reads of an iterator's live model.

A repeat, a flat map and an interleave make their inputs as they go, with every pass or file, and the model keeps only
those that are open: the counters of the others are gone with them. So a stage below such a stage counts by its time per
element, for all elements that the stage above passed on. (TFRecordDataset of several files is a flat map over them.)
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stepscope.readers.iterator_model import IteratorModelData, Node

Key = tuple[tuple[int, str], ...]
"""A stage: the path to it from the consumer, (place among its parent's inputs, name) each."""
INJECTED = frozenset({"Root", "Model", "MaxIntraOpParallelism", "PrivateThreadPool", "Options"})
"""Nodes that tf.data inserts and that are no stage of the user's."""
FUSED = {"MapAndBatch": ("Batch", "Map"), "ShuffleAndRepeat": ("Repeat", "Shuffle")}
"""Nodes that stand for two of the user's transformations, consumer first."""


def family(name: str) -> str:
    """Stage name without version, parallel prefix and "Dataset": ParallelMapV2 and MapDataset are both Map."""
    name = re.sub(r"V\d+$", "", name.lstrip("_"))
    name = re.sub(r"(V\d+)?Dataset(V\d+)?$", "", name)
    name = re.sub(r"^(Parallel|Legacy|Forever|Finite|Memory|File|Experimental)+", "", name)
    return {"CacheImpl": "Cache", "FilterFusion": "Filter", "DirectedInterleave": "Interleave"}.get(name, name)


def families(name: str) -> tuple[str, ...]:
    """The user's transformations that a node stands for, consumer first."""
    return FUSED.get(family(name), (family(name),))


def _remade_from(name: str) -> int | None:
    """Place of the first input that a stage makes as it goes; None: all are made with it."""
    if name.startswith("Directed"):
        return None
    return {"Repeat": 0, "FlatMap": 1, "Interleave": 1}.get(family(name))


def walk(data: IteratorModelData) -> Iterator[tuple[Key, Node]]:
    """Nodes from the consumer to the sources, depth first; inputs that a stage makes as it goes share their place."""
    todo: list[tuple[Key, int]] = [((), data.output)]
    places = [0]
    seen: set[int] = set()
    while todo:
        above, number = todo.pop()
        place = places.pop()
        node = data.nodes.get(number)
        if node is None or number in seen:
            continue
        seen.add(number)
        key = (*above, (place, node.name))
        yield key, node
        made_from = _remade_from(node.name)
        for position, inner in reversed(list(enumerate(node.inputs))):
            todo.append((key, inner))
            places.append(position if made_from is None else min(position, made_from))


class _Sums(Struct):
    """Sums of one stage over the nodes that were seen of it."""

    elements: float = 0.0
    bytes: float = 0.0
    busy_ns: float = 0.0
    parallelism: float = 1.0
    threads: bool = False
    """Whether it has own threads: it has a parallelism that can be set."""
    buffered: float = 0.0


class StageTotals(Struct, kw_only=True):
    """Sums over iterators of one shape."""

    shape: tuple[Key, ...]
    """The stages that are made with the iterator, and not as it goes."""
    batches: int = 0
    series: int = 0
    wall_ns: float = 0.0
    """Time in which it was counted; not a number: unknown."""
    partial: bool = False
    """Whether stages that ended are missing from the sums."""
    sums: dict[Key, _Sums] = field(default_factory=dict)

    def add(self, other: StageTotals) -> None:
        """Add another iterator's."""
        self.batches += other.batches
        self.series += other.series
        self.wall_ns += other.wall_ns
        self.partial = self.partial or other.partial
        for key, row in other.sums.items():
            mine = self.sums.setdefault(key, _Sums())
            mine.elements += row.elements
            mine.bytes += row.bytes
            mine.busy_ns += row.busy_ns
            mine.parallelism = max(mine.parallelism, row.parallelism)
            mine.threads = mine.threads or row.threads
            mine.buffered += row.buffered


def of_series(first: IteratorModelData | None, reads: Sequence[IteratorModelData]) -> StageTotals:
    """What happened in one iterator after a read, or since its start.

    Args:
        first: the read before; None: the iterator's start.
        reads: the reads after it, in the order of time, at least one.
    """
    before = first.nodes if first is not None else {}
    latest: dict[Key, dict[int, Node]] = {}
    for data in reads:
        for key, node in walk(data):
            latest.setdefault(key, {})[node.id] = node
    last = reads[-1]
    root, past = last.nodes.get(last.output), before.get(last.output)
    totals = StageTotals(
        shape=tuple(sorted(key for key in latest if not _is_remade(key))),
        batches=(root.num_elements if root else 0) - (past.num_elements if past else 0),
        series=1,
        partial=not last.complete,
    )
    for key in sorted(latest):
        row = totals.sums[key] = _Sums()
        for node in latest[key].values():
            earlier = before.get(node.id)
            row.elements += node.num_elements - (earlier.num_elements if earlier else 0)
            row.bytes += node.bytes_produced - (earlier.bytes_produced if earlier else 0)
            row.busy_ns += node.processing_ns - (earlier.processing_ns if earlier else 0)
            row.parallelism = max(row.parallelism, node.parameters.get("parallelism", 1.0))
            row.threads = row.threads or "parallelism" in node.parameters
        row.buffered = float(sum(n.buffered_elements for k, n in walk(last) if k == key))
    return totals


def made_with_it(data: IteratorModelData) -> frozenset[Key]:
    """The stages that are made with the iterator, and not as it goes."""
    return frozenset(key for key, _ in walk(data) if not _is_remade(key))


def _is_remade(key: Key) -> bool:
    """Whether a stage is made, with all below it, while the iterator is used."""
    return any(
        made_from is not None and place >= made_from
        for (_, above), (place, _) in itertools.pairwise(key)
        for made_from in [_remade_from(above)]
    )


class PerBatch(Struct, frozen=True, kw_only=True):
    """One stage. Means per batch delivered to the consumer."""

    busy_ns: float
    """Self time over all its threads."""
    elements: float
    """Elements on which it works."""
    parallelism: float
    buffered: float
    """Elements that were ready when the model was read."""
    bytes: float
    """Memory of the elements that it gives."""
    stretch: int
    """Number of its stretch: the stages of one run one after the other."""


def per_batch(totals: StageTotals) -> dict[Key, PerBatch]:
    """The user's stages, from the consumer to the sources.

    A map that tf.data has fused with a batch runs several calls at a time where the model's parallelism is 1: 1.3 and 2
    were seen, the second in an op trace too (TensorFlow 2.21). So it had at least the threads that its time takes.
    """
    scale = _scales(totals)
    threads = _threads(totals)
    stretch = _stretches(totals)
    batches = max(1, totals.batches)
    rows: dict[Key, PerBatch] = {}
    for key in sorted(totals.sums):
        row = totals.sums[key]
        if family(key[-1][1]) in INJECTED:
            continue
        fused = family(key[-1][1]) == "MapAndBatch"
        worked = _inputs(totals, key) if fused else ()
        busy = row.busy_ns * scale[key]
        ran_on = busy / totals.wall_ns if fused and totals.wall_ns > 0 else 0.0
        rows[key] = PerBatch(
            busy_ns=busy / batches,
            elements=sum(totals.sums[k].elements * scale[k] for k in worked or (key,)) / batches,
            parallelism=max(row.parallelism * threads[key], ran_on),
            buffered=row.buffered / max(1, totals.series),
            bytes=row.bytes * scale[key] / batches,
            stretch=stretch[key],
        )
    return rows


def _inputs(totals: StageTotals, key: Key) -> tuple[Key, ...]:
    return tuple(k for k in totals.sums if k[:-1] == key)


def _remade(above: Key, keys: Iterable[Key]) -> list[Key]:
    made_from = _remade_from(above[-1][1])
    return [] if made_from is None else [key for key in keys if key[-1][0] >= made_from]


def _scales(totals: StageTotals) -> dict[Key, float]:
    """For how much each stage's sums stand: inputs that ended are missing in those of remade ones."""
    scale: dict[Key, float] = {}
    for key in sorted(totals.sums):
        inherited = scale.setdefault(key, 1.0)
        inputs = _inputs(totals, key)
        made = _remade(key, inputs) if totals.partial else []
        seen = sum(totals.sums[k].elements for k in made)
        passed = totals.sums[key].elements * inherited
        for inner in inputs:
            scale[inner] = max(inherited, passed / seen) if inner in made and seen > 0 else inherited
    return scale


def _threads(totals: StageTotals) -> dict[Key, float]:
    """How many of each stage run at a time because a stage above it pulls so many inputs at once."""
    threads: dict[Key, float] = {}
    for key in sorted(totals.sums):
        mine = threads.setdefault(key, 1.0)
        inputs = _inputs(totals, key)
        made = _remade(key, inputs)
        for inner in inputs:
            threads[inner] = mine * (totals.sums[key].parallelism if inner in made else 1.0)
    return threads


def _stretches(totals: StageTotals) -> dict[Key, int]:
    """Numbers of stretches: a stage that has own threads begins one. Its inputs belong to it, except those of a
    prefetch, and of a map with several threads: one more thread pulls them while these work.
    """
    own: dict[Key, int] = {}
    inner: dict[Key, int] = {}
    count = 0
    for key in sorted(totals.sums):
        row, name = totals.sums[key], key[-1][1]
        prefetches = family(name) == "Prefetch"
        if row.threads or prefetches or key[:-1] not in inner:
            count += 1
            own[key] = count
        else:
            own[key] = inner[key[:-1]]
        inner[key] = own[key]
        if prefetches or (row.parallelism > 1 and family(name) != "Interleave"):
            count += 1
            inner[key] = count
    return own
