"""Periodic stalls, counted in steps or in seconds, and what runs in them.

Each part of the step is examined separately, as in ``rising_step_time``: a shared machine delays the step's call at any
moment, while work that a program does every N steps stands out in its own part. Random stalls have intervals of any
length; an interval counts as regular if it is one, two or three times the median one, within a tenth. Of exponential
intervals one in five is, so requiring four of five gives an error of half a percent. Ends of epochs are left out: they
are intended.

Serves periodic_stall and utilisation_dips.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.machine.rivals import foreign, short_command
from stepscope.derive.numeric import intervals
from stepscope.derive.one_step import step_numbers
from stepscope.derive.python import stack_samples
from stepscope.derive.steps import calls, rare
from stepscope.derive.steps.anatomy import NAMED_BY
from stepscope.derive.steps.epochs import EPOCH_END
from stepscope.model.log.events import Name
from stepscope.model.report.components import COMPONENTS, ComponentName
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.steps.rare import Rare
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import F64, I64, Bool

MIN_STALLS = 5
MIN_REGULAR = 0.8
"""Share of the intervals that must be regular."""
TOLERANCE = 0.1
MAX_MULTIPLE = 3
MIN_STEP_SHARE = 0.5
"""A stall is longer than this share of the median step, and than ``NOISE_FACTOR`` times the noise of its part."""
NOISE_FACTOR = 6
MAX_STALLED_RATIO = 0.34
"""Whatever happens in more than every third step belongs to the step."""
_JOIN = 3
"""Stalled steps this close together are one stall."""
_SAME_SIZE = 0.4
"""Stalls of less than this share of the large ones are something else."""
_ENRICHED = 3.0
"""Code of another thread, or a neighbour, is named if it is this much more active in stalls than outside."""
_MIN_RIVAL_CORES = 0.3
_NOTICED = 0.02
"""Share of usual steps' time in a function from which they call it, too."""
_HALFWAY = 0.5
"""Code is in the stalls if its part of what they take beyond usual steps is at least halfway from its part of those to
all: where the machine interrupts the steps, the code is what it is in any step."""
MIN_EXPLAINED = 0.5
"""Share of the stalls' time from which another function, called every N steps (a validation), explains them."""


class Stalls(Struct, frozen=True, kw_only=True):
    """The periodic stalls of one component."""

    component: ComponentName
    count: int
    often: Rare | None
    """In steps; None: no two stalls without a gap between them."""
    period_ns: float
    """Median interval, in time."""
    by_time: bool
    """Whether the seconds between stalls vary less than the steps."""
    regular_ratio: float
    """Share of the intervals that are regular, in the better of the two units."""
    stall_ns: float
    """Length of one stall beyond the usual time."""
    excess_ns: float
    """Sum over all stalls."""
    first_steps: tuple[int, ...]
    """Step numbers at which stalls began."""
    name: Name | None
    spot: Spot | None
    """User code of the step's thread in the stalls."""
    statement: Spot | None
    """The line of the loop, or of what calls the loop's function, that leads to it."""
    thread_spot: Spot | None
    """User code of another thread that runs more in stalls than outside."""
    rival: str
    """A process that is busier in stalls than outside; "" for none."""
    samples: int


def build(view: StepsView) -> tuple[Stalls, ...]:
    """Components with periodic stalls, the largest excess first."""
    anatomy, steps = view.anatomy, view.steps
    if steps.steady_count < MIN_STALLS * 2:
        return ()
    step_ns = float(np.median(anatomy.per_step.sum(1)))
    usual = ~_epoch_ends(steps)[steps.steady]
    found = []
    for index, component in enumerate(COMPONENTS):
        stalls = _of_part(view, component, anatomy.per_step[:, index], step_ns, usual)
        if stalls is not None:
            found.append(stalls)
    return tuple(sorted(found, key=lambda s: -s.excess_ns))


def _epoch_ends(steps: Steps) -> Bool:
    """Steps in which a pass over the data ended or began, and the steps after them."""
    names = [n.id for n in steps.worker.all(Name) if n.hook == EPOCH_END]
    pulls = calls.of(steps, Kind.NEXT)
    ends = calls.of(steps, Kind.HOOK).named(names).starts, pulls.starts[pulls.flagged(Flag.END)]
    at = np.searchsorted(steps.starts, np.concatenate(ends), side="right") - 1
    result = np.zeros(len(steps), bool)
    for shift in (0, 1):
        result[np.clip(at + shift, 0, len(steps) - 1)] = True
    return result


