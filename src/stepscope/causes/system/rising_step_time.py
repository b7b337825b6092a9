"""Parts of the step that take longer and longer, and what rises in them.

The parts of the anatomy are examined one by one: growing work of the job itself shows in one of them long before the
whole step exceeds its noise. A slower machine (a neighbour, heat) and steps that grow by design (longer sequences,
larger batches) slow the other parts too, and do not count as a rise of that part. Nor does what the thread of the steps
waits longer and longer for a CPU, which is taken out of all parts alike.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.machine import thread_cpu
from stepscope.derive.numeric import trend
from stepscope.derive.python import stack_samples
from stepscope.derive.steps.anatomy import NAMED_BY
from stepscope.model.report.components import COMPONENTS, ComponentName

if TYPE_CHECKING:
    from stepscope.derive.numeric.trend import Trend
    from stepscope.derive.python.stack_samples import Spot
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import Name
    from stepscope.tables.records import F64

_LEAST_REST = 0.02
"""If the rest of the step is less than this share of it, it says nothing about the machine."""
_ENDS = 5
"""The first and the last fifth of the steps are compared to see whose time has grown."""


class Rise(Struct, frozen=True, kw_only=True):
    """One component whose time per step rises over the whole run. Nanoseconds per step."""

    component: ComponentName
    trend: Trend
    start_ns: float
    """What the component took at the start."""
    excess_ns: float
    """Excess of the mean step over ``start_ns``."""
    factor: float
    """End over start, of the component."""
    rest_factor: float
    """End over start, of everything else in the step."""
    name: Name | None
    """The callback, saving or collection whose time has grown most."""
    spot: Spot | None
    """The line of user code whose sampled time has grown most."""
    samples: int
    """On that function, in the last fifth of the steps."""


def build(view: StepsView) -> tuple[Rise, ...]:
    """Components that rise, the largest excess first."""
    anatomy, steps = view.anatomy, view.steps
    parts = anatomy.per_step * _had_cpu(view)[:, None]
    whole = parts.sum(1)
    at = np.flatnonzero(steps.steady).astype(np.float64)
    found = []
    for index, component in enumerate(COMPONENTS):
        part = _per_sample(view, parts[:, index])
        line = trend.fit(at, part)
        if line is None or not line.rises:
            continue
        start = max(0.0, min(line.first, line.start))
        excess = float(part.mean()) - start
        if excess <= 0:
            continue
        rest = _per_sample(view, whole - parts[:, index])
        name, spot, samples = _who(view, component)
        found.append(
            Rise(
                component=component,
                trend=line,
                excess_ns=excess,
                start_ns=start,
                factor=line.last / max(start, 1.0),
                rest_factor=_factor(at, rest, float(whole.mean())),
                name=name,
                spot=spot,
                samples=samples,
            )
        )
    return tuple(sorted(found, key=lambda r: -r.excess_ns))


def _had_cpu(view: StepsView) -> F64:
    """Share of each steady step in which its thread did not wait for a CPU, by the second of its middle."""
    steps = view.steps
    low, high = steps.windows
    mine = thread_cpu.rows(view.session, steps.worker, steps.thread)
    shares: F64 = 1.0 - thread_cpu.waited(mine, (low + high) // 2)
    return shares


def _per_sample(view: StepsView, values: F64) -> F64:
    """Times as if every step had the mean number of samples: a larger batch does not count as a slower step."""
    steps = view.steps
    samples = steps.samples[steps.steady].astype(np.float64)
    if len(samples) != len(values) or not (samples > 0).all():
        return values
    result: F64 = values * samples.mean() / samples
    return result


def _factor(at: F64, values: F64, step_ns: float) -> float:
    """End over start of the rest of the step; 1 if that is too little to measure."""
    line = trend.fit(at, values)
    if line is None or line.first < _LEAST_REST * step_ns:
        return 1.0
    return max(0.0, line.last) / line.first


def _who(view: StepsView, component: ComponentName) -> tuple[Name | None, Spot | None, int]:
    steps = view.steps
    lo, hi = steps.windows
    part = max(1, len(lo) // _ENDS)
    early, late = int(hi[part - 1]), int(lo[-part])
    spot, samples = _grown_spot(view, component, early, late)
    return _grown_name(view, component, early, late), spot, samples


def _grown_name(view: StepsView, component: ComponentName, early: int, late: int) -> Name | None:
    """The name whose usual call has grown most, from the first to the last part of the run."""
    kinds, steps = NAMED_BY.get(component), view.steps
    if kinds is None:
        return None
    called = view.calls(*kinds)
    called = called.where(called.starts >= steps.windows[0][0])
    growth: dict[int, float] = {}
    for name in np.unique(called.names[called.starts >= late]):
        named = called.named([name])
        after = named.durations[named.starts >= late]
        before = named.durations[named.starts < early]
        usual = float(np.median(before)) if len(before) else 0.0
        growth[int(name)] = (float(np.median(after)) - usual) * len(after)
    best = max(growth, key=lambda n: growth[n], default=0)
    return view.names.get(best) if growth.get(best, 0.0) > 0 else None


def _grown_spot(view: StepsView, component: ComponentName, early: int, late: int) -> tuple[Spot | None, int]:
    """The function of user code whose sampled time has grown most; its line most often seen at the end."""
    growth: Counter[tuple[str, str]] = Counter()
    lines: dict[tuple[str, str], list[Spot]] = {}
    for sample in view.samples:
        spot = sample.culprit
        if sample.component != component or spot is None:
            continue
        key = (spot.file, spot.function)
        if component == "call" and (sample.in_tensorflow or key == view.loop):
            continue  # it waits for TensorFlow: the rise is not in this line's Python
        if sample.at < early:
            growth[key] -= sample.weight_ns
        elif sample.at >= late:
            growth[key] += sample.weight_ns
            lines.setdefault(key, []).append(spot)
    best = max(lines, key=lambda k: growth[k], default=None)
    if best is None or growth[best] <= 0:
        return None, 0
    seen = lines[best]
    line = Counter(s.line for s in seen).most_common(1)[0][0]
    return stack_samples.Spot(file=best[0], function=best[1], line=line, own=True), len(seen)
