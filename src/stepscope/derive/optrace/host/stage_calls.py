"""Calls of tf.data's stages in an op trace, and which work belongs to which stage.

Every call of a stage is an event (``Iterator::Root::Prefetch::Map``) with the number of its iterator and of the calling
one. A stage with threads of its own (prefetch, parallel map) shows its work there as ``...Produce`` events and as runs
of its function on other threads; its own calls then only wait for results and hand them over.

Source: tensorflow/core/framework/dataset.h (``DatasetBaseIterator``) and core/kernels/data, TensorFlow 2.4 to 2.21.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.host import thread_pieces
from stepscope.derive.optrace.host.activity import CAPTURED, RUN_ID, Activity, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.host.activity import Domain
    from stepscope.derive.optrace.host.batch_waits import Waits
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64, Bool

Path = tuple[str, ...]

_PREFIX = "Iterator::"
_PRODUCE = "Produce"
_INDEX = re.compile(r"\[\d+\]$")
_MANY = re.compile(r"(FlatMap|Interleave)(V\d+)?$")
"""Stages that make an iterator for each element of their input: the index distinguishes elements, not inputs."""
_WORK = (Activity.OP, Activity.PYTHON, Activity.COLLECTIVE, Activity.COPY)


class Function(Struct, frozen=True, kw_only=True):
    """The runs of a stage's function. Sums over all runs; a run lasts as long as its executor works."""

    runs: int
    run_ns: int
    work_ns: int
    """Time in the executor: its ops, and user Python. The rest is the cost of calling the function."""
    types: Mapping[str, int]
    """Time by type of op, longest first. Cheap ops are not recorded individually."""
    at_a_time: float
    """Mean number of runs at a time, while any ran."""

    @property
    def around_ratio(self) -> float:
        """Share of the runs' time in which none of their ops ran."""
        return max(0.0, 1 - self.work_ns / self.run_ns) if self.run_ns else 0.0


class PipelineCalls(Struct, frozen=True, kw_only=True):
    """The calls of the pipeline that fed the steps. Shapes: [call], rows rising."""

    row: I64
    """Of the trace's events."""
    dur_ns: I64
    path: I64
    """Index into ``paths``."""
    parallelism: I64
    """Parallelism of each call; -1 if unknown."""
    buffered: I64
    paths: tuple[Path, ...]
    datasets: Mapping[Path, str]
    batches: int
    """Batches taken by the steps."""

    def rows_of(self, path: Path) -> I64:
        """Positions of the calls of one stage."""
        return np.flatnonzero(self.path == self.paths.index(path))


class WorkByStage(Struct, frozen=True, kw_only=True):
    """Work by stage. Times in ns, summed over threads."""

    self_ns: Mapping[Path, int]
    parallel: frozenset[Path]
    """Stages that work on threads of their own."""
    functions: Mapping[Path, Function]


def above(path: Path) -> Path:
    """The stage that calls the one at ``path``; () for the root."""
    return (*path[:-2], _INDEX.sub("", path[-2])) if len(path) > 1 else ()


def _path(name: str) -> Path:
    """``Iterator::Root::Zip[1]::FlatMap[3]::TFRecord`` as (Root, Zip[1], FlatMap, TFRecord)."""
    parts = name.removeprefix(_PREFIX).split("::")
    return tuple(_INDEX.sub("", p) if _MANY.search(_INDEX.sub("", p)) else p for p in parts)


def build(trace: OpTrace, domain: Domain, waits: Waits, steps: Intervals) -> PipelineCalls | None:
    """The calls of the pipeline that fed the steps; None if none was recorded.

    Of several pipelines (training and validation) it is the one that delivered most batches within the steps, if any
    did. New epochs make new iterators of the same dataset and shape, which are counted together.
    """
    rows = _named(trace, domain, lambda name: name.startswith(_PREFIX))
    if not len(rows):
        return None
    ids, first, which = np.unique(trace.ints_at(RUN_ID, rows, missing=0), return_index=True, return_inverse=True)
    callers = trace.ints_at("parent_id", rows, missing=0)[first]
    path_of = [_path(trace.strings[i]) for i in trace.names()[rows[first]].tolist()]
    root = np.array(_roots(ids.tolist(), callers.tolist()), np.int64)
    shapes: dict[int, set[Path]] = {}
    for number, path in zip(root.tolist(), path_of, strict=True):
        shapes.setdefault(number, set()).add(path)
    root_of = _names_of(trace, rows[first])
    shape_of = {number: (frozenset(paths), root_of[number]) for number, paths in shapes.items()}
    taken = _taken(domain, waits, rows, which, root)
    if not len(taken):
        return None
    begun = trace.events.start_ns[rows[taken]]
    within = taken[intervals.overlapping(steps, begun, begun + 1)]
    fed = Counter(shape_of[number] for number in which[within if len(within) else taken].tolist()).most_common(1)[0][0]
    shape, _ = fed
    paths = tuple(sorted(shape))
    position = [paths.index(p) if shape_of[r] == fed else -1 for p, r in zip(path_of, root.tolist(), strict=True)]
    stage = np.array(position, np.int64)[which]
    mine = stage >= 0
    rows = rows[mine]
    return PipelineCalls(
        row=rows,
        dur_ns=trace.events.dur_ns[rows],
        path=stage[mine],
        parallelism=trace.ints_at("parallelism", rows),
        buffered=trace.ints_at("buffered_elements", rows),
        paths=paths,
        datasets=_datasets(trace, rows, stage[mine], paths),
        batches=sum(shape_of[number] == fed for number in which[taken].tolist()),
    )