def _of_part(view: StepsView, component: ComponentName, part: F64, step_ns: float, usual: Bool) -> Stalls | None:
    steps = view.steps
    level = float(np.median(part))
    noise = float(np.median(np.abs(part - level)))
    over = part - level
    long = over > max(MIN_STEP_SHARE * step_ns, NOISE_FACTOR * 1.48 * noise)
    stalled = usual & long
    where = np.flatnonzero(stalled)
    if len(where) < MIN_STALLS or len(where) > MAX_STALLED_RATIO * len(part):
        return None
    episodes = np.split(where, np.flatnonzero(np.diff(where) > _JOIN) + 1)
    sizes = np.array([float(over[e].sum()) for e in episodes])
    kept = [e for e, size in zip(episodes, sizes, strict=True) if size >= _SAME_SIZE * np.percentile(sizes, 90)]
    if len(kept) < MIN_STALLS:
        return None
    index = np.flatnonzero(steps.steady)
    first = index[[e[0] for e in kept]]
    distances = rare.apart(steps, first)
    by_step, step_spread = _regular(distances) if len(distances) >= MIN_STALLS - 1 else (0.0, 1.0)
    by_clock, time_spread = _regular(np.diff(steps.starts[first]))
    if max(by_step, by_clock) < MIN_REGULAR:
        return None
    by_time = by_clock > by_step or (by_clock == by_step and time_spread < step_spread)
    excess = float(sum(over[e].sum() for e in kept))
    inside = np.concatenate(kept)
    windows = steps.windows[0][inside], steps.windows[1][inside]
    long[inside] = False
    if component == "call" and _other_calls_ns(view, windows) >= MIN_EXPLAINED * excess:
        return None
    spot, samples, statement = _spot(view, component, windows, (steps.windows[0][long], steps.windows[1][long]))
    return Stalls(
        component=component,
        count=len(kept),
        often=rare.by_distances(distances / _multiples(distances), excess / len(kept)) if len(distances) else None,
        period_ns=float(np.median(np.diff(steps.starts[first]))),
        by_time=by_time,
        regular_ratio=max(by_step, by_clock),
        stall_ns=excess / len(kept),
        excess_ns=excess,
        first_steps=tuple(step_numbers.of(steps)[first].tolist()),
        name=_name(view, component, windows),
        spot=spot,
        statement=statement,
        thread_spot=_other_thread(view, windows),
        rival=_rival(view, windows),
        samples=samples,
    )


def _other_calls_ns(view: StepsView, windows: tuple[I64, I64]) -> int:
    """Time of calls that begin in the windows and are not the step's call."""
    steps = view.steps
    if steps.call is None:
        return 0
    others = [n.id for n in view.names.values() if n.text != steps.call.text]
    called = view.calls(*kinds_with(Trait.CALLED)).named(others)
    return intervals.total(called.where(_inside(called.starts, windows)).spans)


def _regular(intervals: I64) -> tuple[float, float]:
    """Share of the intervals that are a small multiple of the median one, and their deviation from it."""
    base = float(np.median(intervals))
    if base <= 0:
        return 0.0, 1.0
    apart = np.abs(intervals / base / _multiples(intervals) - 1)
    good = apart <= TOLERANCE
    return float(good.mean()), float(np.median(apart))


def _multiples(intervals: I64) -> F64:
    """How many of the median interval each is: between two stalls some may have been too small to see."""
    found: F64 = np.clip(np.rint(intervals / max(1.0, float(np.median(intervals)))), 1, MAX_MULTIPLE)
    return found


def _inside(at: I64, windows: tuple[I64, I64]) -> Bool:
    """Mask of the moments within the sorted, disjoint windows."""
    lo, hi = windows
    k = np.searchsorted(lo, at, side="right") - 1
    result: Bool = (k >= 0) & (at < hi[np.maximum(k, 0)])
    return result


def _name(view: StepsView, component: ComponentName, windows: tuple[I64, I64]) -> Name | None:
    """The name whose records take most of the stalls' time."""
    kinds = NAMED_BY.get(component)
    if kinds is None:
        return None
    called = view.calls(*kinds)
    called = called.where(_inside(called.starts, windows))
    spent: Counter[int] = Counter()
    for name, dur in zip(called.names, called.durations, strict=True):
        spent[int(name)] += int(dur)
    return view.names.get(spent.most_common(1)[0][0]) if spent else None


