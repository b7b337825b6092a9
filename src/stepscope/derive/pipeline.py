"""The input pipeline: how long steps wait for it, and which stage is the slow one.

tf.data keeps a live model of every iterator (TensorFlow >= 2.17): the gaps between two GetNext calls, and the self
time of every stage. Over the last m executions the input wait is the wall time from the first of their starts to the
last minus the m gaps, exact also where GetNext is an op inside a compiled step. Where the loop pulls batches from
Python, the NEXT records say the wait themselves and the model only says which stage it is.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive import hot
from stepscope.derive.steps import names_of
from stepscope.formats import iterator_model
from stepscope.model.events import DatasetMade, IteratorMade, IteratorModel, PyFunctionMade
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.derive.steps import Steps
    from stepscope.formats.iterator_model import IteratorModelData, Node
    from stepscope.model.events import Name
    from stepscope.model.records import F64, I64
    from stepscope.model.session import Worker

INJECTED = frozenset({"Root", "Model", "MaxIntraOpParallelism", "PrivateThreadPool", "Options"})
"""Nodes that are no stage of the user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitWindow:
    """Input wait inside of a compiled step, over consecutive executions."""

    start_ns: int
    end_ns: int
    executions: int
    wait_ns: float
    gaps_ns: tuple[int, ...] = ()
    """The gaps themselves: what the consumer did between two batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a pipeline. Times are means per batch that the consumer got."""

    name: str
    """tf.data's name after its own rewriting: Map, ParallelMapV2, MapAndBatch, Generator ..."""
    self_ns: float
    """Self time per batch, summed over the stage's threads."""
    parallelism: float
    elements: float
    """Elements per batch."""
    datasets: tuple[DatasetMade, ...] = ()
    """The constructions that it came from; two for a fused stage, none for one that tf.data put in."""
    buffered: float = 0.0

    @property
    def latency_ns(self) -> float:
        """The least time that the stage needs for a batch: self time over its parallelism."""
        return self.self_ns / max(1.0, self.parallelism)

    @property
    def sequential(self) -> bool:
        """It runs on one thread, and nobody asked for more."""
        asked = any(d.parallel != 0 or "Parallel" in d.cls for d in self.datasets)
        return self.parallelism <= 1 and not asked

    @property
    def element_ns(self) -> float:
        """Self time per element of the stage."""
        return self.self_ns / self.elements if self.elements else self.self_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class InsideFunction:
    """The user's innermost function that most samples of some threads fall on."""

    file: str
    function: str
    lines: tuple[int, ...]
    """The most sampled first."""
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFunction:
    """User Python that runs inside of the input pipeline."""

    name: Name
    calls: int
    total_ns: int
    """Summed over threads, within the steady steps."""
    recorded_ns: int
    """The part of it that stands in records of its own; the rest was counted."""
    made: PyFunctionMade | None
    step_thread: bool
    """It runs on the step's own thread."""
    inside: InsideFunction | None = None
    """Where its time goes, by the stack samples of its threads."""

    @property
    def role(self) -> str:
        """py_function, numpy_function, generator or pydataset."""
        return self.name.role


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """What is known about the input of the steps."""

    windows: tuple[WaitWindow, ...] = ()
    stages: tuple[Stage, ...] = ()
    functions: tuple[PythonFunction, ...] = ()
    datasets: tuple[DatasetMade, ...] = ()
    """Every construction whose pipeline fed the steps, from the consumer to the source."""
    iterators: tuple[IteratorMade, ...] = ()
    error: str = ""
    """Why tf.data's model could not be read: "no-op" (TensorFlow < 2.17), "no-model" (autotune off), "" if it was or
    was not asked for."""
    diagnostics: tuple[str, ...] = field(default=())

    @property
    def wait_ns_per_execution(self) -> float | None:
        """Mean input wait of one execution, None where the model does not say."""
        executions = sum(w.executions for w in self.windows)
        return sum(w.wait_ns for w in self.windows) / executions if executions else None

    def wait_error_ns(self) -> float:
        """Standard error of ``wait_ns_per_execution`` from the scatter between windows; 0 for fewer than three."""
        if len(self.windows) < 3:  # noqa: PLR2004 - no scatter to speak of
            return 0.0
        means = np.array([w.wait_ns / w.executions for w in self.windows])
        weights = np.array([w.executions for w in self.windows], float)
        mean = float(np.average(means, weights=weights))
        variance = float(np.average((means - mean) ** 2, weights=weights))
        return float(np.sqrt(variance / (len(means) - 1)))

    def disturbed_ns(self) -> float:
        """How much longer the mean gap is than the undisturbed one (the 10th percentile), per execution.

        User Python in the pipeline makes the consumer's own Python wait for the interpreter lock: removing it saves
        this time besides the wait.
        """
        gaps = np.array([gap for w in self.windows for gap in w.gaps_ns])
        executions = sum(w.executions for w in self.windows)
        if len(gaps) == 0 or executions == 0:
            return 0.0
        return float(gaps.mean() - np.percentile(gaps, 10)) * len(gaps) / executions

    @property
    def slowest(self) -> Stage | None:
        """The stage that limits the pipeline: the largest latency per batch."""
        return max(self.stages, key=lambda s: s.latency_ns, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    at: int
    iterator: int
    executions: int
    data: IteratorModelData

    @property
    def elements(self) -> int:
        root = self.data.nodes.get(self.data.output)
        return root.num_elements if root else 0


def build(steps: Steps) -> Pipeline:
    """Everything about the input of ``steps``."""
    worker = steps.worker
    errors = [m.error for m in worker.all(IteratorModel) if m.error]
    reads, broken = _reads(worker)
    datasets = {d.id: d for d in worker.all(DatasetMade)}
    iterators = {i.id: i for i in worker.all(IteratorMade)}
    pulled = _pulled_iterators(steps)
    used = (pulled | _read_iterators(steps, reads)) & (set(iterators) | {r.iterator for r in reads})
    reads = [r for r in reads if r.iterator in used]
    chain = _upstream([iterators[i].dataset for i in used if i in iterators], datasets)
    return Pipeline(
        windows=tuple(_windows(steps, [r for r in reads if r.iterator not in pulled])),
        stages=_stages(steps, reads, iterators, datasets),
        functions=_functions(steps),
        datasets=tuple(chain),
        iterators=tuple(iterators[i] for i in sorted(used) if i in iterators),
        error=errors[0] if errors and not reads else "",
        diagnostics=tuple(broken),
    )


def _reads(worker: Worker) -> tuple[list[_Read], list[str]]:
    reads, broken = [], []
    for event in worker.all(IteratorModel):
        if not event.proto:
            continue
        try:
            data = iterator_model.parse(base64.b64decode(event.proto, validate=True))
        except (ValueError, iterator_model.ProtoError) as error:  # ValueError: not base64
            broken.append(f"a read of tf.data's model could not be used: {error}")
            continue
        reads.append(_Read(at=event.at, iterator=event.iterator, executions=event.executions, data=data))
    return sorted(reads, key=lambda r: r.at), broken


def _pulled_iterators(steps: Steps) -> set[int]:
    """Iterators that the step thread pulled from in Python while the steady steps lasted."""
    lo, hi = steps.windows
    if len(lo) == 0:
        return set()
    records = steps.worker.records
    pulled = (records.kind == Kind.NEXT) & (records.thread == steps.thread)
    pulled &= (records.start_ns >= lo[0]) & (records.start_ns <= hi[-1])
    return {int(i) for i in np.unique(records.arg[pulled])}


def _read_iterators(steps: Steps, reads: list[_Read]) -> set[int]:
    """Iterators whose model was read while the steady steps lasted: the agent reads those that calls consume."""
    lo, hi = steps.windows
    return {r.iterator for r in reads if len(lo) and lo[0] <= r.at <= hi[-1] + _GRACE_NS}


_GRACE_NS = 2_000_000_000
"""The read at the end of fit comes after the last step."""


def _windows(steps: Steps, reads: list[_Read]) -> Iterator[WaitWindow]:
    """Non-overlapping windows of consecutive executions, one per read."""
    if steps.steady_count == 0 or steps.kind not in {Kind.EXECUTION, Kind.FUNCTION}:
        return
    starts = steps.starts
    reached: dict[int, int] = {}
    for read in reads:
        last = int(np.searchsorted(starts, read.at, side="right")) - 1
        gaps = read.data.gaps_us[-max(0, read.elements - 1) :] if read.elements > 1 else ()
        per = _per_execution(steps, read)
        known = len(gaps) // per if per <= len(gaps) else min(1, len(gaps))
        executions = min(known, last - reached.get(read.iterator, -1))
        first = last - executions
        if first < 0 or executions < 1:
            continue
        steady = np.flatnonzero(steps.steady[first:last])
        if len(steady) == 0:
            continue
        first += int(steady[0])
        executions = last - first
        reached[read.iterator] = last
        inner = min(per, len(gaps)) - 1
        used = gaps[max(0, len(gaps) - inner - executions * per) : len(gaps) - inner]
        wall = int(starts[last] - starts[first])
        worked = 1000.0 * sum(used) * executions * per / len(used)
        yield WaitWindow(
            start_ns=int(starts[first]),
            end_ns=int(starts[last]),
            executions=executions,
            wait_ns=min(max(0.0, wall - worked), wall),
            gaps_ns=tuple(1000 * gap for gap in used),
        )


def _per_execution(steps: Steps, read: _Read) -> int:
    """Batches that one execution takes: Keras' steps_per_execution, or those of a loop inside of a function."""
    if steps.kind == Kind.EXECUTION:
        records = steps.worker.records
        mine = (records.kind == steps.kind) & (records.thread == steps.thread)
        return max(1, int(np.median(records.arg[mine])))
    return max(1, round(read.elements / read.executions)) if read.executions > 0 else 1


def _stages(
    steps: Steps, reads: list[_Read], iterators: dict[int, IteratorMade], datasets: dict[int, DatasetMade]
) -> tuple[Stage, ...]:
    """Stages of the iterator that delivered most batches, summed over iterators of the same shape (epochs)."""
    by_iterator: dict[int, list[_Read]] = {}
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

    def add(self, first: _Read | None, last: _Read, path: Sequence[Node]) -> None:
        """Count what happened between two reads; from the iterator's start when there is only one."""
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
        """Whose elements a stage works on: its own, or its inputs' where it batches as it maps."""
        inputs = [nodes[i] for i in node.inputs if i in nodes]
        return inputs if _family(node.name) == "MapAndBatch" and inputs else [node]


def _ends_of_series(series: list[_Read], steps: Steps) -> tuple[_Read | None, _Read]:
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


def _upstream(roots: Sequence[int], datasets: dict[int, DatasetMade]) -> list[DatasetMade]:
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
    """Which constructions each node came from. Both trees keep their order; tf.data only fuses, drops and inserts."""
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
    """The nearest construction of a family, going up through single inputs."""
    while made is not None:
        if _family(made.cls) == family:
            return made
        if len(made.inputs) != 1:
            return None
        made = datasets.get(made.inputs[0])
    return None


def _functions(steps: Steps) -> tuple[PythonFunction, ...]:
    """User Python that ran on behalf of the input while the steady steps lasted, the longest first."""
    records = steps.worker.records
    lo, hi = steps.windows
    if len(lo) == 0:
        return ()
    names = names_of(steps.worker)
    made = {m.name: m for m in steps.worker.all(PyFunctionMade)}
    starts, durs = records.start_ns, records.dur_ns
    mine = (records.kind == Kind.PYFUNC) & (starts >= lo[0]) & (starts < hi[-1])
    found = []
    counted = (records.kind == Kind.COUNTS) & (records.flags >> 8 == Kind.PYFUNC)
    counted &= (starts >= lo[0]) & (starts < hi[-1])
    for name in np.unique(records.name[mine]):
        if int(name) not in names:
            continue
        rows = mine & (records.name == name)
        short = counted & (records.name == name)
        found.append(
            PythonFunction(
                name=names[int(name)],
                calls=int(rows.sum() + records.arg[short].sum()),
                total_ns=int(durs[rows].sum() + durs[short].sum()),
                recorded_ns=int(durs[rows].sum()),
                made=made.get(int(name)),
                step_thread=bool((records.thread[rows] == steps.thread).all()),
                inside=_inside(steps, [int(t) for t in np.unique(records.thread[rows]) if t != steps.thread]),
            )
        )
    return tuple(sorted(found, key=lambda f: -f.total_ns))


MIN_SAMPLES = 5
"""Fewer say nothing about lines."""


def _inside(steps: Steps, threads: Sequence[int]) -> InsideFunction | None:
    """Where the user's code on these threads spends its time while the steady steps last."""
    lo, hi = steps.windows
    weights: Counter[tuple[str, str]] = Counter()
    lines: dict[tuple[str, str], Counter[int]] = {}
    for sample in hot.thread_samples(steps.worker, threads):
        culprit = sample.culprit
        if culprit is None or culprit.line <= 0 or not lo[0] <= sample.at < hi[-1]:
            continue
        key = (culprit.file, culprit.function)
        weights[key] += sample.weight_ns
        lines.setdefault(key, Counter())[culprit.line] += 1
    if not weights:
        return None
    key = weights.most_common(1)[0][0]
    samples = lines[key].total()
    if samples < MIN_SAMPLES:
        return None
    return InsideFunction(
        file=key[0], function=key[1], lines=tuple(line for line, _ in lines[key].most_common()), samples=samples
    )


def python_spans(steps: Steps, functions: Sequence[PythonFunction]) -> tuple[I64, I64]:
    """Starts and ends of the calls of some Python functions, on all threads."""
    records = steps.worker.records
    mine = (records.kind == Kind.PYFUNC) & np.isin(records.name, [f.name.id for f in functions])
    return records.start_ns[mine], records.start_ns[mine] + records.dur_ns[mine]
