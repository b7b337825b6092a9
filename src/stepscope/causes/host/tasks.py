"""Tasks: what the job does repeatedly, each with its exact count, its times, its outliers and its trend.

A task is all calls of one meaning in one process: a ``Session.run`` by what the user fetched, a tf.function by its
definition, a Keras loop by the line that calls it, a compiled Keras function, an eager call of a model, a user span. In
a loop that only infers, the call that serves it is a request.

Counts are exact. In gaps (``derive.steps.gaps``) calls are counted by kind, and shared out by what was called just
before. A fast job's calls are not all recorded one by one: of ``Flag.THINNED`` records each stands for
itself and for its share of the COUNTS beside it, and so they weigh in the quantiles.

Serves the report's table of tasks.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.host import request_classes
from stepscope.causes.job import purpose
from stepscope.derive import kinds
from stepscope.derive.steps import gaps
from stepscope.derive.steps.candidate import TRAIN_ROLES
from stepscope.derive.steps.steps import names_of
from stepscope.model.log.events import Name
from stepscope.model.report.task import Task, TaskPart
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView
    from stepscope.model.report.record_kinds import TaskKind
    from stepscope.model.session.session import Worker
    from stepscope.tables.place import Place
    from stepscope.tables.records import F64, I64, Bool, RecordTable

KINDS = {kind: about.task for kind, about in kinds.KINDS.items() if about.task}
"""What each kind of records that is a task is called."""
_REQUESTS = frozenset(kinds_with(Trait.TASK))
MAX_TASKS = 1_000
WARM_FACTOR = 3.0
"""First calls of more than this many medians are warm-up, and say nothing about the calls that were not timed. The same
holds for steps (``step_finder.SLOW_FACTOR``)."""
FENCE = 3.0
"""Outer fence, in interquartile ranges above the third quartile. Source: Tukey, Exploratory Data Analysis, 1977."""
OUTLIER_FACTOR = 2.0
"""An outlier takes at least this many medians: if calls hardly vary, the fence alone is too close."""
TREND_PARTS = 20
MIN_TREND_CALLS = 100
"""Five calls per part: a median of fewer is unreliable."""
TREND_Z = 2.58
"""Two-sided 1 % of the normal distribution."""
MIN_TREND_RATIO = 0.05
"""A smaller change counts as steady: clocks of processors alone drift by some percent."""


class _Calls(Struct, frozen=True, kw_only=True):
    """All calls of one task: records of their own, and counted ones. Shapes: [record] and [COUNTS record]."""

    starts: I64
    durs: I64
    flags: I64
    thinned: I64
    """1 if the record also stands for others."""
    counted: I64
    counted_starts: I64
    counted_ns: int
    traced: Bool
    """Whether a function was traced in it."""
    skipped: int
    """Number of calls in gaps: they were counted, not timed."""


def build(view: SessionView) -> tuple[Task, ...]:
    """The tasks of all processes, by total time."""
    requests = _request_names(view)
    tasks = [task for worker in view.session.workers for task in _of_worker(view, worker, requests)]
    return tuple(sorted(tasks, key=lambda t: (-t.total_ns, t.name))[:MAX_TASKS])


def _of_worker(view: SessionView, worker: Worker, requests: set[int]) -> list[Task]:
    names, records = names_of(worker), worker.with_gaps()
    counts = records.kind == Kind.COUNTS
    stands_for = np.where(counts, records.flags >> 8, records.kind)
    mine = np.flatnonzero(np.isin(stands_for, list(KINDS)))
    if len(mine) == 0:
        return []
    pairs, group_of = np.unique(stands_for[mine] * _NAMES + records.name[mine], return_inverse=True)
    meanings: dict[tuple[Kind, _Meaning], list[int]] = {}
    for index, pair in enumerate(pairs.tolist()):
        number, name = divmod(pair, _NAMES)
        meanings.setdefault((Kind(number), _meaning(Kind(number), names.get(name))), []).append(index)
    task_of = np.empty(len(pairs), np.int64)
    for task, indexes in enumerate(meanings.values()):
        task_of[indexes] = task
    task_of_row = task_of[group_of]
    order = np.argsort(task_of_row, kind="stable")
    bounds = np.searchsorted(task_of_row[order], np.arange(len(meanings) + 1))
    found = []
    for task, key in enumerate(meanings):
        rows = mine[order[bounds[task] : bounds[task + 1]]]
        used = _uses(records, rows)
        top = names.get(max(used, key=lambda n: used[n]), Name(id=0, text="step"))
        asked = view.worker is not None and view.worker.info.key == worker.info.key and not requests.isdisjoint(used)
        kind: TaskKind = "request" if asked else KINDS[key[0]]
        recorded = rows[worker.gaps.row_of(int(key[0]), records.start_ns[rows]) >= 0]  # and counted there as well
        again = sum(_uses(records, recorded).values())
        calls = _calls(records, rows, gaps.share(records, worker.gaps, key[0], rows) - again)
        found.append(_task(view, worker, kind, top, calls, _added(names, used)))
    return found


_Meaning = tuple[str, str, int]
_NAMES = 1 << 32
"""Names are 32-bit ids."""


def _meaning(kind: Kind, name: Name | None) -> _Meaning:
    """The key that two names of one kind share if they are the same task."""
    if name is None:
        return ("", "", 0)
    if kind == Kind.FUNCTION:
        return (name.text, name.file, name.line)
    if kind == Kind.LOOP:
        return (name.role, name.call_file, name.call_line)
    return (name.text, "", 0)


def _uses(records: RecordTable, rows: I64) -> dict[int, int]:
    """Calls by id of their name."""
    calls = np.where(records.kind[rows] == Kind.COUNTS, records.arg[rows], 1)
    ids, at = np.unique(records.name[rows], return_inverse=True)
    return dict(zip(ids.tolist(), np.bincount(at, weights=calls).astype(np.int64).tolist(), strict=True))


def _calls(records: RecordTable, rows: I64, skipped: int) -> _Calls:
    """Split records and counted calls."""
    counted = rows[records.kind[rows] == Kind.COUNTS]
    alone = rows[records.kind[rows] != Kind.COUNTS]
    return _Calls(
        starts=records.start_ns[alone],
        durs=records.dur_ns[alone],
        flags=records.flags[alone],
        thinned=(records.flags[alone] & Flag.THINNED != 0).astype(np.int64),
        traced=(records.flags[alone] & Flag.TRACED) != 0,
        counted=records.arg[counted],
        counted_starts=records.start_ns[counted],
        counted_ns=int(records.dur_ns[counted].sum()),
        skipped=skipped,
    )


def _added(names: dict[int, Name], used: dict[int, int]) -> tuple[TaskPart, ...]:
    """Additional fetches of hooks, most often first."""
    parts: Counter[str] = Counter()
    for name, calls in used.items():
        for text in names[name].added if name in names else ():
            parts[text] += calls
    return tuple(TaskPart(text=text, count=count) for text, count in parts.most_common())


def _task(
    view: SessionView,
    worker: Worker,
    kind: TaskKind,
    name: Name,
    calls: _Calls,
    added: tuple[TaskPart, ...],
) -> Task:
    timed = len(calls.durs)
    counted = int(calls.counted.sum())
    seen = timed + counted
    count = seen + calls.skipped
    known = int(calls.durs.sum()) + calls.counted_ns
    weights = _weights(calls, counted)
    usual = _usual_ns(calls, weights)
    total = known + round(calls.skipped * usual)
    starts = np.concatenate([calls.starts, calls.counted_starts])
    ends = np.concatenate([calls.starts + calls.durs, calls.counted_starts])
    first, last = int(starts.min()), int(ends.max())
    p50, p75, p25, p95, p99 = _quantiles(calls.durs, weights, (0.5, 0.75, 0.25, 0.95, 0.99))
    outlier = np.maximum(OUTLIER_FACTOR * p50, p75 + FENCE * (p75 - p25))
    return Task(
        kind=kind,
        name=name.text or name.role,
        pid=worker.info.pid,
        count=count,
        exact=worker.info.lost_records == 0 and (calls.skipped == 0 or kind == "Keras function"),
        timed=timed,
        first_ns=first,
        last_ns=last,
        rate_per_s=count * 1e9 / (last - first) if count > 1 and last > first else None,
        total_ns=total,
        mean_ns=total // max(1, count),
        usual_ns=round(usual),
        p50_ns=int(p50),
        p95_ns=int(p95),
        p99_ns=int(p99),
        max_ns=int(calls.durs.max()) if timed else 0,
        outliers=int((calls.durs > outlier).sum()),
        trend_ratio=_trend(calls.starts, calls.durs),
        where=_place(view, name),
        slow_first=request_classes.slow_first(calls.starts, calls.durs, WARM_FACTOR) if timed else 0,
        first_call_ns=int(calls.durs[np.argmin(calls.starts)]) if timed else 0,
        classes=() if counted or calls.skipped else request_classes.build(worker, calls),
        added=added,
    )


def _place(view: SessionView, name: Name) -> Place | None:
    if name.file and (name.own or not name.call_file):
        return view.place(name.file, name.line, name.end_line, name.text)
    return view.place(name.call_file, name.call_line, function=name.call_function) if name.call_file else None


def _usual_ns(calls: _Calls, weights: F64) -> float:
    """Mean of a call once the task is under way: it stands for the calls that were not timed.

    Calls that trace, and the unbroken run of slow calls at the beginning of the task, are left out.
    """
    if not len(calls.durs):
        return calls.counted_ns / max(1, int(calls.counted.sum()))
    order = np.argsort(calls.starts, kind="stable")
    durs, weights, traced = calls.durs[order], weights[order], calls.traced[order]
    (median,) = _quantiles(durs, weights, (0.5,))
    warm = np.cumsum(durs <= WARM_FACTOR * median) == 0
    settled = ~(warm | traced)
    if not settled.any():
        return float(median)
    counted = int(calls.counted.sum())
    return float((int(durs[settled].sum()) + calls.counted_ns) / (int(settled.sum()) + counted))


def _weights(calls: _Calls, counted: int) -> F64:
    """Number of calls for which each record stands. float64[record]."""
    thinned = int(calls.thinned.sum())
    each = counted / thinned if thinned else 0.0
    return np.asarray(1.0 + each * calls.thinned, np.float64)


def _quantiles(durs: I64, weights: F64, wanted: tuple[float, ...]) -> F64:
    """Weighted quantiles: the shortest time that so large a share of the calls does not exceed."""
    if len(durs) == 0:
        return np.zeros(len(wanted))
    order = np.argsort(durs, kind="stable")
    reached = np.cumsum(weights[order])
    at = np.searchsorted(reached, np.array(wanted) * reached[-1] * (1 - 1e-12))
    values: F64 = durs[order][np.minimum(at, len(durs) - 1)].astype(np.float64)
    return values


def _trend(starts: I64, durs: I64) -> float | None:
    """Change of the call time over the run: Theil and Sen's slope of the medians of twenty parts of equally many calls,
    0 where Mann and Kendall's test at 1 % sees none.

    Source: Sen, J. Am. Stat. Assoc. 63 (1968); Mann, Econometrica 13 (1945). Cost: O(n).
    """
    if len(durs) < MIN_TREND_CALLS:
        return None
    rows = np.array_split(np.argsort(starts, kind="stable"), TREND_PARTS)
    medians = np.array([np.median(durs[part]) for part in rows])
    times = np.array([np.median(starts[part]) for part in rows])
    first, second = np.triu_indices(TREND_PARTS, 1)
    rises = medians[second] - medians[first]
    score = float(np.sign(rises).sum())
    spread = math.sqrt(TREND_PARTS * (TREND_PARTS - 1) * (2 * TREND_PARTS + 5) / 18)
    middle, apart = float(np.median(medians)), times[second] - times[first]
    if abs(score) <= TREND_Z * spread or middle <= 0 or not (apart > 0).all():
        return 0.0
    change = float(np.median(rises / apart)) * float(times[-1] - times[0]) / middle
    return change if abs(change) >= MIN_TREND_RATIO else 0.0


def _request_names(view: SessionView) -> set[int]:
    """Names of the call that serves an inference-only loop; none if anything in the process trains."""
    steps = view.steps
    if steps is None or steps.call is None:
        return set()
    worker = steps.worker
    if bool((worker.records.kind == Kind.APPLY).any()) or view.get(purpose.updating_functions):
        return set()
    if any(n.role in TRAIN_ROLES for n in view.names.values()):
        return set()
    if steps.kind == Kind.LOOP and steps.call.role in {"predict", "predict_on_batch"}:
        return _alike(view, steps.call)
    return _alike(view, steps.call) if steps.kind in _REQUESTS else set()


def _alike(view: SessionView, call: Name) -> set[int]:
    return {n.id for n in view.names.values() if (n.text, n.file, n.line) == (call.text, call.file, call.line)}