def _spot(
    view: StepsView, component: ComponentName, windows: tuple[I64, I64], others: tuple[I64, I64]
) -> tuple[Spot | None, int, Spot | None]:
    """The line of user code most sampled in the stalls, in that component, of the function that makes them longer than
    usual steps; None if it is as much in those. The number of samples there, and the statement that leads to it.

    A function that usual steps call, too, such as a layer of the model, is not what recurs: its caller is. Neither
    counts what ``others`` do: long steps that are none of the stalls, at the end of an epoch, may do the same.
    """
    at = np.array([s.at for s in view.samples], np.int64)
    if len(at) == 0:
        return None, 0, None
    left_out = _inside(at, others) if len(others[0]) else np.zeros(len(at), np.bool_)
    mine = [
        (sample, bool(inside))
        for sample, inside, out in zip(view.samples, _inside(at, windows), left_out, strict=True)
        if sample.component == component and sample.culprit is not None and not out
    ]
    often = _often([sample for sample, inside in mine if not inside])
    stalled: Counter[tuple[str, str]] = Counter()
    usual: Counter[tuple[str, str]] = Counter()
    lines: dict[tuple[str, str], Counter[tuple[int, Spot | None]]] = {}
    for sample, inside in mine:
        spot = _seldom(sample, often)
        key = (spot.file, spot.function)
        (stalled if inside else usual)[key] += sample.weight_ns
        if inside:
            lines.setdefault(key, Counter())[spot.line, view.statement_of(sample)] += 1
    part = len(windows[0]) / max(1, view.steps.steady_count - len(windows[0]))
    beyond = Counter({key: weight - part * usual[key] for key, weight in stalled.items() if weight > part * usual[key]})
    if not beyond:
        return None, 0, None
    key, most = beyond.most_common(1)[0]
    always = usual[key] / max(1, usual.total())
    if most / beyond.total() < always + _HALFWAY * (1.0 - always):
        return None, 0, None
    seen = lines[key]
    (line, statement), _ = seen.most_common(1)[0]
    return stack_samples.Spot(file=key[0], function=key[1], line=line, own=True), seen.total(), statement


def _often(usual: Sequence[Sample]) -> set[tuple[str, str]]:
    """Functions in which usual steps are, or in what these call, for a noticeable part of their time."""
    spent: Counter[tuple[str, str]] = Counter()
    for sample in usual:
        for key in {(frame.file, frame.function) for frame in sample.frames if frame.own}:
            spent[key] += sample.weight_ns
    least = _NOTICED * stack_samples.weight_of(usual)
    return {key for key, weight in spent.items() if weight >= least}


def _seldom(sample: Sample, often: Collection[tuple[str, str]]) -> Spot:
    """The innermost frame of the user's code that usual steps are not in; without one the innermost of all."""
    culprit = sample.culprit or sample.leaf
    whole = (f for f in reversed(sample.frames) if f.own and stack_samples.plain(f.function) == f.function)
    frames = (f for f in whole if (f.file, f.function) not in often)
    return culprit if (culprit.file, culprit.function) not in often else next(frames, culprit)


def _other_thread(view: StepsView, windows: tuple[I64, I64]) -> Spot | None:
    """User code of another thread that is sampled much more often in the stalls than outside them."""
    steps = view.steps
    records = steps.worker.records
    threads = np.unique(records.thread[records.kind == Kind.SAMPLE])
    others = [int(t) for t in threads if t != steps.thread]
    taken = [s for s in stack_samples.thread_samples(steps.worker, others) if s.culprit is not None and not s.in_op]
    if not taken:
        return None
    inside = _inside(np.array([s.at for s in taken], np.int64), windows)
    stalled = float((windows[1] - windows[0]).sum())
    share = stalled / max(1.0, float(steps.steady_ns))
    counts: Counter[tuple[str, str, int]] = Counter()
    every: Counter[tuple[str, str, int]] = Counter()
    for sample, good in zip(taken, inside, strict=True):
        spot = sample.culprit
        if spot is not None:
            key = (spot.file, spot.function, spot.line)
            every[key] += 1
            counts[key] += bool(good)
    for key, count in counts.most_common(3):
        if count >= MIN_STALLS and count / every[key] >= min(0.9, _ENRICHED * share):
            return stack_samples.Spot(file=key[0], function=key[1], line=key[2], own=True)
    return None


def _rival(view: StepsView, windows: tuple[I64, I64]) -> str:
    """The process that uses much more CPU in the seconds with stalls than in the others."""
    rivals = foreign(view.session)
    if len(rivals) == 0:
        return ""
    edges = np.unique(rivals.at_ns)
    stalled = _overlap(edges, windows)
    best, most = "", _MIN_RIVAL_CORES
    groups: dict[str, F64] = {}
    for row in range(len(rivals)):
        number = int(rivals.name[row])
        text = view.session.rival_names[number] if number < len(view.session.rival_names) else "?"
        use = groups.setdefault(short_command(text), np.zeros(len(edges)))
        use[np.searchsorted(edges, rivals.at_ns[row])] += rivals.cpu_ns[row] / max(1, int(rivals.interval_ns[row]))
    for text, use in groups.items():
        if stalled.all() or not stalled.any():
            continue
        inside, outside = float(use[stalled].mean()), float(use[~stalled].mean())
        if inside - outside > most and inside > _ENRICHED * outside:
            best, most = text, inside - outside
    return best


def _overlap(edges: I64, windows: tuple[I64, I64]) -> Bool:
    """Mask of the sampling intervals, given by their ends, that hold a stall."""
    result = np.zeros(len(edges), bool)
    for lo, hi in zip(*windows, strict=True):
        first, last = np.searchsorted(edges, [lo, hi])
        result[first : last + 1] = True
    return result