def _named(trace: OpTrace, domain: Domain, holds: Callable[[str], bool]) -> I64:
    """Host events by their names, rising."""
    wanted = np.fromiter((holds(text) for text in trace.strings), np.bool_, len(trace.strings))
    return np.flatnonzero(wanted[trace.names()] & domain.host)


def _roots(ids: list[int], callers: list[int]) -> list[int]:
    """Position of the iterator that the consumer calls, for each iterator."""
    position = {number: i for i, number in enumerate(ids)}
    found = []
    for i in range(len(ids)):
        at, seen = i, {i}
        while (up := position.get(callers[at])) is not None and up not in seen:
            at = up
            seen.add(at)
        found.append(at)
    return found


def _taken(domain: Domain, waits: Waits, rows: I64, which: I64, root: I64) -> I64:
    """The calls in which steps took a batch, as positions in ``rows``; if no taker was recorded (a device's own buffer
    takes them), all calls of roots.
    """
    at_root = root[which] == which
    asked = np.zeros(len(domain.parent), np.bool_)
    asked[waits.event] = True
    inside = at_root & (nearest(domain.parent, asked, rows) >= 0)
    return np.flatnonzero(inside if inside.any() else at_root)


def _names_of(trace: OpTrace, rows: I64) -> list[str]:
    """Names of the datasets of some calls: those of training and validation differ in their numbers."""
    codes, texts = trace.texts("name")
    return [texts[code] if code >= 0 else "" for code in codes[rows].tolist()]


def _datasets(trace: OpTrace, rows: I64, path: I64, paths: tuple[Path, ...]) -> dict[Path, str]:
    codes, texts = trace.texts("name")
    _, first = np.unique(path, return_index=True)
    return {paths[path[i]]: texts[code] for i in first.tolist() if (code := int(codes[rows[i]])) >= 0}


def work(trace: OpTrace, domain: Domain, calls: PipelineCalls) -> WorkByStage:
    """Working time of each stage."""
    events = trace.events
    produced = _named(trace, domain, lambda name: name.endswith(_PRODUCE) and "/" not in name)
    owner = np.full(len(events), -1, np.int64)
    """Stage to which an event's own time belongs: an index into ``calls.paths``."""
    owner[calls.row] = calls.path
    stage = owner >= 0
    stage[produced] = True
    owner[produced] = _makers(domain, calls, stage, produced)
    parallel = set(np.unique(owner[produced]).tolist()) - {-1}

    of_calls = np.zeros(len(events), np.bool_)
    of_calls[calls.row] = True
    both = np.concatenate([calls.row, produced])
    around = nearest(domain.parent, stage, both)
    own = events.dur_ns.copy()
    inner = around >= 0
    np.subtract.at(own, around[inner], events.dur_ns[both[inner]])

    runs = _runs(trace, domain, stage, owner)
    parallel |= set(runs.stage[runs.later].tolist())
    self_ns = dict.fromkeys(calls.paths, 0)
    for i, path in enumerate(calls.paths):
        rows = produced[owner[produced] == i] if i in parallel else calls.row[calls.path == i]
        self_ns[path] = int(np.maximum(own[rows], 0).sum())
        self_ns[path] += int(runs.after_ns[(runs.stage == i) & runs.later].sum()) if i in parallel else 0
    return WorkByStage(
        self_ns=self_ns,
        parallel=frozenset(calls.paths[i] for i in parallel),
        functions=_functions(trace, domain, runs, calls.paths),
    )


def _makers(domain: Domain, calls: PipelineCalls, stage: Bool, produced: I64) -> I64:
    """The stage for which each ``...Produce`` works: the caller of the stages inside, else the stage around it."""
    position = {path: i for i, path in enumerate(calls.paths)}
    caller = np.array([position.get(above(path), -1) for path in calls.paths], np.int64)
    maker = np.full(len(stage), -1, np.int64)
    inside = nearest(domain.parent, stage, calls.row)
    known = inside >= 0
    maker[inside[known]] = caller[calls.path[known]]
    result = maker[produced]
    path = np.full(len(stage), -1, np.int64)
    path[calls.row] = calls.path
    around = nearest(domain.parent, path >= 0, produced)
    lone = (result < 0) & (around >= 0)
    result[lone] = path[around[lone]]
    return result


class _Runs(Struct, frozen=True, kw_only=True):
    """Runs of stages' functions. Shapes: [run]."""

    number: I64
    stage: I64
    later: Bool
    """Whether the run only started here and continued elsewhere."""
    start_ns: I64
    run_ns: I64
    after_ns: I64
    """Part of the run after the call that started it."""


def _runs(trace: OpTrace, domain: Domain, stage: Bool, owner: I64) -> _Runs:
    events = trace.events
    rows = _named(trace, domain, lambda name: name.startswith(CAPTURED))
    around = nearest(domain.parent, stage, rows)
    rows, around = rows[(around >= 0) & (domain.run[rows] != 0)], around[(around >= 0) & (domain.run[rows] != 0)]
    mine = owner[around] >= 0
    rows, around = rows[mine], around[mine]
    later_names = np.array([text.endswith("::RunAsync") for text in trace.strings], np.bool_)
    later = later_names[trace.names()[rows]]
    order = np.argsort(domain.run[rows], kind="stable")
    numbers = domain.run[rows][order]
    end = events.end_ns[rows].copy()
    done = np.array([text == "ExecutorDoneCallback" for text in trace.strings], np.bool_)
    working = np.flatnonzero((domain.run != 0) & domain.host & ~done[trace.names()])
    at = np.searchsorted(numbers, domain.run[working]) if len(numbers) else np.empty(0, np.int64)
    found = np.flatnonzero(at < len(numbers))
    found = found[numbers[at[found]] == domain.run[working[found]]]
    np.maximum.at(end, order[at[found]], events.end_ns[working[found]])
    whole = np.where(later, end, events.end_ns[rows])
    return _Runs(
        number=domain.run[rows],
        stage=owner[around],
        later=later,
        start_ns=events.start_ns[rows],
        run_ns=whole - events.start_ns[rows],
        after_ns=np.maximum(0, whole - events.end_ns[rows]),
    )


def _functions(trace: OpTrace, domain: Domain, runs: _Runs, paths: tuple[Path, ...]) -> dict[Path, Function]:
    """Composition of the runs of each stage."""
    order = np.argsort(runs.number, kind="stable")
    numbers = runs.number[order]
    rows = np.flatnonzero(domain.of_input & domain.host & np.isin(domain.run, numbers))
    process = np.array([text == "ExecutorState::Process" for text in trace.strings], np.bool_)[trace.names()]
    executed = rows[process[rows]]
    executed_stage = runs.stage[order[np.searchsorted(numbers, domain.run[executed])]]
    pieces = thread_pieces.build(trace, rows, domain.parent)
    pieces = pieces.take(np.isin(domain.activity[pieces.event], _WORK))
    stage = runs.stage[order[np.searchsorted(numbers, domain.run[pieces.event])]]
    dur = pieces.end_ns - pieces.start_ns
    kind = trace.metas.op_type[trace.events.meta[pieces.event]]
    found = {}
    for i in np.unique(runs.stage).tolist():
        theirs, its_runs = stage == i, runs.stage == i
        types: Counter[str] = Counter()
        for code in np.unique(kind[theirs]).tolist():
            types[trace.strings[code]] += int(dur[theirs & (kind == code)].sum())
        start_ns, run_ns = runs.start_ns[its_runs], runs.run_ns[its_runs]
        ran_ns = intervals.total(intervals.merge(start_ns, start_ns + run_ns))
        found[paths[i]] = Function(
            runs=int(its_runs.sum()),
            run_ns=int(run_ns.sum()),
            work_ns=int(max(trace.events.dur_ns[executed[executed_stage == i]].sum(), dur[theirs].sum())),
            types=dict(types.most_common()),
            at_a_time=float(run_ns.sum() / ran_ns) if ran_ns else 1.0,
        )
    return found
